import MarmotPush
import NIOCore
import NIOHTTP1
import PushModel
import Secp256k1Keys
import WebSocket
import WireFormats

/// One client of a simulated relay: judges its messages (NIP-01, NIP-42), and sends what it asked for.
final class NostrRelayConnection: WebSocketUser, @unchecked Sendable {
    // Safety: the constants are Sendable; every other field is touched on `eventLoop` alone.
    private let hub: NostrRelayHub
    private let eventLoop: any EventLoop
    /// The address that the client dialled: scheme, host, port and path.
    private let dialled: WebSocketAddress?
    private let challenge: String
    private var link: WebSocketLink?
    /// A subscription gets events that were accepted before it only as stored ones, or not at all.
    private var subscriptions: [String: (filters: [NostrFilter], since: UInt64)] = [:]
    private var keys: Set<XOnlyKey> = []
    private var hasSentChallenge = false
    private var messages = 0
    /// What waits for the socket, bounded by the configuration's `waitingBytes`.
    private var waiting = CircularBuffer<ByteBuffer>()
    private var waitingBytes = 0
    private var flood: (texts: [ByteBuffer], left: Int)?

    /// How many keys one connection may authenticate; NIP-42 allows several.
    private static let keyLimit = 16

    init(_ hub: NostrRelayHub, channel: any Channel, head: HTTPRequestHead) {
        self.hub = hub
        eventLoop = channel.eventLoop
        let scheme = hub.configuration.isSecure ? "wss" : "ws"
        // Without a usable Host nobody can authenticate; such a client is refused for that.
        dialled = try? WebSocketAddress("\(scheme)://\(head.headers.first(name: "host") ?? "")\(head.uri)")
        challenge = Hex.encode(hub.world.randomBytes(16))
    }

    // MARK: From any thread

    func offer(_ event: NostrEvent, text: ByteBuffer, number: UInt64) {
        eventLoop.execute { self.live(event, text, number) }
    }

    func turned() { eventLoop.execute { self.link?.answersPings = !self.hub.knobs.ignoresPing } }

    /// Ends the connection with a close frame, or without one.
    func end(_ code: WebSocketCloseCode?) {
        eventLoop.execute { if let code { self.link?.close(code) } else { self.link?.abort() } }
    }

    /// Sends `count` events in turn to one subscription, as fast as the client reads.
    func flood(_ events: [NostrEvent], count: Int) {
        eventLoop.execute {
            guard let name = self.subscriptions.keys.min(), !events.isEmpty else { return }
            self.flood = (events.map { Self.text(.event(subscription: name, $0)) }, count)
            self.becameWritable()
        }
    }

    func say(_ text: @escaping @Sendable (_ subscription: String) -> [UInt8]) {
        eventLoop.execute { self.put(ByteBuffer(bytes: text(self.subscriptions.keys.min() ?? ""))) }
    }

    // MARK: The link's events

    func opened(_ link: WebSocketLink) {
        guard hub.add(self) else { return link.close(.tryAgainLater) }
        self.link = link
        var knobs = hub.knobs
        knobs.answerDelay = .zero
        link.answersPings = !knobs.ignoresPing
        if knobs.speaksFirst, let event = hub.stored.first {
            say(.event(subscription: "1-1", event), knobs)
        }
        if knobs.authentication == .onConnect { sendChallenge(knobs) }
    }

    func received(_ message: WebSocketMessage) {
        let knobs = hub.knobs
        messages += 1
        if let limit = knobs.closesAfterMessages, messages > limit {
            link?.close(WebSocketCloseCode(rawValue: knobs.closeCode))
            return
        }
        guard case .text(let bytes) = message else { return malformed("binary", knobs) }
        do throws(MarmotError) {
            let said = try bytes.withUnsafeReadableBytes { (raw) throws(MarmotError) in
                try NostrMessage.FromClient.parse(raw)
            }
            switch said {
            case .event(let event): published(event, knobs)
            case .request(let name, let filters): requested(name, filters, knobs)
            case .close(let name):
                subscriptions[name] = nil
                hub.note(.unsubscribed(name))
            case .authenticate(let event): authenticated(event, knobs)
            }
        } catch {
            malformed(error.codeText, knobs)
        }
    }

    func ponged(_ payload: ByteBuffer) {}

    func becameWritable() {
        while let link, link.isWritable, let text = waiting.popFirst() {
            waitingBytes -= text.readableBytes
            link.send(.text(text))
        }
        while let link, link.isWritable, let (texts, left) = flood {
            flood = left > 1 ? (texts, left - 1) : nil
            hub.count { $0.eventsSent += 1 }
            link.send(.text(texts[left % texts.count]))
        }
    }

    func ended(_ end: WebSocketEnd) {
        link = nil
        subscriptions = [:]
        waiting = []
        flood = nil
        hub.remove(self)
    }
}

