import Primitives
import PushModel
import PushTesting
import Testing
import WireFormats
import ZulipPush

/// Boxes open with the right key and untouched, and in no other case (docs/conformance/zulip.md).
@Suite("Zulip sealing")
struct ZulipSealingTests {
    private static let seed: UInt64 = 20

    private func key(_ byte: UInt8) throws -> PushKey {
        try PushKey(base64: Secret(Base64.encode([0x31] + [UInt8](repeating: byte, count: 32))))
    }

    private static func target(_ key: PushKey) -> ZulipTarget {
        ZulipTarget(kind: .fcm, tokenID: TokenID(1), pushKeyID: 7, key: key)
    }

    private static func message(_ content: String) -> ZulipNotification {
        ZulipNotification(
            realmURL: "https://chat.example.org", realmName: "Chat", userID: 7,
            body: .message(
                ZulipMessage(
                    id: 5, time: 1_800_000_000, content: content, senderID: 8, senderName: "Iago",
                    senderAvatarURL: "https://chat.example.org/a.png",
                    recipient: .channel(id: 3, name: "general", topic: "swimming"))))
    }

    /// The sealed content that an origin makes.
    private func seal(
        _ notification: ZulipNotification, _ key: PushKey, padding: ContentPadding = .steps
    ) throws -> Secret {
        var random = SeededRandom(seed: Self.seed)
        let (origin, _) = ZulipOrigin.invent(version: "12.0", using: &random)
        let calls = try origin.notify(
            notification, to: [Self.target(key)], realm: "0ec3eedd-6233-4c5e-a000-b9942be3494e",
            padding: padding, using: &random)
        let json = try #require(calls.first).body.reveal { try JSONValue.parse($0) }
        let data = json["push_requests"]?[0]?["payload"]?["encrypted_data"]?.string
        return Secret(try #require(data).utf8)
    }

    private func opens(_ bytes: [UInt8], _ key: PushKey) -> Bool {
        (try? ContentBox.open(Secret(Base64.encode(bytes)), with: key)) != nil  // The question itself.
    }

    @Test("A push key reads back from its text, and from no other length or tag")
    func pushKey() throws {
        let bytes = [0x31] + (0..<32).map { UInt8($0) }
        let text = Base64.encode(bytes)
        #expect(text.count == 44)
        #expect(try PushKey(base64: Secret(text)).base64 == Secret(text))
        for length in 0..<text.count {
            #expect(throws: ZulipError(.invalidPushKey), "length \(length)") {
                try PushKey(base64: Secret(text[..<length]))
            }
        }
        for tag in UInt8.min ... .max where tag != 0x31 {
            #expect(throws: ZulipError(.invalidPushKey), "tag \(tag)") {
                try PushKey(base64: Secret(Base64.encode([tag] + bytes.dropFirst())))
            }
        }
        for count in [32, 34] {
            #expect(throws: ZulipError(.invalidPushKey)) {
                try PushKey(base64: Secret(Base64.encode([UInt8](repeating: 0x31, count: count))))
            }
        }
    }

    @Test("A content opens whole and with its key only: cut, changed or under another key it does not")
    func content() throws {
        let key = try key(1)
        let sealed = try seal(Self.message("hi"), key, padding: .none)
        let bytes = try sealed.reveal { try Base64.decode(Array($0)) }
        #expect(opens(bytes, key))
        #expect(!opens(bytes, try self.key(2)))
        for length in 0..<bytes.count { #expect(!opens(Array(bytes[..<length]), key), "length \(length)") }
        #expect(!opens(bytes + [0], key))
        for index in bytes.indices {
            var changed = bytes
            changed[index] ^= 1 << UInt8(index % 8)
            #expect(!opens(changed, key), "byte \(index)")
        }
        let text = sealed.reveal { Array($0) }
        for length in 0..<text.count {
            #expect(throws: ZulipError(.doesNotOpen), "length \(length)") {
                try ContentBox.open(Secret(text[..<length]), with: key)
            }
        }
    }

    @Test("A padded content has exactly one of four sizes, and the sizes fit a push")
    func padding() throws {
        let key = try key(1)
        #expect(ContentPadding.sizes == [512, 1_024, 2_048, 2_688])
        var seen: Set<Int> = []
        for length in 0...200 {
            // Four bytes each, so that the steps beyond the first are reached.
            let content = String(repeating: "\u{1F514}", count: length)
            let bare = try ContentBox.open(try seal(Self.message(content), key, padding: .none), with: key)
            let sealed = try seal(Self.message(content), key)
            let padded = try ContentBox.open(sealed, with: key)
            let size = try #require(ContentPadding.sizes.first(where: { $0 >= padded.count }))
            #expect(padded.count == size, "content of \(length)")
            // The next size that has room for the member, which takes 13 bytes without its value.
            let next = ContentPadding.sizes.first { $0 >= bare.count + 13 }
            #expect(next == size, "content of \(length)")
            #expect(sealed.count == 4 * ((size + 40 + 2) / 3))
            seen.insert(size)
        }
        #expect(seen.count >= 2)
        #expect(4 * ((2_688 + 40 + 2) / 3) + 128 <= ZulipLimits.payloadBytes)
    }

    @Test("Padding changes nothing that a device reads")
    func paddedContent() throws {
        let key = try key(1)
        let account = ZulipAccount(realmURL: "https://chat.example.org", userID: 7)
        let device = ZulipRoutine(
            account: account, keys: [HeldPushKey(id: 7, key: key, createdAt: .distantPast)])
        let bodies: [ZulipNotification.Body] = [
            Self.message("a \"quoted\" \\ \n\u{1F514}").body, .remove([3, 1, 2]), .remove([]), .test(time: 9),
            .message(
                ZulipMessage(
                    id: 1, time: 2, content: "", senderID: 3, senderName: "é", senderAvatarURL: "",
                    recipient: .direct(userIDs: [3, 7]),
                    mentionedGroup: ZulipMessage.Group(id: 4, name: "all")))
        ]
        for body in bodies {
            for padding in [ContentPadding.none, .steps] {
                var notification = Self.message("")
                notification.body = body
                let sealed = try seal(notification, key, padding: padding)
                if case .remove(let ids) = body { notification.body = .remove(ids.sorted()) }
                #expect(try device.open(pushKeyID: 7, encryptedData: sealed) == notification)
            }
        }
    }

    @Test("A content that is cut at any length before sealing is malformed to the device")
    func truncatedContent() throws {
        let key = try key(1)
        let device = ZulipRoutine(
            account: ZulipAccount(realmURL: "https://chat.example.org", userID: 7),
            keys: [HeldPushKey(id: 7, key: key, createdAt: .distantPast)])
        let plain = try ContentBox.open(try seal(Self.message("hi"), key, padding: .none), with: key)
        let bytes = plain.reveal { Array($0) }
        let nonce = [UInt8](repeating: 5, count: SecretBox.nonceBytes)
        let raw = Secret([UInt8](repeating: 1, count: 32))
        for length in 0..<bytes.count {
            let sealed = nonce + (try SecretBox.seal(Secret(bytes[..<length]), key: raw, nonce: nonce))
            #expect(throws: ZulipError(.malformedContent), "length \(length)") {
                try device.open(pushKeyID: 7, encryptedData: Secret(Base64.encode(sealed)))
            }
        }
    }

    @Test("A registration opens whole and with its pair only: cut, changed or for another it does not")
    func registration() throws {
        let pair = try X25519KeyPair(privateKey: Secret((0..<32).map { UInt8($0) }))
        let other = try X25519KeyPair(privateKey: Secret((1..<33).map { UInt8($0) }))
        let plain = RegistrationPlaintext(
            kind: .fcm, token: Secret("tok".utf8), timestamp: 1_800_000_000, appID: nil)
        let sealed = try RegistrationBox.seal(plain, to: pair.publicKey, ephemeral: other)
        func opens(_ text: [UInt8], _ pair: X25519KeyPair) -> Bool {
            (try? RegistrationBox.open(Secret(text), with: pair)) != nil  // The question itself.
        }
        let text = sealed.reveal { Array($0) }
        #expect(try RegistrationBox.open(sealed, with: pair).token == plain.token)
        #expect(!opens(text, other))
        for length in 0..<text.count { #expect(!opens(Array(text[..<length]), pair), "length \(length)") }
        let bytes = try Base64.decode(text)
        for (index, changed) in bytes.withEachChanged().enumerated() {
            #expect(!opens(Base64.encode(changed), pair), "byte \(index)")
        }
        let long = Secret(
            Base64.encode([UInt8](repeating: 0, count: ZulipLimits.sealedRegistrationBytes + 1)))
        #expect(throws: ZulipError(.invalidRegistration)) { try RegistrationBox.open(long, with: pair) }
        #expect(throws: ZulipError(.unknownBouncerKey)) {
            try RegistrationBox.seal(plain, to: [1, 2, 3], ephemeral: other)
        }
    }

    @Test("A relay's key is found by exactly its own text")
    func bouncerKeys() throws {
        let pair = try X25519KeyPair(privateKey: Secret((0..<32).map { UInt8($0) }))
        let keys = BouncerKeys([pair, pair])
        let text = Base64.text(pair.publicKey)
        #expect(keys.publicKeys == [text])
        #expect(keys[text] != nil)
        for length in 0..<text.utf8.count { #expect(keys[String(text.prefix(length))] == nil) }
        #expect(keys[text + " "] == nil)
    }
}
