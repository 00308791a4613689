import Primitives
import PushModel
import WireFormats

/// The secret that a host must show for a transfer (§5.2): 64 hexadecimal digits that the relay need not
/// keep, because it knows them again (decision 0056).
///
///     end (5 bytes, Unix seconds) ‖ random (11) ‖ first 16 bytes of HMAC-SHA256
///
/// over purpose, both of the former, the server's id and key hash, and its host. So it is good for one host,
/// for ten minutes, and until that server's key changes, which the transfer itself does: it serves once. Any
/// number of them are valid at the same time, so that one request does not end another's.
struct TransferChallenge {
    /// What it is made with, and known again.
    struct Key {
        let secret: Secret
        /// Days since the epoch: of the day on which it is given out.
        let day: Int64
    }

    private static let endBytes = 5
    private static let randomBytes = 11
    private static let codeBytes = 16

    /// 64 characters.
    static func make(
        for server: ZulipServer, at host: ZulipHostname, _ key: Key, end: UnixTime, random: [UInt8]
    ) -> Secret {
        let seconds = UInt64(max(0, end.seconds))
        let open =
            (0..<endBytes).reversed().map { UInt8(truncatingIfNeeded: seconds >> (8 * UInt64($0))) }
            + random.prefix(randomBytes)
        let code = code(open, server, host, key).reveal { Array($0) }
        return Secret(Hex.encode(open + code).utf8)
    }

    /// Until when a text says that it is good; `nil` for one of another form. Believed only with
    /// ``isRight(_:for:at:_:)``.
    static func end(of shown: Secret) -> UnixTime? {
        bytes(of: shown).map { bytes in
            UnixTime(seconds: bytes.prefix(endBytes).reduce(0) { $0 << 8 | Int64($1) })
        }
    }

    /// Whether this relay has made it for that server and host.
    static func isRight(
        _ shown: Secret, for server: ZulipServer, at host: ZulipHostname, _ key: Key
    ) -> Bool {
        guard let bytes = bytes(of: shown) else { return false }
        let (open, code) = (Array(bytes.dropLast(codeBytes)), bytes.suffix(codeBytes))
        // Compared in constant time, as all secrets are.
        return self.code(open, server, host, key) == Secret(code)
    }

    private static func bytes(of shown: Secret) -> [UInt8]? {
        // What is no hexadecimal text is no secret of ours, whatever else it is.
        let bytes = shown.reveal { text in try? Hex.decode(text) }
        guard let bytes, bytes.count == endBytes + randomBytes + codeBytes else { return nil }
        return bytes
    }

    private static func code(
        _ open: [UInt8], _ server: ZulipServer, _ host: ZulipHostname, _ key: Key
    ) -> Secret {
        var message = Array("sealbell/transfer/".utf8) + open + server.id.bytes
        server.keyHash.reveal { message += $0 }
        message += host.text.utf8
        defer { message.withUnsafeMutableBytes { wipe($0) } }
        let code = message.withUnsafeBytes { HMAC256.code(key: key.secret, $0) }
        return code.reveal { Secret($0.prefix(codeBytes)) }
    }
}

extension TransferChallenge.Key {
    private static let dayMilliseconds: Int64 = 86_400_000
    private static let bytes = 32

    static func day(_ time: UnixTime) -> Int64 { max(0, time.milliseconds) / dayMilliseconds }

    /// `nil` for a record that is none, or for none.
    init?(_ record: Record?, day: Int64) {
        guard let record, record.body.count == Self.bytes else { return nil }
        self.init(secret: record.body, day: day)
    }

    static func new(_ day: Int64, _ world: World) -> TransferChallenge.Key {
        var bytes = world.randomBytes(Self.bytes)
        defer { bytes.withUnsafeMutableBytes { wipe($0) } }
        return TransferChallenge.Key(secret: Secret(bytes), day: day)
    }

    /// The record to write; it goes when nothing is good any more that was made with it. An hour more, for
    /// relays on one store whose clocks differ.
    func record(_ keys: ZulipRecordNames, now: UnixTime) -> Record {
        let end = UnixTime(milliseconds: (day + 1) * Self.dayMilliseconds)
        return Record(
            key: keys.challengeKey(day), touchedAt: now,
            expiresAt: end + ZulipLimits.challengeLife + .seconds(3_600), body: secret)
    }
}