// MARK: - Judging

extension NostrRelayConnection {
    private func malformed(_ code: String, _ knobs: NostrRelayKnobs) {
        hub.count { $0.malformed += 1 }
        hub.note(.malformed(code))
        say(.notice(text: "invalid: \(code)"), knobs)
    }

    private func published(_ event: NostrEvent, _ knobs: NostrRelayKnobs) {
        hub.count { $0.eventsReceived += 1 }
        if let refusal = refusal(of: event, knobs) {
            hub.count { $0.refusals += 1 }
            hub.note(.published(event, isAccepted: false))
            if refusal.reason == .authRequired { sendChallenge(knobs) }
            if knobs.refusesByNoticeAlone { return say(.notice(text: refusal.text), knobs) }
            let id = knobs.refusesWithoutID ? [] : event.id
            return say(.ok(id: id, isAccepted: false, text: refusal.text), knobs)
        }
        let text = Self.buffer(event.serialized())
        let taken = hub.take(event, text: text)
        switch taken.answer {
        case .stored, .passing:
            hub.count { $0.eventsAccepted += 1 }
            say(.ok(id: event.id, isAccepted: true, text: ""), knobs)
            hub.spread(event, text: text, number: taken.number)
            hub.note(.published(event, isAccepted: true))
        case .duplicate:
            say(
                .ok(
                    id: event.id, isAccepted: knobs.acceptsDuplicates,
                    text: "duplicate: already have this event"), knobs)
            hub.note(.published(event, isAccepted: knobs.acceptsDuplicates))
        case .older:
            say(.ok(id: event.id, isAccepted: true, text: "duplicate: have a newer event"), knobs)
            hub.note(.published(event, isAccepted: true))
        }
    }

    private func refusal(
        of event: NostrEvent, _ knobs: NostrRelayKnobs
    ) -> (reason: NostrReason, text: String)? {
        func refuse(_ reason: NostrReason, _ words: String) -> (NostrReason, String) {
            (reason, "\(reason.rawValue): \(words)")
        }
        if let reason = knobs.refusesEvents { return refuse(reason, "as the test wants it") }
        if knobs.authenticatesPublishers, keys.isEmpty { return refuse(.authRequired, "who are you?") }
        guard event.content.count <= hub.configuration.contentBytes else {
            return refuse(.invalid, "content too large")
        }
        guard event.kind != NostrKind.authentication else { return refuse(.invalid, "not to be published") }
        let newest = hub.world.now().seconds + hub.configuration.ahead.components.seconds
        guard event.createdAt <= newest else { return refuse(.invalid, "created_at too far ahead") }
        guard event.hasRightID else { return refuse(.invalid, "wrong id") }
        guard event.isSigned else { return refuse(.invalid, "bad signature") }
        return nil
    }

    private func requested(_ name: String, _ filters: [NostrFilter], _ knobs: NostrRelayKnobs) {
        hub.count { $0.requests += 1 }
        // Noted when it is in force, or refused: events that a test publishes from then on are live.
        defer { hub.note(.requested(subscription: name, filters: filters)) }
        if let reason = knobs.refusesRequests { return refuse(name, reason, "as the test wants it", knobs) }
        switch knobs.authentication {
        case .none: break
        case .onConnect:
            guard !keys.isEmpty else {
                hub.count { $0.refusals += 1 }
                return say(.notice(text: "restricted: permission denied"), knobs)
            }
        case .onDemand:
            guard !keys.isEmpty else {
                sendChallenge(knobs)
                return refuse(name, .authRequired, "who are you?", knobs)
            }
        }
        if knobs.guardsWraps, !filters.allSatisfy(mayAskForWraps) {
            if keys.isEmpty {
                sendChallenge(knobs)
                return refuse(name, .authRequired, "wraps are shown to their recipients", knobs)
            }
            return refuse(name, .restricted, "not for you", knobs)
        }
        guard subscriptions[name] != nil || subscriptions.count < hub.configuration.subscriptions else {
            return refuse(name, .error, "too many subscriptions", knobs)
        }
        let (found, taken) = hub.matching(filters, knobs)
        subscriptions[name] = (filters, taken)
        for stored in found { show(stored.event, stored.text, name, knobs) }
        if !knobs.withholdsEndOfStored { say(.endOfStored(subscription: name), knobs) }
    }

    private func mayAskForWraps(_ filter: NostrFilter) -> Bool {
        guard filter.kinds?.contains(NostrKind.giftWrap) ?? true else { return true }
        guard let wanted = filter.tags["p"] else { return false }
        let proven = Set(keys.map(\.hex))
        return wanted.allSatisfy(proven.contains)
    }

