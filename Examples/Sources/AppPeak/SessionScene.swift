import AppSupport
import Crypto
import Foundation
import SessionPush

/// The phone that SessionApp has left, with 200 accounts, and as many messages seen as one remembers.
enum SessionScene {
    static func fill(_ left: LeftPhone) throws -> LeftPhone {
        var device = try makeDevice(left.kept)
        try device.use(token: .apns(bytes: [UInt8](repeating: 0xA5, count: 32)))
        // The first is the account that the push is for.
        for number in UInt8(0)..<200 {
            let seed = Secret((UInt8(0)..<32).map { $0 ^ number })
            try device.watch(WatchedAccount(SessionAccountKey(seed: seed)))
        }
        guard !device.due(at: now()).isEmpty else { throw Failure("200 accounts subscribe") }
        return LeftPhone(kept: try fillSeen(device.kept), push: left.push)
    }

    static func open(_ left: LeftPhone) throws {
        let device = try makeDevice(left.kept)
        guard case .show = try device.open(Delivered(json: left.push), at: now()) else {
            throw Failure("Session's push is a message")
        }
    }

    private static func makeDevice(_ kept: Secret) throws -> SessionDevice {
        let key = try RelayKey(text: "09" + String(repeating: "00", count: 31))
        return try SessionDevice(SessionServer(host: "push.example.org", key: key), keeping: kept)
    }

    /// No library of an app's seals 512 messages for it to see, so their digests are written into what is
    /// kept: rows of texts behind a head that has the hash of them.
    private static func fillSeen(_ kept: Secret) throws -> Secret {
        let json = try JSONSerialization.jsonObject(with: kept.reveal { Data($0) })
        guard var rows = json as? [[String]], rows.count > 4, rows[0].count == 3, rows[3].isEmpty else {
            throw Failure("what is kept has rows, and no message was seen")
        }
        rows[3] = (0..<512).map { String(repeating: "0", count: 29) + String(1_000 + $0).suffix(3) }
        rows[0][2] = SHA256.hash(data: Data(text(rows.dropFirst()).utf8))
            .map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
        return Secret(text(rows[...]).utf8)
    }

    /// None of the texts has a character that JSON escapes.
    private static func text(_ rows: ArraySlice<[String]>) -> String {
        let lines = rows.map { row in "[" + row.map { "\"\($0)\"" }.joined(separator: ",") + "]" }
        return "[" + lines.joined(separator: ",") + "]"
    }
}
