public import PushModel
import SealbellKit
import Secp256k1Keys
import WireFormats

extension MarmotDevice {
    private static let title: StaticString = "marmot-device"

    /// What to keep over a restart, one for each group: the others' encrypted tokens, and rumors that the
    /// group has not got; at most ``MarmotLimits/deviceKeptBytes``. No key of the account, no device token.
    /// Of a group with more tokens than have room, those of the highest leaves are learned again.
    public var kept: Secret {
        let head = [
            Secret(cell: setup.identity.publicKey.hex), Secret(cell: Hex.encode(groupID)),
            Secret(cell: hasAsked), Secret(cell: leaf.isOptedOut), Secret(cell: state.rawValue),
            Secret(cell: since), Secret(cell: leaf.schedule.refreshAt)
        ]
        let said = owed.filter { !$0.isAnswer && !$0.isOutdated }.map(\.rumor)
        var rows = [head, said]
        var room = MarmotLimits.deviceKeptBytes / 2 - said.reduce(0) { $0 + 2 * $1.count }
        let own = group?.ownLeaf
        let places = leaf.tokens.leaves.keys.sorted {
            ($0 == own ? 0 : 1, $0) < ($1 == own ? 0 : 1, $1)
        }
        for place in places {
            guard let entry = leaf.tokens.leaves[place], !entry.isEmpty else { continue }
            let body = entry.encoded()
            room -= 2 * body.count + 32
            guard room > 0 else { break }
            rows.append([Secret(cell: String(place)), body])
        }
        return KeptForm.write(Self.title, rows)
    }

    /// - Throws: `.malformedKept`.
    mutating func restore(_ kept: Secret) throws(DeviceError) {
        let rows = try KeptForm.read(Self.title, kept, atMost: MarmotLimits.deviceKeptBytes)
        let fault = DeviceError(.malformedKept, MarmotErrorCode.malformedRow.rawValue)
        guard rows.count >= 2, rows[0].count == 7, rows[0][0].word == setup.identity.publicKey.hex,
            let id = rows[0][1].fromHex, let hasAsked = rows[0][2].flag, let isOptedOut = rows[0][3].flag,
            let state = DeviceStatus.State(rawValue: rows[0][4].word), let since = rows[0][5].moment,
            let refreshAt = rows[0][6].moment, rows[1].count <= MarmotLimits.owedRumors
        else { throw fault }
        var leaves: [UInt32: LeafTokens] = [:]
        for row in rows[2...] {
            guard row.count == 2, let place = Int64(row[0].word).flatMap({ UInt32(exactly: $0) }),
                leaves[place] == nil, let entry = LeafTokens(decoding: row[1])
            else { throw fault }
            leaves[place] = entry
        }
        for rumor in rows[1] {
            // Whatever is wrong with it, it is not ours.
            guard let event = try? NostrEvent.parse(rumor, .rumor), event.pubkey == setup.identity.publicKey
            else { throw fault }
            owed.append(Owed(event, rumor: rumor))
        }
        leaf = MarmotLeaf(
            setup.settings, identity: setup.identity, tokens: GroupTokens(leaves), now: .distantPast)
        (leaf.isOptedOut, leaf.schedule.refreshAt) = (isOptedOut, refreshAt)
        (groupID, self.hasAsked) = (id.reveal { Array($0) }, hasAsked)
        (self.state, self.since) = (state, since)
    }
}
