import MarmotPush
import PushModel
import PushTesting
import Secp256k1Keys
import Testing
import WireFormats

/// Runs the cases of `marmot.json`.
struct MarmotVectorRunner: Sendable {
    /// Members of the file that are no sections.
    static let frame: Set<String> = ["schema", "set", "about", "conventions"]
    /// Sections of roles that are still to be built. Anyone who builds one takes its name off this list and
    /// gives it a case below.
    static let notYet: Set<String> = []
    /// Where a section has its rows, if it is not itself their list.
    private static let lists: [String: [String]] = [
        "ecdh": ["valid", "invalid_pubkeys", "invalid_secrets"],
        "nip44": ["valid", "extended_length_prefix/rows"],
        "server_subscription": ["filters"],
        "gossip": [
            "seed", "mip05/events", "mip05/malformed", "push_v1/owner_proofs", "push_v1/events",
            "push_v1/store"
        ],
        "batching": ["splits"]
    ]
    /// Where it has a row that stands alone.
    private static let single: [String: [String]] = [
        "batching": ["by_server"], "push_requests": ["apns", "fcm"]
    ]

    let json: JSONValue
    let now: UnixTime
    let set: VectorSet

    init(_ file: VectorFile) {
        json = file.json
        now = file.now
        let sections = (file.json.object?.names ?? []).filter { !Self.frame.contains($0) }
        set = VectorSet("marmot/" + file.set, sections.flatMap { Self.parts($0, file.json).flatMap(\.self) })
    }

    /// The cases of one section, by its parts.
    static func parts(_ section: String, _ json: JSONValue) -> [[VectorCase]] {
        let (lists, single) = (lists[section] ?? [], single[section] ?? [])
        if lists.isEmpty, single.isEmpty { return [VectorCase.each(of: json[section], section)] }
        return lists.map { path in
            let list = path.split(separator: "/").reduce(json[section]) { $0?[String($1)] }
            return VectorCase.each(of: list, section, part: path)
        }
            + single.map { name in
                json[section]?[name].map { [VectorCase(section, part: name, name: "row", row: $0)] } ?? []
            }
    }

    /// Whether a case holds. A section that is not known is a failure.
    func holds(_ vector: VectorCase) async throws -> Bool {
        let row = vector.row
        switch vector.section {
        // Wire and Sealing: VectorBoxes.swift, VectorEvents.swift, VectorWraps.swift.
        case "formats": return try format(vector.name, row)
        case "keys": return try key(row)
        case "hkdf": return try derivation(row)
        case "ecdh": return try ecdh(vector.part, row)
        case "token_encrypt": return try tokenEncrypt(row)
        case "token_decrypt": return try tokenDecrypt(row)
        case "nip44": return try nip44(vector.part, row)
        case "nip01": return try nip01(row)
        case "schnorr": return try schnorr(row)
        case "relay_lists_10050": return try relayList(row)
        case "auth_22242": return try authentication(row)
        case "relay_frames": return try relayFrame(row)
        case "gift_wrap_building": return try building(row)
        case "gift_wraps": return try await MarmotRelayVectors(self).giftWrap(row) && giftWrap(row)
        case "decoys": return try decoy(row)
        // Device and origin: GossipVectors.swift.
        case "gossip", "token_store", "batching":
            try GossipVectors(json).check(vector)
            return true
        // Relay: RelayVectors.swift.
        case "replay": return try await MarmotRelayVectors(self).replay(row)
        case "rate_limits": return try await MarmotRelayVectors(self).rateLimit(row)
        case "push_requests": return try await MarmotRelayVectors(self).pushRequest(vector.part)
        case "server_subscription": return try await MarmotRelayVectors(self).subscription(row)
        default:
            Issue.record("unknown section \(vector.section)")
            return false
        }
    }

    // MARK: values

    func text(_ row: JSONValue, _ member: String) throws -> String { try #require(row[member]?.string) }
    func bytes(_ row: JSONValue, _ member: String) throws -> [UInt8] {
        try Hex.decode(text(row, member).utf8)
    }
    func secret(_ row: JSONValue, _ member: String) throws -> Secret { Secret(try bytes(row, member)) }
    func pair(_ row: JSONValue, _ member: String) throws -> Secp256k1KeyPair {
        try Secp256k1KeyPair(secret: secret(row, member))
    }
    func xOnly(_ row: JSONValue, _ member: String) throws -> XOnlyKey {
        try #require(XOnlyKey(hex: text(row, member)))
    }

    /// A key pair of the file's `keys` by the name that a row gives.
    func named(_ row: JSONValue, _ member: String) throws -> Secp256k1KeyPair {
        try pair(try #require(json["keys"]?[text(row, member)]), "secret")
    }

    /// The event of a row, as the file writes it.
    func event(
        _ value: JSONValue?, _ completeness: NostrEvent.Completeness = .signed
    ) throws -> NostrEvent {
        try NostrEvent.parse(Secret(try #require(value).serialized()), completeness)
    }

    /// What `attempt` throws, if it is one of ours.
    func refusal(_ attempt: () throws -> Void) -> MarmotError.Code? {
        do { try attempt() } catch { return (error as? MarmotError)?.code }
        return nil
    }
}
