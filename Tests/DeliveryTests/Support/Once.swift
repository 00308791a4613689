import Synchronization

/// True for the first who asks, and for nobody else. A count that is raised and then read will not do where
/// several requests are under way: each of them may read what the last one made of it.
final class Once: Sendable {
    private let isTaken = Atomic<Bool>(false)

    func take() -> Bool { !isTaken.exchange(true, ordering: .relaxed) }
}
