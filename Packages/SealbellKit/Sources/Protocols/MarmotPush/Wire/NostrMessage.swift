public import PushModel
import WireFormats

/// The messages on a relay's WebSocket (NIP-01, NIP-42): each is a JSON array in one text frame.
public enum NostrMessage {
    /// Client to relay.
    public enum FromClient: Sendable {
        /// `["EVENT", event]`
        case event(NostrEvent)
        /// `["REQ", subscription, filter…]`
        case request(subscription: String, filters: [NostrFilter])
        /// `["CLOSE", subscription]`
        case close(subscription: String)
        /// `["AUTH", event]`
        case authenticate(NostrEvent)
    }

    /// Relay to client.
    public enum FromRelay: Sendable {
        /// `["EVENT", subscription, event]`
        case event(subscription: String, NostrEvent)
        /// `["OK", id, accepted, text]`
        case ok(id: [UInt8], isAccepted: Bool, text: String)
        /// `["EOSE", subscription]`: stored events have ended, live ones follow.
        case endOfStored(subscription: String)
        /// `["CLOSED", subscription, text]`
        case closed(subscription: String, text: String)
        /// `["NOTICE", text]`
        case notice(text: String)
        /// `["AUTH", challenge]`
        case challenge(String)
    }
}

extension NostrMessage.FromClient {
    /// Reads one text frame.
    ///
    /// - Throws: `.unknownMessage` for another word than these; `.malformedEvent`, `.malformedFilter`,
    ///   `.malformedMessage`, `.tooLarge`.
    public static func parse(_ frame: UnsafeRawBufferPointer) throws(MarmotError) -> Self {
        var frame = try MessageReader(frame)
        let message: Self
        switch frame.word {
        case "EVENT": message = .event(try frame.event())
        case "AUTH": message = .authenticate(try frame.event())
        case "CLOSE": message = .close(subscription: try frame.subscription())
        case "REQ":
            let name = try frame.subscription()
            var filters: [NostrFilter] = []
            while try frame.hasMore() {
                guard filters.count < MarmotLimits.filters else { throw MarmotError(.tooLarge) }
                filters.append(try NostrFilter.parse(&frame.reader))
            }
            guard !filters.isEmpty else { throw MarmotError(.malformedMessage) }
            message = .request(subscription: name, filters: filters)
        default: throw MarmotError(.unknownMessage)
        }
        try frame.end()
        return message
    }

    /// The text of the frame.
    public func serialized() -> Secret {
        switch self {
        case .event(let event): return MessageWriter.text("EVENT", event: event)
        case .authenticate(let event): return MessageWriter.text("AUTH", event: event)
        case .close(let name): return MessageWriter.text("CLOSE") { $0.string(name) }
        case .request(let name, let filters):
            return MessageWriter.text("REQ") { writer in
                writer.string(name)
                for filter in filters { filter.write(to: &writer) }
            }
        }
    }
}

extension NostrMessage.FromRelay {
    /// Reads one text frame. Texts are cut to ``MarmotLimits/relayTextBytes``.
    ///
    /// - Throws: `.unknownMessage` for another word than these; `.malformedEvent`, `.malformedMessage`,
    ///   `.tooLarge`.
    public static func parse(_ frame: UnsafeRawBufferPointer) throws(MarmotError) -> Self {
        var frame = try MessageReader(frame)
        let message: Self
        switch frame.word {
        case "EVENT":
            let name = try frame.subscription()
            message = .event(subscription: name, try frame.event())
        case "OK":
            let id = try frame.id()
            let isAccepted = try frame.flag()
            message = .ok(id: id, isAccepted: isAccepted, text: try frame.trailingText())
        case "EOSE": message = .endOfStored(subscription: try frame.subscription())
        case "CLOSED":
            let name = try frame.subscription()
            message = .closed(subscription: name, text: try frame.trailingText())
        case "NOTICE": message = .notice(text: try frame.trailingText())
        case "AUTH": message = .challenge(try frame.challenge())
        default: throw MarmotError(.unknownMessage)
        }
        try frame.end()
        return message
    }

