import EdwardsKeys
import Primitives
import PushModel
import PushTesting
import SessionPush
import Testing
import WireFormats

/// An account with its key, and devices of it, as the relay meets them: bodies are made here by hand.
struct PeerAccount: Sendable {
    let pair: Ed25519KeyPair
    let id: AccountID
    let isPerson: Bool

    /// - Parameter prefix: 5 for a person, 3 for a group.
    init(seed: UInt8, prefix: UInt8 = 5) throws {
        pair = try #require(Ed25519KeyPair(seed: Secret([UInt8](repeating: seed, count: 32))))
        isPerson = prefix == 5
        let key = isPerson ? try #require(EdwardsPoint.x25519(of: pair.publicKey)) : pair.publicKey.bytes
        id = try #require(AccountID(Secret([prefix] + key.reveal { Array($0) })))
    }

    var hex: String { Self.hex(id.bytes) }

    static func hex(_ secret: Secret) -> String { secret.reveal { Hex.encode($0) } }

    func sign(_ text: String) -> Secret { sign(Array(text.utf8)) }
    func sign(_ bytes: [UInt8]) -> Secret { bytes.withUnsafeBytes { pair.signature(over: $0) } }
}

/// One element of a call. Whatever a test changes is changed before it signs.
struct PeerCall {
    var account: PeerAccount
    var signer: PeerAccount
    var at = SessionRig.now.seconds
    var namespaces: [Int] = [0, 2]
    var wantsData = true
    var service = "apns"
    var token = String(repeating: "a1", count: 32)
    var key = String(repeating: "5c", count: 32)
    /// Members that stand in place of the usual ones, or beside them.
    var others: [(String, JSONValue)] = []

    init(_ account: PeerAccount) {
        self.account = account
        signer = account
    }

    var monitorText: String {
        "MONITOR\(account.hex)\(at)\(wantsData ? 1 : 0)\(namespaces.map { String($0) }.joined(separator: ","))"
    }

    var subscribe: JSONValue {
        json(
            monitorText,
            [
                ("namespaces", .array(namespaces.map { .number(JSONNumber(Int64($0))) })),
                ("data", .bool(wantsData)), ("enc_key", .string(key))
            ])
    }

    var unsubscribe: JSONValue { json("UNSUBSCRIBE\(account.hex)\(at)", []) }

    private func json(_ text: String, _ more: [(String, JSONValue)]) -> JSONValue {
        var members: [(String, JSONValue)] = [("pubkey", .string(account.hex))]
        if account.isPerson {
            members.append(("session_ed25519", .string(PeerAccount.hex(account.pair.publicKey.bytes))))
        }
        members += [
            ("sig_ts", .number(JSONNumber(at))), ("signature", .string(PeerAccount.hex(signer.sign(text)))),
            ("service", .string(service)), ("service_info", .object(["token": .string(token)]))
        ]
        members += more
        var object = JSONObject()
        for (name, value) in members + others { object[name] = value }
        return .object(object)
    }
}

/// What a device finds in a push.
struct OpenedPush {
    let metadata: JSONValue
    let data: [UInt8]?

    /// - Parameter message: as it was handed to the push service. `key`: the device's.
    init(_ message: ProviderMessage, key: String) throws {
        let plain = try Self.plain(message, key: key)
        #expect(plain.count.isMultiple(of: 256))
        (metadata, data) = try plain.reveal { plain in
            let end = try #require(plain.lastIndex { $0 != 0 })
            var list = BencodeReader(UnsafeRawBufferPointer(rebasing: plain[...end]), .strict)
            try list.beginList()
            #expect(try list.nextElement())
            let metadata = try JSONValue.parse(try list.readString())
            let data = try list.nextElement() ? Array(list.readString()) : nil
            if data != nil { #expect(try !list.nextElement()) }
            try list.end()
            return (metadata, data)
        }
    }

    /// Unsealed, with its padding.
    static func plain(_ message: ProviderMessage, key: String) throws -> Secret {
        let body = try (message.apns?.payload ?? message.fcm?.data)?.reveal { try JSONValue.parse($0) }
        let sealed = try Base64.decode(try #require(body?["enc_payload"]?.string))
        return try XChaCha20Poly1305.open(
            Array(sealed[24...]), with: [], key: Secret(try Hex.decode(Array(key.utf8))),
            nonce: Array(sealed[..<24]))
    }
}

extension StorageNotice {
    /// A message of a test.
    static func sample(
        _ account: PeerAccount, hash: String = "DW4L/OqQUUk/yDhTQb5viggmLznY08l8sXlCNW52etc",
        namespace: Int16 = 0, at: UnixTime = SessionRig.now, lasts: Duration = .seconds(86_400),
        data: [UInt8]? = Array("sealed for the account".utf8)
    ) -> StorageNotice {
        StorageNotice(
            account: account.id, hash: Secret(hash.utf8), namespace: namespace, timestamp: at,
            expiry: at + lasts, data: data.map { Secret($0) })
    }
}
