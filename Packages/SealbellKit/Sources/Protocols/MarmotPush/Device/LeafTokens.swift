package import PushModel
package import Secp256k1Keys
import WireFormats

/// What is known of one leaf's tokens.
package struct LeafTokens: Sendable {
    /// What a leaf said by tags, or another member said of it: a whole set.
    struct Said: Sendable {
        var tokens: [GossipToken]
        var addedAt: UnixTime
        /// Where the owner's own message stands; `nil` for hearsay.
        var order: MessageOrder?
        /// Of this device's own token, to tell whether the system gave another since.
        var fingerprint: [UInt8]?

        func isOld(at now: UnixTime) -> Bool { now.since(addedAt) > MarmotLimits.tokenLife }
    }

    /// Whose leaf it was when this was learned.
    package let member: XOnlyKey
    /// `seed` and `mip05`. An empty set with an order is what an owner's removal leaves behind.
    var said: Said?
    /// `push-v1`: one record for each key, the greatest; a removal among them is a tombstone.
    package internal(set) var records: [PushRecord] = []

    init(member: XOnlyKey) { self.member = member }

    package var isEmpty: Bool { said == nil && records.isEmpty }

    /// Every token in force.
    package var tokens: [GossipToken] { (said?.tokens ?? []) + records.compactMap(\.token) }

    /// When tokens said by tags were learned; records bear their owner's stamp instead.
    package var addedAt: UnixTime? { said?.tokens.isEmpty == false ? said?.addedAt : nil }

    // MARK: at rest

    /// As JSON, for whatever the app keeps its state in. It names devices: keep it sealed.
    package func encoded() -> Secret {
        let sets = (said?.tokens ?? []).reduce(0) { $0 + 2 * $1.box.count + 700 }
        var writer = JSONWriter(reserving: 400 + sets + records.count * MarmotLimits.recordBytes)
        writer.beginObject()
        writer.member("member", member.hex)
        if let said { Self.write(said, into: &writer) }
        if !records.isEmpty {
            writer.beginArray("records")
            for record in records { record.write(into: &writer) }
            writer.endArray()
        }
        writer.endObject()
        return writer.takeSecret()
    }

    private static func write(_ said: Said, into writer: inout JSONWriter) {
        writer.member("added", said.addedAt.milliseconds)
        if let order = said.order {
            writer.member("epoch", String(order.epoch))
            writer.member("index", String(order.index))
        }
        if let fingerprint = said.fingerprint {
            writer.member("fingerprint", Hex.encode(fingerprint))
        }
        writer.beginArray("tokens")
        for token in said.tokens {
            writer.beginArray()
            writer.string(token.format.rawValue)
            writer.string(token.server.hex)
            writer.string(token.box.reveal { Base64.text($0) })
            if let hint = token.relayHint { writer.string(hint) }
            writer.endArray()
        }
        writer.endArray()
    }

    /// - Returns: `nil` for anything that ``encoded()`` did not make.
    package init?(decoding secret: Secret) {
        // Whatever is wrong with it, it is not ours.
        let value = secret.reveal { try? JSONValue.parse($0, limitBytes: MarmotLimits.leafBytes) }
        guard let value, let member = value["member"]?.string.flatMap({ XOnlyKey(hex: $0) }) else {
            return nil
        }
        self.init(member: member)
        if let added = value["added"]?.int64 {
            guard let rows = value["tokens"]?.array else { return nil }
            let tokens = rows.compactMap(Self.token)
            guard tokens.count == rows.count else { return nil }
            var order: MessageOrder?
            if let epoch = value["epoch"]?.string, let index = value["index"]?.string {
                guard let epoch = UInt64(epoch), let index = UInt64(index) else { return nil }
                order = MessageOrder(epoch: epoch, index: index)
            }
            let fingerprint = value["fingerprint"]?.string.flatMap { try? Hex.decode($0.utf8) }  // Ours.
            said = Said(
                tokens: tokens, addedAt: UnixTime(milliseconds: added), order: order,
                fingerprint: fingerprint)
        }
        for entry in value["records"]?.array ?? [] {
            let list: PushRecord.List = entry["encrypted_token"] == nil ? .removals : .tokens
            // Whatever is wrong with it, it is not ours.
            let record = withBytes(entry.serialized()) { try? PushRecord.read($0, list) }
            guard let record else { return nil }
            records.append(record)
        }
    }

    private static func token(_ row: JSONValue) -> GossipToken? {
        // Whatever is wrong with it, it is not ours.
        guard let format = row[0]?.string.flatMap({ TokenFormat(rawValue: $0) }),
            let server = row[1]?.string.flatMap({ XOnlyKey(hex: $0) }),
            let box = row[2]?.string.flatMap({ try? Base64.decode($0) })
        else { return nil }
        // A box of another size is not ours either.
        return try? GossipToken(format, box: Secret(box), server: server, relayHint: row[3]?.string)
    }
}
