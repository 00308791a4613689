import Primitives
import PushModel
package import Secp256k1Keys
import WireFormats

/// Proof that a member of a group made a record (docs/conformance/marmot.md): a signature over the id of an
/// event of kind 451 that is never published.
package enum OwnerProof {
    /// Which signatures a group accepts.
    package enum Acceptance: Sendable {
        /// Only kind 451.
        case current
        /// Also kind 450, and a signature over the record's digest, as groups of mid-2026 made them.
        case legacy
    }

    /// Makes a record and signs it.
    ///
    /// - Parameter group: raw id of the MLS group.
    /// - Parameter token: `nil` for a removal.
    /// - Parameter auxiliary: 32 random bytes (BIP-340).
    package static func sign(
        _ key: PushRecord.Key, fingerprint: [UInt8], token: GossipToken?, ownerTimestamp: Int64,
        group: [UInt8], by owner: Secp256k1KeyPair, auxiliary: [UInt8]
    ) -> PushRecord {
        precondition(owner.publicKey == key.member && fingerprint.count == PushRecord.fingerprintBytes)
        let unsigned = PushRecord(
            key: key, fingerprint: fingerprint, token: token, ownerTimestamp: ownerTimestamp,
            ownerSignature: [])
        return PushRecord(
            key: key, fingerprint: fingerprint, token: token, ownerTimestamp: ownerTimestamp,
            ownerSignature: owner.sign(eventID(unsigned, group: group), auxiliary: auxiliary))
    }

    /// Whether the member that the record names signed it for this group.
    package static func verifies(
        _ record: PushRecord, group: [UInt8], _ acceptance: Acceptance = .current
    ) -> Bool {
        let member = record.key.member
        if member.verifies(record.ownerSignature, of: eventID(record, group: group)) { return true }
        guard acceptance == .legacy else { return false }
        return member.verifies(
            record.ownerSignature, of: eventID(record, group: group, kind: NostrKind.tokenRemoval))
            || member.verifies(record.ownerSignature, of: digest(record, group: group))
    }

    /// Id of the event of kind 451.
    package static func eventID(_ record: PushRecord, group: [UInt8]) -> [UInt8] {
        eventID(record, group: group, kind: NostrKind.ownerProof)
    }

    private static func eventID(_ record: PushRecord, group: [UInt8], kind: Int) -> [UInt8] {
        let key = record.key
        var tags = [
            ["d", domain(record)], ["group_id", Hex.encode(group)], ["member_id", key.member.hex],
            ["leaf_index", String(key.leaf)], ["platform", key.platform.name],
            ["server_pubkey", key.server.hex], ["token_fingerprint", record.fingerprintText],
            ["owner_ts", String(record.ownerTimestamp)], ["relay_hint", record.token?.relayHint ?? ""]
        ]
        if record.token != nil { tags.append(["encrypted_token_encoding", "base64"]) }
        let content = record.token.map { $0.box.reveal { Secret(Base64.encode($0)) } } ?? Secret([])
        return NostrEvent.id(of: key.member, createdAt: 0, kind: kind, tags: tags, content: content)
    }

    /// SHA-256 of the record's bytes: it decides between two records of the same millisecond.
    ///
    /// Domain ‖ u16 length, group ‖ member 32 ‖ leaf u32 ‖ platform byte ‖ server 32 ‖ fingerprint 12 ‖
    /// owner_ts u64 ‖ u16 length, hint ‖ encrypted token; all big-endian.
    ///
    /// - Returns: 32 bytes.
    package static func digest(_ record: PushRecord, group: [UInt8]) -> [UInt8] {
        let key = record.key
        let hint = Array((record.token?.relayHint ?? "").utf8)
        var head = Array(domain(record).utf8)
        head += bigEndian(UInt16(truncatingIfNeeded: group.count)) + group + key.member.bytes
        head += bigEndian(key.leaf) + [key.platform.rawValue] + key.server.bytes + record.fingerprint
        head += bigEndian(UInt64(bitPattern: record.ownerTimestamp))
        head += bigEndian(UInt16(truncatingIfNeeded: hint.count)) + hint
        return head.withUnsafeBytes { head in
            guard let token = record.token else { return SHA256.hash(joining: [head]) }
            return token.box.reveal { SHA256.hash(joining: [head, $0]) }
        }
    }

    private static func domain(_ record: PushRecord) -> String {
        record.token == nil ? "marmot-push-token-removal-v1" : "marmot-push-token-record-v1"
    }

    private static func bigEndian(_ value: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: value.bigEndian) { Array($0) }
    }
}