    private func refuse(
        _ name: String, _ reason: NostrReason, _ words: String, _ knobs: NostrRelayKnobs
    ) {
        hub.count { $0.refusals += 1 }
        subscriptions[name] = nil
        if knobs.refusesByNoticeAlone { return say(.notice(text: "\(reason.rawValue): \(words)"), knobs) }
        say(.closed(subscription: name, text: "\(reason.rawValue): \(words)"), knobs)
    }

    private func authenticated(_ event: NostrEvent, _ knobs: NostrRelayKnobs) {
        let relay = event.tag("relay") ?? ""
        do throws(MarmotError) {
            guard hasSentChallenge, isOurs(relay), keys.count < Self.keyLimit else {
                throw MarmotError(.malformedEvent)
            }
            let key = try AuthEvent.check(
                event, relay: relay, challenge: challenge, now: hub.world.now().seconds)
            keys.insert(key)
            hub.count { $0.authentications += 1 }
            hub.note(.authenticated(key))
            if !knobs.takesProofsSilently { say(.ok(id: event.id, isAccepted: true, text: ""), knobs) }
        } catch {
            hub.count { $0.refusals += 1 }
            say(.ok(id: event.id, isAccepted: false, text: "invalid: \(error.codeText)"), knobs)
        }
    }

    /// Whether the address is the one that the client dialled, except for a slash at its end.
    private func isOurs(_ relay: String) -> Bool {
        guard let dialled, let named = try? WebSocketAddress(relay) else { return false }
        func path(_ target: String) -> Substring { target.hasSuffix("/") ? target.dropLast() : target[...] }
        return named.isSecure == dialled.isSecure && named.authority == dialled.authority
            && path(named.target) == path(dialled.target)
    }

    private func sendChallenge(_ knobs: NostrRelayKnobs) {
        hasSentChallenge = true
        say(.challenge(challenge), knobs)
    }
}

// MARK: - Sending

extension NostrRelayConnection {
    private func live(_ event: NostrEvent, _ text: ByteBuffer, _ number: UInt64) {
        let knobs = hub.knobs
        for (name, (filters, since)) in subscriptions where number > since {
            guard knobs.lies.contains(.wrongFilter) || filters.contains(where: { $0.matches(event) }),
                maySee(event, knobs)
            else { continue }
            show(event, text, name, knobs)
        }
    }

    private func maySee(_ event: NostrEvent, _ knobs: NostrRelayKnobs) -> Bool {
        guard knobs.guardsWraps, event.kind == NostrKind.giftWrap else { return true }
        return keys.contains { event.hasTag("p", $0.hex) }
    }

    private func show(_ event: NostrEvent, _ text: ByteBuffer, _ name: String, _ knobs: NostrRelayKnobs) {
        guard maySee(event, knobs) else { return }
        let name = knobs.lies.contains(.strangeSubscription) ? name + "?" : name
        var frame = JSONWriter(reserving: text.readableBytes + 100)
        frame.beginArray()
        frame.string("EVENT")
        frame.string(name)
        text.withUnsafeReadableBytes { frame.raw($0) }
        frame.endArray()
        var bytes = frame.bytes
        // The event ends with its signature's last digit and `"}`, and begins with `{"id":"`.
        if knobs.lies.contains(.badSignature), event.signature != nil {
            Self.change(&bytes, at: bytes.count - 4)
        }
        if knobs.lies.contains(.wrongID) {
            Self.change(&bytes, at: bytes.count - 1 - text.readableBytes + 7)
        }
        for _ in 0..<max(0, knobs.copies) {
            hub.count { $0.eventsSent += 1 }
            say(ByteBuffer(bytes: bytes), knobs)
        }
    }

    /// Another hexadecimal digit instead of this one.
    private static func change(_ bytes: inout [UInt8], at index: Int) {
        bytes[index] = bytes[index] == 0x30 ? 0x31 : 0x30
    }

    private func say(_ message: NostrMessage.FromRelay, _ knobs: NostrRelayKnobs) {
        say(Self.text(message), knobs)
    }

    private func say(_ text: ByteBuffer, _ knobs: NostrRelayKnobs) {
        guard !knobs.isSilent else { return }
        guard knobs.answerDelay > .zero else { return put(text) }
        // Bounded by what the client may send in the meantime, and by `waitingBytes` from then on.
        eventLoop.scheduleTask(in: TimeAmount(knobs.answerDelay)) { self.put(text) }
    }

    private func put(_ text: ByteBuffer) {
        guard let link else { return }
        if waiting.isEmpty, link.isWritable { return link.send(.text(text)) }
        guard waitingBytes + text.readableBytes <= hub.configuration.waitingBytes else {
            return link.close(.policyViolation)
        }
        waiting.append(text)
        waitingBytes += text.readableBytes
    }

    private static func text(_ message: NostrMessage.FromRelay) -> ByteBuffer { buffer(message.serialized()) }

    private static func buffer(_ text: Secret) -> ByteBuffer { text.reveal { ByteBuffer(bytes: $0) } }
}
