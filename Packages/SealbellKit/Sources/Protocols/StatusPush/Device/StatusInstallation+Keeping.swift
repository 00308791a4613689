import Primitives
package import PushModel
package import Secp256k1Keys
import WireFormats

extension StatusInstallation {
    /// The same installation after a restart.
    ///
    /// - Throws: `.malformedRow` for what ``rows`` has not written.
    package init(rows: [[Secret]], key: Secp256k1KeyPair) throws(StatusError) {
        guard rows.count >= 2, rows[0].count == 10, AccessToken.isCanonical(rows[0][0]),
            let rowKey = rows[0][1].fromHex, rowKey.count == 32, let version = UInt64(rows[0][3].word),
            version <= StatusLimits.highestVersion,
            rows[0][4].count == 0 || AccessToken.isCanonical(rows[0][4])
        else { throw StatusError(.malformedRow) }
        let head = rows[0]
        self.key = key
        self.rowKey = rowKey
        installationID = head[0].word
        isReceiving = head[2].word == "on"
        self.version = version
        accessToken = head[4].count == 0 ? nil : head[4]
        told = head[5].fromHex.flatMap { $0.reveal { Digest16($0) } }
        tokenIsForContacts = head[6].word == "contacts"
        advertises = head[7].word == "advertise"
        lastAdvertisement = EndRows.time(head[8])
        if head[9].count > 0 {
            guard let topicKey = EndRows.topicKey(head[9]) else {
                throw StatusError(.malformedRow)
            }
            contactTopicKey = topicKey
        }
        for text in rows[1] {
            guard let digest = text.fromHex.flatMap({ $0.reveal { Digest16($0) } }) else {
                throw StatusError(.malformedRow)
            }
            tokenContacts.insert(digest)
        }
        for row in rows[2...] {
            switch row.first?.word {
            case "server":
                guard let one = ServerStanding(row.dropFirst()) else { throw StatusError(.malformedRow) }
                standings.append(one)
            case "other":
                guard others.add(row: Array(row.dropFirst())) else { throw StatusError(.malformedRow) }
            default: throw StatusError(.malformedRow)
            }
        }
        guard standings.count <= 2 * StatusLimits.deviceServers,
            Set(standings.map(\.server.compressed)).count == standings.count
        else { throw StatusError(.malformedRow) }
    }

    /// What to keep over a restart: the access token is in it, and no key of the account.
    package var rows: [[Secret]] {
        var rows: [[Secret]] = [
            [
                Secret(installationID.utf8), rowKey.hexDigits, Secret((isReceiving ? "on" : "off").utf8),
                Secret(String(version).utf8), accessToken ?? Secret([]),
                told.map { Secret(Hex.encode($0.bytes).utf8) } ?? Secret([]),
                Secret((tokenIsForContacts ? "contacts" : "anybody").utf8),
                Secret((advertises ? "advertise" : "").utf8), EndRows.text(lastAdvertisement),
                contactTopicKey?.hexDigits ?? Secret([])
            ],
            tokenContacts.sorted().map { Secret(Hex.encode($0.bytes).utf8) }
        ]
        for one in standings { rows.append([Secret("server".utf8)] + one.row) }
        for row in others.rows { rows.append([Secret("other".utf8)] + row) }
        return rows
    }
}
