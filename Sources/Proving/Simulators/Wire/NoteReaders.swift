import Synchronization

/// The readers of a simulator's notes. Each gets everything from the moment when it began to read.
final class NoteReaders<Note: Sendable>: Sendable {
    private struct State {
        var next = 0
        var inlets: [Int: AsyncStream<Note>.Continuation] = [:]
        var isOver = false
    }

    private let state = Mutex(State())
    /// How far a reader may be behind; then it loses the oldest notes.
    private let ahead: Int
    /// The most readers; further ones get nothing.
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

    /// Ends all readers, and accepts no more.
    func finish() {
        let inlets = state.withLock { state in
            state.isOver = true
            defer { state.inlets = [:] }
            return Array(state.inlets.values)
        }
        for inlet in inlets { inlet.finish() }
    }
}
