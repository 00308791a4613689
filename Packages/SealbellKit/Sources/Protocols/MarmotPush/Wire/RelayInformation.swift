public import PushModel
import WireFormats

/// A relay's statement of its limits (NIP-11, `limitation`). Without a document no limits are known.
public struct RelayInformation: Sendable, Hashable {
    /// Bytes of one frame.
    public var maxMessageBytes: Int?
    /// Characters of an event's content.
    public var maxContentCharacters: Int?
    /// How far back an event may be dated, whole seconds.
    public var createdAtLowerLimit: Duration?
    /// Leading zero bits that an event's id must have.
    public var minPowDifficulty: Int?
    /// `auth_required`: it takes nothing from strangers.
    public var authRequired = false

    /// No limits known.
    public init() {}

    /// Reads the document. A member of another type counts as absent: relays are careless here.
    ///
    /// - Parameter json: the body of the answer; at most ``MarmotLimits/informationBytes``.
    /// - Throws: `.tooLarge`; `.malformedMessage` if it is not a JSON object.
    public init(reading json: Secret) throws(MarmotError) {
        guard json.count <= MarmotLimits.informationBytes else { throw MarmotError(.tooLarge) }
        let value = json.reveal { try? JSONValue.parse($0, depthLimit: 16) }  // No JSON is malformed.
        guard let value, value.object != nil else { throw MarmotError(.malformedMessage) }
        let limits = value["limitation"]
        maxMessageBytes = Self.positive(limits?["max_message_length"])
        maxContentCharacters = Self.positive(limits?["max_content_length"])
        minPowDifficulty = Self.positive(limits?["min_pow_difficulty"])
        authRequired = limits?["auth_required"]?.bool ?? false
        createdAtLowerLimit = Self.positive(limits?["created_at_lower_limit"]).map { .seconds($0) }
    }

    /// 0 means no limit in deployed documents.
    private static func positive(_ value: JSONValue?) -> Int? {
        guard let number = value?.int64, number > 0, number <= 1 << 40 else { return nil }
        return Int(number)
    }
}

extension RelayInformation {
    /// Where a relay's document is: at its own host and port (NIP-11).
    ///
    /// - Returns: `nil` for plain `ws` ones, which stand on this machine, and for those that only Tor
    ///   reaches.
    static func url(ofRelay relay: String) -> String? {
        guard relay.hasPrefix("wss://") else { return nil }
        let rest = relay.dropFirst(6)
        let host = rest.prefix { $0 != "/" && $0 != ":" }
        guard !host.isEmpty, !host.lowercased().hasSuffix(".onion"),
            rest.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }), !rest.contains(where: { "@\\#".contains($0) })
        else { return nil }
        return "https://\(rest)"
    }
}
