import Primitives
import PushModel
import Testing
import WireFormats
import ZulipPush

/// Accounts with given ids and keys, put together as what an app has kept.
enum KeptPhone {
    /// - Parameter former: ids that had the same key, until a day before.
    static func zap(
        _ account: ZulipAccount, id: String, key: Secret, former: [String] = [], at now: UnixTime
    ) throws -> ZulipRoutine {
        let time = { (time: UnixTime) in String(time.milliseconds) }
        let before = now - .seconds(86_400)
        var rows = [
            row("account", account.realmURL, String(account.userID)), row("marker", marker),
            row("login", time(before)), row("route", "zap"),
            row("current", "zap", id, "") + [key.hexDigits, text("yes")]
        ]
        for id in former {
            rows.append(row("former", "zap", id) + [key.hexDigits] + row(time(before), "no", ""))
        }
        rows.append(row("shown", "active", "", time(before), "no"))
        return try ZulipRoutine(keeping: kept(rows))
    }

    static let marker = String(repeating: "07", count: 16)

    /// Behind a head with the rows' digest.
    static func kept(_ rows: [[Secret]], version: String = "1") -> Secret {
        let digest = Hex.encode(SHA256.hash(KeptRows.write(rows)))
        return KeptRows.write([row("zulip-device", version, digest)] + rows)
    }

    static func row(_ texts: String...) -> [Secret] { texts.map { text($0) } }
    static func text(_ text: String) -> Secret { Secret(text.utf8) }
}
