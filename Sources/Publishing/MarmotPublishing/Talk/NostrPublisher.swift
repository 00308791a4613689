package import MarmotPush
package import PushModel
package import Secp256k1Keys
package import WebSocket

/// The result for an event at one relay.
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
    private let grace: Duration
    private let isStranger: @Sendable (WebSocketAddress) -> Bool

    /// - Parameter isStranger: whether somebody else named the relay, so that it must stand at a public
    ///   address.
    package init(
        client: WebSocketClient, proxy: SOCKS5Proxy? = nil, document: DocumentFetch? = nil, world: World,
        grace: Duration = PublishingLimits().grace,
        isStranger: @escaping @Sendable (WebSocketAddress) -> Bool = { _ in false }
    ) {
        self.isStranger = isStranger
        self.grace = grace
        self.client = client
        self.proxy = proxy
        self.document = proxy == nil ? document : nil
        self.world = world
    }

    /// Publishes to all the relays at once, at most ``PublishingLimits/publications`` of them.
    ///
    /// - Returns: one outcome for each relay, in order; all within `deadline`.
    package func publish(
        _ event: NostrEvent, to relays: [NostrRelay], within deadline: Duration
    ) async -> [Publication] {
        let relays = Array(relays.prefix(PublishingLimits.publications))
        let proxy = self.isolated
        return await each(relays, .unanswered) { relay in
            await within(deadline) { await publish(event, to: relay, proxy) }
        }
    }

    /// The relay list in force of a key, as far as these relays know.
    ///
    /// - Returns: `nil` when none of them has one.
    package func relayList(
        of key: XOnlyKey, from relays: [NostrRelay], within deadline: Duration
    ) async -> RelayList? {
        await lookUp(key, at: relays, within: deadline).list
    }

    /// The same, and whether any of the relays answered at all. A silent relay is not waited for when another
    /// has a list.
    func lookUp(
        _ key: XOnlyKey, at relays: [NostrRelay], within deadline: Duration
    ) async -> (list: RelayList?, isAnswered: Bool) {
        let proxy = self.isolated
        let answers = await withTaskGroup(of: Found.self) { group in
            let relays = relays.prefix(PublishingLimits.publications)
            for relay in relays {
                group.addTask { .events(await within(deadline) { await lists(of: key, from: relay, proxy) }) }
            }
            var answers: [[NostrEvent]] = []
            var isPressed = false
            var open = relays.count
            while open > 0, let found = await group.next() {
                guard case .events(let events) = found else {
                    group.cancelAll()
                    continue
                }
                open -= 1
                guard let events else { continue }
                answers.append(events)
                guard !events.isEmpty, !isPressed else { continue }
                isPressed = true
                group.addTask {
                    // Ends early only when all the others have ended.
                    try? await world.sleep(world.instant() + grace)
                    return .enough
                }
            }
            group.cancelAll()
            return answers
        }
        return (RelayList.newest(of: answers.joined(), author: key), !answers.isEmpty)
    }

    private enum Found: Sendable {
        case events([NostrEvent]?)
        /// A list is there, and the others had their time.
        case enough
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
            return try await converse(relay, proxy) { (line) throws(WebSocketError) in
                switch try await line.run(RelayTalk(.publish(event.id)), asking: text, { _ in }) {
                case .granted: .accepted
                case .refused(let reason): .refused(reason)
                case .closed: .failed(.closed)
                }
            }
        } catch {
            return error.code == .cancelled ? .unanswered : .failed(error.code)
        }
    }

    /// - Returns: what it has; `nil` when it did not say.
    private func lists(
        of key: XOnlyKey, from relay: NostrRelay, _ proxy: SOCKS5Proxy?
    ) async -> [NostrEvent]? {
        let name = "l"
        let request = NostrMessage.FromClient.request(subscription: name, filters: [.relayList(of: key)])
            .serialized()
        var found: [NostrEvent] = []
        do throws(WebSocketError) {
            let verdict = try await converse(relay, proxy) { (line) throws(WebSocketError) in
                try await line.run(RelayTalk(.read(subscription: name)), asking: request) {
                    guard case .event(name, let event) = $0, found.count < MarmotLimits.listsRead else {
                        return
                    }
                    found.append(event)
                }
            }
            return verdict == .granted || !found.isEmpty ? found : nil
        } catch {
            // A relay that does not say the end of its stored events has still answered.
            return found.isEmpty ? nil : found
        }
    }

    private func converse<Result: Sendable>(
        _ relay: NostrRelay, _ proxy: SOCKS5Proxy?,
        _ body: (inout RelayLine) async throws(WebSocketError) -> Result
    ) async throws(WebSocketError) -> Result {
        let connection = try await client.connect(
            relay.address, proxy: proxy, publicAddressesOnly: isStranger(relay.address))
        return try await RelayLine.converse(connection, relay, world, grace: grace, body)
    }

    // MARK: Several at once

    private func each<Result: Sendable>(
        _ relays: [NostrRelay], _ missing: Result,
        _ body: @escaping @Sendable (NostrRelay) async -> Result
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

    /// Calls `body` off when its time is up; it then says what it has.
    private func within<Result: Sendable>(
        _ deadline: Duration, _ body: @escaping @Sendable () async -> Result
    ) async -> Result {
        let end = world.instant() + deadline
        return await withTaskGroup(of: Result?.self) { group in
            group.addTask { await body() }
            group.addTask { [world] in
                // Ends early only when the other has ended.
                try? await world.sleep(end)
                return nil
            }
            for await result in group {
                group.cancelAll()
                if let result { return result }
            }
            // Not come to: the body has returned.
            return await body()
        }
    }
}
