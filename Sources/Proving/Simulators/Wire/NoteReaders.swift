import Synchronization

/// Those who read what a simulator notes. Each hears everything from when it began to read.
final class NoteReaders<Note: Sendable>: Sendable {
    private struct State {
        var next = 0
        var inlets: [Int: AsyncStream<Note>.Continuation] = [:]
        var isOver = false
    }

    private let state = Mutex(State())
    /// A reader may be so far behind; then it loses the oldest.
    private let ahead: Int
    /// More than these hear nothing.
    private let limit: Int

    init(ahead: Int, limit: Int = 64) {
        self.ahead = ahead
        self.limit = limit
    }

    /// - Returns: how many readers lost one.
    @discardableResult
    func tell(_ note: Note) -> Int {
        let inlets = state.withLock { Array($0.inlets.values) }
        return inlets.count { inlet in
            if case .dropped = inlet.yield(note) { true } else { false }
        }
    }

    func stream() -> AsyncStream<Note> {
        let (stream, inlet) = AsyncStream.makeStream(of: Note.self, bufferingPolicy: .bufferingNewest(ahead))
        let number = state.withLock { state -> Int? in
            guard !state.isOver, state.inlets.count < limit else { return nil }
            state.next += 1
            state.inlets[state.next] = inlet
            return state.next
        }
        guard let number else {
            inlet.finish()
            return stream
        }
        inlet.onTermination = { [weak self] _ in
            self?.state.withLock { _ = $0.inlets.removeValue(forKey: number) }
        }
        return stream
    }

    /// Ends all that are read, and takes no more readers.
    func finish() {
        let inlets = state.withLock { state in
            state.isOver = true
            defer { state.inlets = [:] }
            return Array(state.inlets.values)
        }
        for inlet in inlets { inlet.finish() }
    }
}
