import Synchronization

/// Waiting tasks, each with what it waits for. It is kept in the state that decides about them.
struct WaitList<Mark: Sendable>: Sendable {
    typealias Continuation = CheckedContinuation<WaitEnding, Never>

    private var entries: [(id: WaitID, mark: Mark, continuation: Continuation)] = []

    mutating func enter(_ id: WaitID, _ mark: Mark, _ continuation: Continuation) {
        entries.append((id, mark, continuation))
    }

    /// Takes out those whose mark matches, in the order in which they came.
    mutating func take(where fits: (Mark) -> Bool) -> [Continuation] {
        let taken = entries.filter { fits($0.mark) }.map(\.continuation)
        entries.removeAll { fits($0.mark) }
        return taken
    }

    mutating func take(_ id: WaitID) -> Continuation? {
        entries.firstIndex { $0.id == id }.map { entries.remove(at: $0).continuation }
    }
}

enum WaitEnding: Sendable { case came, cancelled, inVain }

/// Identifies a wait within the process.
struct WaitID: Equatable, Sendable {
    private static let last = Atomic<UInt64>(0)
    private let number = WaitID.last.wrappingAdd(1, ordering: .relaxed).newValue
}

/// Waits in a list until it is taken out, the task is cancelled, or ``Patience`` ends, which is then reported
/// by name.
///
/// - Parameters:
///   - enter: puts the continuation into its list, unless what it waits for has come or the task is
///     cancelled.
///   - leave: takes it out of the list.
/// - Returns: whether the event came.
func waits(
    for what: @autoclosure () -> String, looks: Int, file: String, line: Int,
    enter: (WaitID, CheckedContinuation<WaitEnding, Never>) -> WaitEnding?,
    leave: @escaping @Sendable (WaitID) -> CheckedContinuation<WaitEnding, Never>?
) async -> Bool {
    let id = WaitID()
    let ending = await withTaskGroup(of: Void.self) { group in
        group.addTask { if await Patience.ends(looks) { leave(id)?.resume(returning: .inVain) } }
        defer { group.cancelAll() }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                if let ending = enter(id, continuation) { continuation.resume(returning: ending) }
            }
        } onCancel: {
            leave(id)?.resume(returning: .cancelled)
        }
    }
    if ending == .inVain {
        Patience.end(NeverCame(what: what(), ending: .inVain, file: file, line: line))
    }
    return ending == .came
}