    /// The text of the frame.
    public func serialized() -> Secret {
        switch self {
        case .event(let name, let event): return MessageWriter.text("EVENT", name, event: event)
        case .ok(let id, let isAccepted, let text):
            return MessageWriter.text("OK") { writer in
                writer.string(Hex.encode(id))
                writer.bool(isAccepted)
                writer.string(text)
            }
        case .endOfStored(let name): return MessageWriter.text("EOSE") { $0.string(name) }
        case .closed(let name, let text):
            return MessageWriter.text("CLOSED") { writer in
                writer.string(name)
                writer.string(text)
            }
        case .notice(let text): return MessageWriter.text("NOTICE") { $0.string(text) }
        case .challenge(let text): return MessageWriter.text("AUTH") { $0.string(text) }
        }
    }
}

/// Reads a message's array, element by element.
private struct MessageReader {
    var reader: JSONReader
    let word: String
    private var hasEnded = false

    init(_ frame: UnsafeRawBufferPointer) throws(MarmotError) {
        guard frame.count <= MarmotLimits.frameBytes else { throw MarmotError(.tooLarge) }
        reader = JSONReader(frame, depthLimit: MarmotLimits.jsonDepth)
        do {
            try reader.beginArray()
            guard try reader.nextElement() else { throw FormatError(.wrongType) }
            let word = try reader.readString()
            // The longest known word has six letters.
            self.word = word.raw.count <= 8 ? word.string() : ""
        } catch { throw MarmotError(.malformedMessage) }
    }

    mutating func hasMore() throws(MarmotError) -> Bool {
        guard !hasEnded else { return false }
        do {
            if try reader.nextElement() { return true }
            hasEnded = true
            try reader.end()
            return false
        } catch { throw MarmotError(.malformedMessage) }
    }

    /// Checks that the array and the text end here.
    mutating func end() throws(MarmotError) {
        guard try !hasMore() else { throw MarmotError(.malformedMessage) }
    }

    mutating func event() throws(MarmotError) -> NostrEvent {
        guard try hasMore() else { throw MarmotError(.malformedMessage) }
        return try NostrEvent.parse(&reader, .signed)
    }

    /// A subscription's name: 1 to 64 characters.
    mutating func subscription() throws(MarmotError) -> String {
        let name = try string(limitBytes: 4 * MarmotLimits.subscriptionCharacters)
        guard (1...MarmotLimits.subscriptionCharacters).contains(name.unicodeScalars.count) else {
            throw MarmotError(.malformedMessage)
        }
        return name
    }

    mutating func challenge() throws(MarmotError) -> String {
        try string(limitBytes: MarmotLimits.challengeBytes)
    }

    mutating func id() throws(MarmotError) -> [UInt8] {
        guard try hasMore() else { throw MarmotError(.malformedMessage) }
        do { return try reader.readHex(count: 32) } catch { throw MarmotError(.malformedMessage) }
    }

    mutating func flag() throws(MarmotError) -> Bool {
        guard try hasMore() else { throw MarmotError(.malformedMessage) }
        do { return try reader.readBool() } catch { throw MarmotError(.malformedMessage) }
    }

    /// A text at the end, cut to the length that is kept; some relays leave it out.
    mutating func trailingText() throws(MarmotError) -> String {
        guard try hasMore() else { return "" }
        do {
            let text = try reader.readString()
            return String(decoding: text.decoded().prefix(MarmotLimits.relayTextBytes), as: UTF8.self)
        } catch { throw MarmotError(.malformedMessage) }
    }

    private mutating func string(limitBytes: Int) throws(MarmotError) -> String {
        guard try hasMore() else { throw MarmotError(.malformedMessage) }
        do {
            let text = try reader.readString()
            guard text.raw.count <= 6 * limitBytes else { throw FormatError(.tooLarge) }
            let decoded = text.decoded()
            guard decoded.count <= limitBytes else { throw FormatError(.tooLarge) }
            return String(decoding: decoded, as: UTF8.self)
        } catch { throw MarmotError(.malformedMessage) }
    }
}

private enum MessageWriter {
    static func text(_ word: String, _ fill: (inout JSONWriter) -> Void) -> Secret {
        var writer = JSONWriter(reserving: 512)
        writer.beginArray()
        writer.string(word)
        fill(&writer)
        writer.endArray()
        return writer.takeSecret()
    }

    static func text(_ word: String, _ name: String? = nil, event: NostrEvent) -> Secret {
        let event = event.serialized()
        var writer = JSONWriter(reserving: event.count + word.utf8.count + 6 * (name?.utf8.count ?? 0) + 16)
        writer.beginArray()
        writer.string(word)
        if let name { writer.string(name) }
        event.reveal { writer.raw($0) }
        writer.endArray()
        return writer.takeSecret()
    }
}
