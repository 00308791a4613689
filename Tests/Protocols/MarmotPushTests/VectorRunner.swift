import MarmotPush
import Primitives
import PushModel
import Testing
import WireFormats

/// Runs the sections of `marmot.json`. Each row says whether it holds; a row with `firm: false` that does not
/// is printed and counts as passed.
struct VectorRunner {
    typealias Count = (passed: Int, total: Int)

    /// Members of the file that are no sections.
    static let frame: Set<String> = ["schema", "set", "about", "conventions"]
    /// Sections of roles that are still to be built. Whoever builds one takes its name off this list and
    /// gives it a case below.
    static let notYet: Set<String> = []

    let json: JSONValue
    let now: UnixTime

    init(_ file: VectorFile) {
        json = file.json
        now = file.now
    }

    /// `nil` for a section that is not known.
    func run(_ section: String) async throws -> Count? {
        let body = try #require(json[section])
        switch section {
        // Wire and Sealing: VectorBoxes.swift, VectorEvents.swift, VectorWraps.swift.
        case "formats": return try members(body) { try format($0, $1) }
        case "keys": return try members(body) { try key($1) }
        case "hkdf": return try rows(body) { try derivation($0) }
        case "ecdh": return try ecdh(body)
        case "token_encrypt": return try rows(body) { try tokenEncrypt($0) }
        case "token_decrypt": return try rows(body) { try tokenDecrypt($0) }
        case "nip44": return try nip44(body)
        case "nip01": return try rows(body) { try nip01($0) }
        case "schnorr": return try rows(body) { try schnorr($0) }
        case "relay_lists_10050": return try rows(body) { try relayList($0) }
        case "auth_22242": return try rows(body) { try authentication($0) }
        case "relay_frames": return try rows(body) { try relayFrame($0) }
        case "gift_wrap_building": return try rows(body) { try building($0) }
        case "gift_wraps":
            let relay = try RelayVectors(self)
            return try await rows(body) { try await relay.giftWrap($0) && giftWrap($0) }
        case "decoys": return try rows(body) { try decoy($0) }
        // Device and origin: GossipVectors.swift.
        case "gossip", "token_store", "batching": return try GossipVectors(json).run(section)
        // Relay: RelayVectors.swift.
        case "replay":
            let relay = try RelayVectors(self)
            return try await rows(body) { try await relay.replay($0) }
        case "rate_limits":
            let relay = try RelayVectors(self)
            return try await rows(body) { try await relay.rateLimit($0) }
        case "push_requests": return try await RelayVectors(self).pushRequests(body)
        case "server_subscription":
            let relay = try RelayVectors(self)
            return try await rows(body["filters"]) { try await relay.subscription($0) }
        default: return nil
        }
    }

    // MARK: counting

    func rows(_ section: JSONValue?, _ holds: (JSONValue) throws -> Bool) throws -> Count {
        let rows = try #require(section?.array)
        var passed = 0
        for (index, row) in rows.enumerated() { passed += note(try holds(row), row, index) }
        return (passed, rows.count)
    }

    func rows(_ section: JSONValue?, _ holds: (JSONValue) async throws -> Bool) async throws -> Count {
        let rows = try #require(section?.array)
        var passed = 0
        for (index, row) in rows.enumerated() { passed += note(try await holds(row), row, index) }
        return (passed, rows.count)
    }

    private func members(_ section: JSONValue, _ holds: (String, JSONValue) throws -> Bool) throws -> Count {
        let members = try #require(section.object?.members)
        var passed = 0
        for member in members {
            if try holds(member.name, member.value) {
                passed += 1
            } else {
                VectorFile.say("  differs: \(member.name)")
            }
        }
        return (passed, members.count)
    }

    private func note(_ holds: Bool, _ row: JSONValue, _ index: Int) -> Int {
        if holds { return 1 }
        let name = row["name"]?.string ?? "row \(index)"
        guard row["firm"]?.bool == false else {
            VectorFile.say("  differs: \(name)")
            return 0
        }
        VectorFile.say("  differs where texts do: \(name)")
        return 1
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
