import Primitives
public import PushModel
import SealbellKit
import WireFormats

extension SessionDevice {
    private static let title: StaticString = "sealbell session device"

    /// The key that opens pushes, subscriptions, what is to be taken back, and the memory of repeats: some
    /// 300 bytes an account and 20 KiB, at most 4 MiB. No account's key is in it. Save it after each answer,
    /// and together with each message that was ``stored(_:)``.
    public var kept: Secret {
        let head = [
            Secret(hexDigitsOf: serverName), Secret(cell: routine.isUnwanted), Secret(cell: askedAt)
        ]
        return KeptForm.write(Self.title, [head] + routine.rows)
    }

    init(_ server: SessionServer, keeping kept: Secret) throws(DeviceError) {
        let rows = try KeptForm.read(Self.title, kept, atMost: SessionLimits.keptBytes)
        guard let head = rows.first, head.count == 3, head[0].count == 2 * 16,
            let isUnwanted = head[1].flag, let askedAt = head[2].moment
        else { throw DeviceError(.malformedKept) }
        do { self.init(server, try SessionRoutine(rows: Array(rows[1...]))) } catch {
            throw DeviceError(.malformedKept, error.codeText)
        }
        (routine.isUnwanted, self.askedAt) = (isUnwanted, askedAt)
        if !(head[0] == Secret(hexDigitsOf: serverName)) { routine.forgetServer() }
    }

    /// Another server, or another key of it, has another.
    private var serverName: Digest16 {
        KeyedHash.digest16(key: routine.encKey) { hash in
            hash.update(server.url)
            hash.update(server.onion?.key ?? Secret([]))
        }
    }
}

extension SessionRoutine {
    /// The server knows of no account.
    mutating func forgetServer() {
        for name in standings.keys {
            standings[name]?.renewedAt = nil
            standings[name]?.dueAt = .distantPast
            standings[name]?.failures = 0
        }
    }
}
