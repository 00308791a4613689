import SealbellKit

/// An origin at work, of a protocol whose origins are apps: as ``Phone``, with what became of notifications.
public actor AppOrigin<Origin: PushOrigin> {
    /// Ask it whom it can reach.
    public private(set) var origin: Origin
    private let save: @Sendable (Secret) -> Void
    private let send: @Sendable (Call) async -> CallAnswer
    private let settled: @Sendable (Settled) -> Void

    /// - Parameter save: into the keychain, out of backups.
    /// - Parameter send: makes a call. One that stands begins to listen, and is answered `.taken`.
    /// - Parameter settled: what became of a notification.
    public init(
        _ origin: Origin, save: @escaping @Sendable (Secret) -> Void,
        send: @escaping @Sendable (Call) async -> CallAnswer,
        settled: @escaping @Sendable (Settled) -> Void
    ) {
        (self.origin, self.save, self.send, self.settled) = (origin, save, send, settled)
    }

    /// A message to tell of, a setting, or what arrived for a call. Let it `work()` behind that.
    public func change<Result: Sendable>(
        _ body: @Sendable (inout Origin) throws -> Result
    ) rethrows -> Result {
        defer { save(origin.kept) }
        return try body(&origin)
    }

    /// At each start, at `origin.nextDue`, and after each change.
    public func work() async {
        var calls = origin.due(at: now())
        while !calls.isEmpty {
            // Before anything leaves: what was asked and then lost would be asked twice.
            save(origin.kept)
            for call in calls {
                let answer = await send(call)
                origin.answered(answer, to: call, at: now())
            }
            save(origin.kept)
            calls = origin.due(at: now())
        }
        for one in origin.takeSettled() { settled(one) }
    }
}
