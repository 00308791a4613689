package import MarmotPush
import NIOCore
package import PushModel
package import Secp256k1Keys
package import WebSocket

/// What became of an event at one relay.
package enum Publication: Sendable, Hashable {
    /// The relay has it; a duplicate counts too (docs/conformance/marmot.md).
    case accepted
    case refused(NostrReason?)
    /// Its document says that it would not take the event; nothing was sent.
    case unfit
    case failed(WebSocketError.Code)
    case unanswered
}

/// Publishes events for origins and looks up relay lists: one connection for each relay and event, closed
/// afterwards, so that two events have nothing in common.
///
/// With a proxy every event has credentials of its own, names are looked up by the proxy, and no document is
/// fetched, because that would go another way.
package struct NostrPublisher: Sendable {
    private let client: WebSocketClient
    private let proxy: SOCKS5Proxy?
    private let document: DocumentFetch?
    private let world: World

    package init(
        client: WebSocketClient, proxy: SOCKS5Proxy? = nil, document: DocumentFetch? = nil, world: World
    ) {
        self.client = client
        self.proxy = proxy
        self.document = proxy == nil ? document : nil
        self.world = world
    }

    /// Publishes to all the relays at once, at most ``NostrLimits/publications`` of them.
    ///
    /// - Returns: one outcome for each relay, in order; all within `deadline`.
    package func publish(
        _ event: NostrEvent, to relays: [NostrRelay], within deadline: Duration
    ) async -> [Publication] {
        let relays = Array(relays.prefix(NostrLimits.publications))
        let proxy = self.isolated
        return await each(relays, .unanswered) { relay in
            await within(deadline, else: .unanswered) { await publish(event, to: relay, proxy) }
        }
    }

    /// The relay list in force of a key, as far as these relays know.
    ///
    /// - Returns: `nil` when none of them has one.
    package func relayList(
        of key: XOnlyKey, from relays: [NostrRelay], within deadline: Duration
    ) async -> RelayList? {
        let relays = Array(relays.prefix(NostrLimits.publications))
        let proxy = self.isolated
        let found = await each(relays, []) { relay in
            await within(deadline, else: []) { await lists(of: key, from: relay, proxy) }
        }
        return RelayList.newest(of: found.joined(), author: key)
    }

    private var isolated: SOCKS5Proxy? {
        guard var proxy else { return nil }
        proxy.credentials = .isolated(world)
        return proxy
    }

    // MARK: One relay

    private func publish(
        _ event: NostrEvent, to relay: NostrRelay, _ proxy: SOCKS5Proxy?
    ) async -> Publication {
        let text = NostrMessage.FromClient.event(event).serialized()
        if let document = await document?(relay.address) {
            let age = Duration.seconds(max(0, world.now().seconds - event.createdAt))
            guard document.takes(messageBytes: text.count, contentBytes: event.content.count, age: age) else {
                return .unfit
            }
        }
        do throws(WebSocketError) {
            return try await converse(relay, proxy) { (talk) throws(WebSocketError) in
                try await talk.send(text)
                while let said = try await talk.next() {
                    guard case .ok(event.id, let isAccepted, let reason) = said else { continue }
                    let word = NostrReason(text: reason)
                    if isAccepted || word == .duplicate { return .accepted }
                    // A proof by a key that nobody has seen says nothing about us.
                    guard word == .authRequired, try await talk.prove(relay, world) else {
                        return .refused(word)
                    }
                    try await talk.send(text)
                }
                return .failed(.closed)
            }
        } catch {
            return .failed(error.code)
        }
    }

    private func lists(
        of key: XOnlyKey, from relay: NostrRelay, _ proxy: SOCKS5Proxy?
    ) async -> [NostrEvent] {
        let request = NostrMessage.FromClient.request(subscription: "l", filters: [.relayList(of: key)])
            .serialized()
        do throws(WebSocketError) {
            return try await converse(relay, proxy) { (talk) throws(WebSocketError) in
                var found: [NostrEvent] = []
                try await talk.send(request)
                while found.count < NostrLimits.lists, let said = try await talk.next() {
                    switch said {
                    case .event("l", let event): found.append(event)
                    case .endOfStored("l"): return found
                    case .closed("l", let text):
                        guard NostrReason(text: text) == .authRequired, try await talk.prove(relay, world)
                        else { return found }
                        try await talk.send(request)
                    default: continue
                    }
                }
                return found
            }
        } catch {
            return []
        }
    }

    private func converse<Result: Sendable>(
        _ relay: NostrRelay, _ proxy: SOCKS5Proxy?,
        _ body: (inout Talk) async throws(WebSocketError) -> Result
    ) async throws(WebSocketError) -> Result {
        let connection = try await client.connect(relay.address, proxy: proxy)
        var talk = Talk(connection: connection)
        do throws(WebSocketError) {
            let result = try await body(&talk)
            await connection.close()
            return result
        } catch {
            connection.abort()
            throw error
        }
    }

    // MARK: Several at once

    private func each<Result: Sendable>(
        _ relays: [NostrRelay], _ missing: Result, _ body: @escaping @Sendable (NostrRelay) async -> Result
    ) async -> [Result] {
        await withTaskGroup(of: (Int, Result).self) { group in
            for (index, relay) in relays.enumerated() {
                group.addTask { (index, await body(relay)) }
            }
            var results = Array(repeating: missing, count: relays.count)
            for await (index, result) in group { results[index] = result }
            return results
        }
    }

    private func within<Result: Sendable>(
        _ deadline: Duration, else late: Result, _ body: @escaping @Sendable () async -> Result
    ) async -> Result {
        let end = world.instant() + deadline
        return await withTaskGroup(of: Result.self) { group in
            group.addTask { await body() }
            group.addTask { [world] in
                // Ends early only when the other has ended, and then its result came first.
                try? await world.sleep(end)
                return late
            }
            let first = await group.next() ?? late
            group.cancelAll()
            return first
        }
    }
}

/// One conversation with a relay: what it says, and what it wants proven.
private struct Talk {
    let connection: WebSocketConnection
    private var challenge: String?
    private var hasProven = false
    /// Messages that say nothing to us, before the relay is given up.
    private var patience = 1_000

    init(connection: WebSocketConnection) { self.connection = connection }

    func send(_ text: Secret) async throws(WebSocketError) {
        try await connection.send(.text(text.reveal { ByteBuffer(bytes: $0) }))
    }

    /// The next message that is one; `nil` when the relay has closed, or babbles.
    mutating func next() async throws(WebSocketError) -> NostrMessage.FromRelay? {
        while patience > 0, let message = try await connection.receive() {
            patience -= 1
            guard case .text(let bytes) = message,
                // What is no message is passed over.
                let said = try? bytes.withUnsafeReadableBytes({ try NostrMessage.FromRelay.parse($0) })
            else { continue }
            if case .challenge(let text) = said { challenge = text }
            return said
        }
        return nil
    }

    /// Answers the relay's challenge, once, and waits for its word.
    mutating func prove(_ relay: NostrRelay, _ world: World) async throws(WebSocketError) -> Bool {
        guard !hasProven else { return false }
        hasProven = true
        // Some send the challenge after the refusal.
        while challenge == nil { guard try await next() != nil else { return false } }
        guard let challenge else { return false }
        let proof = AuthEvent.make(
            relay: relay.url, challenge: challenge, at: world.now().seconds, by: .generate(world),
            auxiliary: world.randomBytes(32))
        try await send(NostrMessage.FromClient.authenticate(proof).serialized())
        while let said = try await next() {
            if case .ok(proof.id, let isAccepted, _) = said { return isAccepted }
        }
        return false
    }
}
