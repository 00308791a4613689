package import MarmotPush
package import PushModel
package import Secp256k1Keys
package import WebSocket

/// Reads events of a relay, as a member of a group does: stored ones, and those that come.
package struct NostrReader: Sendable {
    private let client: WebSocketClient
    private let world: World
    private let grace: Duration

    package init(client: WebSocketClient, world: World, grace: Duration = PublishingLimits().grace) {
        self.client = client
        self.world = world
        self.grace = grace
    }

    /// Stored events of a filter, as many as the relay says, ``PublishingLimits/readEvents`` at most.
    ///
    /// - Parameter identity: who proves himself where the relay asks for it.
    /// - Returns: those whose signatures hold, in the relay's order; `nil` when the relay refused or did not
    ///   answer within `deadline`.
    package func stored(
        _ filter: NostrFilter, at relay: NostrRelay, proving identity: Secp256k1KeyPair? = nil,
        within deadline: Duration
    ) async -> [NostrEvent]? {
        await world.untilEnd(world.instant() + deadline) {
            do throws(WebSocketError) {
                return try await converse(relay, identity) { (line) throws(WebSocketError) in
                    try await Self.read(filter, &line)
                }
            } catch { return nil }
        } ?? nil
    }

    /// Hands over stored events together, then each as it comes, until the connection or the task ends.
    ///
    /// - Returns: false when the relay refused.
    /// - Throws: what ended the connection.
    package func follow(
        _ filter: NostrFilter, at relay: NostrRelay, proving identity: Secp256k1KeyPair? = nil,
        _ take: ([NostrEvent]) async -> Void
    ) async throws(WebSocketError) -> Bool {
        try await converse(relay, identity) { (line) throws(WebSocketError) in
            guard let stored = try await Self.read(filter, &line) else { return false }
            await take(stored)
            while let message = try await line.message() {
                if case .closed(Self.name, _) = message { return false }
                guard case .event(Self.name, let event) = message, Self.fits(event, filter) else { continue }
                await take([event])
            }
            return true
        }
    }

    private static let name = "r"

    private static func read(
        _ filter: NostrFilter, _ line: inout RelayLine
    ) async throws(WebSocketError) -> [NostrEvent]? {
        let request = NostrMessage.FromClient.request(subscription: name, filters: [filter]).serialized()
        var found: [NostrEvent] = []
        let verdict = try await line.run(RelayTalk(.read(subscription: name)), asking: request) {
            guard case .event(name, let event) = $0, found.count < PublishingLimits.readEvents,
                fits(event, filter)
            else { return }
            found.append(event)
        }
        return verdict == .granted ? found : nil
    }

    /// A relay may say what it likes.
    private static func fits(_ event: NostrEvent, _ filter: NostrFilter) -> Bool {
        filter.matches(event) && event.isSigned
    }

    private func converse<Result: Sendable>(
        _ relay: NostrRelay, _ identity: Secp256k1KeyPair?,
        _ body: (inout RelayLine) async throws(WebSocketError) -> Result
    ) async throws(WebSocketError) -> Result {
        try await RelayLine.converse(
            try await client.connect(relay.address), relay, world, grace: grace, proving: identity, body)
    }
}
