import PushModel
package import Secp256k1Keys
import WireFormats

/// An owner's statement in `push-v1` about one token: that it is valid, or no longer valid
/// (docs/conformance/marmot.md). It carries the owner's signature, so that others may pass it on.
package struct PushRecord: Sendable {
    /// Owner, push service and server of a token: one record is in force for each such combination.
    package struct Key: Sendable, Hashable {
        package let member: XOnlyKey
        package let leaf: UInt32
        package let platform: DeviceTarget.Platform
        package let server: XOnlyKey

        package init(member: XOnlyKey, leaf: UInt32, platform: DeviceTarget.Platform, server: XOnlyKey) {
            self.member = member
            self.leaf = leaf
            self.platform = platform
            self.server = server
        }
    }

    package static let version = "marmot-push-v1"
    static let fingerprintBytes = 12

    package let key: Key
    /// First 12 bytes of SHA-256 of platform byte ‖ device token.
    package let fingerprint: [UInt8]
    /// The token; `nil` in a removal.
    package let token: GossipToken?
    /// Unix milliseconds by the owner's clock.
    package let ownerTimestamp: Int64
    /// 64 bytes (``OwnerProof``).
    package let ownerSignature: [UInt8]

    init(
        key: Key, fingerprint: [UInt8], token: GossipToken?, ownerTimestamp: Int64, ownerSignature: [UInt8]
    ) {
        self.key = key
        self.fingerprint = fingerprint
        self.token = token
        self.ownerTimestamp = ownerTimestamp
        self.ownerSignature = ownerSignature
    }

    /// The fingerprint as it is written.
    package var fingerprintText: String { "sha256:" + Hex.encode(fingerprint) }

    // MARK: JSON

    /// Which list of an event's content.
    enum List: String { case tokens, removals }

    /// Reads the content of a 447, 448 or 449.
    ///
    /// - Returns: one item for each entry; `nil` for a malformed one, which does not affect the others.
    /// - Throws: `.malformedGossip`; `.unknownVersion`; `.tooLarge` for more than
    ///   ``MarmotLimits/recordsOfList`` entries; then all are refused.
    static func readList(_ content: Secret, _ list: List) throws(MarmotError) -> [PushRecord?] {
        try content.reveal { (raw) throws(MarmotError) in
            guard raw.count <= MarmotLimits.frameBytes else { throw MarmotError(.tooLarge) }
            var version: Bool?
            var entries: [UnsafeRawBufferPointer] = []
            do throws(FormatError) {
                var reader = JSONReader(raw, depthLimit: MarmotLimits.jsonDepth)
                try reader.beginObject()
                while let name = try reader.nextMember() {
                    if name.equals("v") {
                        version = try reader.readString().equals("marmot-push-v1")
                    } else if name.string() == list.rawValue {
                        entries = try readEntries(&reader)
                    } else {
                        try reader.skipValue()
                    }
                }
                try reader.end()
            } catch { throw MarmotError(error.code == .tooLarge ? .tooLarge : .malformedGossip) }
            guard let version else { throw MarmotError(.malformedGossip) }
            guard version else { throw MarmotError(.unknownVersion) }
            return entries.map { try? read($0, list) }  // A bad entry voids itself.
        }
    }

    private static func readEntries(
        _ reader: inout JSONReader
    ) throws(FormatError) -> [UnsafeRawBufferPointer] {
        var entries: [UnsafeRawBufferPointer] = []
        try reader.beginArray()
        while try reader.nextElement() {
            guard entries.count < MarmotLimits.recordsOfList else { throw FormatError(.tooLarge) }
            entries.append(try reader.skipValue())
        }
        return entries
    }

    /// Reads one entry.
    static func read(_ raw: UnsafeRawBufferPointer, _ list: List) throws(MarmotError) -> PushRecord {
        var fields = RecordFields()
        do { try fields.read(raw) } catch { throw MarmotError(.malformedGossip) }
        return try fields.record(list)
    }

    /// The content of a 447, 448 or 449.
    static func writeList(_ records: [PushRecord], _ list: List) -> Secret {
        var writer = JSONWriter(reserving: 64 + records.count * MarmotLimits.recordBytes)
        writer.beginObject()
        writer.member("v", version)
        writer.key(list.rawValue)
        writer.beginArray()
        for record in records { record.write(into: &writer) }
        writer.endArray()
        writer.endObject()
        return writer.takeSecret()
    }

    func write(into writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("member_id_hex", key.member.hex)
        writer.member("leaf_index", Int64(key.leaf))
        writer.member("platform", key.platform.name)
        writer.member("token_fingerprint", fingerprintText)
        writer.member("server_pubkey_hex", key.server.hex)
        if let token {
            if let hint = token.relayHint {
                writer.member("relay_hint", hint)
            }
            writer.member("encrypted_token", token.box.reveal { Base64.text($0) })
        }
        writer.member("owner_ts", ownerTimestamp)
        writer.member("owner_sig", Hex.encode(ownerSignature))
        writer.endObject()
    }
}

/// The members of an entry as they come. Unknown ones are ignored.
private struct RecordFields {
    var member: XOnlyKey?
    var leaf: UInt32?
    var platform: DeviceTarget.Platform?
    var fingerprint: [UInt8]?
    var server: XOnlyKey?
    var hint: String?
    var box: Secret?
    var timestamp: Int64?
    var signature: [UInt8]?

    mutating func read(_ raw: UnsafeRawBufferPointer) throws(FormatError) {
        var reader = JSONReader(raw, depthLimit: MarmotLimits.jsonDepth)
        try reader.beginObject()
        while let name = try reader.nextMember() {
            if name.equals("member_id_hex") {
                member = XOnlyKey(try reader.readHex(count: 32))
            } else if name.equals("server_pubkey_hex") {
                server = XOnlyKey(try reader.readHex(count: 32))
            } else if name.equals("leaf_index") {
                leaf = UInt32(try reader.readCount(upTo: Int64(UInt32.max)))
            } else if name.equals("platform") {
                let text = try reader.readString()
                platform = DeviceTarget.Platform.allCases.first { $0.name == text.string() }
            } else if name.equals("token_fingerprint") {
                fingerprint = Self.fingerprint(try reader.readString())
            } else if name.equals("relay_hint") {
                if try !reader.readNull() { hint = try reader.readString().string() }
            } else if name.equals("encrypted_token") {
                box = Self.box(try reader.readString())
            } else if name.equals("owner_ts") {
                timestamp = try reader.readCount(upTo: .max)
            } else if name.equals("owner_sig") {
                signature = try reader.readHex(count: 64)
            } else {
                try reader.skipValue()
            }
        }
        try reader.end()
    }

    func record(_ list: PushRecord.List) throws(MarmotError) -> PushRecord {
        guard let member, let leaf, let platform, let fingerprint, let server, let timestamp, let signature,
            list == .removals || box != nil
        else { throw MarmotError(.malformedGossip) }
        var token: GossipToken?
        if list == .tokens, let box {
            token = try GossipToken(.pushV1, box: box, server: server, relayHint: hint)
        }
        return PushRecord(
            key: PushRecord.Key(member: member, leaf: leaf, platform: platform, server: server),
            fingerprint: fingerprint, token: token, ownerTimestamp: timestamp, ownerSignature: signature)
    }

    private static func fingerprint(_ text: JSONStringSlice) -> [UInt8]? {
        let prefix = Array("sha256:".utf8)
        guard !text.hasEscapes, text.raw.starts(with: prefix) else { return nil }
        return LowerHex.decode(
            UnsafeRawBufferPointer(rebasing: text.raw[prefix.count...]), count: PushRecord.fingerprintBytes)
    }

    private static func box(_ text: JSONStringSlice) -> Secret? {
        guard !text.hasEscapes, let count = Base64.decodedCount(text.raw),
            count == TokenFormat.pushV1.tokenBytes
        else { return nil }
        return try? Secret(count: count) { (out) throws(FormatError) in  // No base64 is no token.
            try Base64.decode(text.raw, .standard, into: out)
        }
    }
}
