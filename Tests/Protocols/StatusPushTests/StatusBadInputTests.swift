import PushModel
import PushTesting
import Secp256k1Keys
import StatusPush
import Testing

@Suite("Bad input of Status's messages")
struct StatusBadInputTests {
    private static func sample() -> PushNotificationRegistration {
        var registration = PushNotificationRegistration()
        registration.tokenType = .firebase
        registration.deviceToken = Secret("device".utf8)
        registration.installationID = Secret("installation".utf8)
        registration.accessToken = Secret("token".utf8)
        registration.enabled = true
        registration.version = .max
        registration.allowedKeyList = [Secret([1]), Secret([])]
        registration.blockedChatList = [Secret([2])]
        registration.grant = Secret([3])
        registration.mutedChatList = [Secret([4])]
        return registration
    }

    @Test("a message cut at any length reads as a shorter one or not at all")
    func truncation() {
        let whole = Self.sample().encoded().reveal { Array($0) }
        for count in 0..<whole.count {
            guard let read = try? PushNotificationRegistration(reading: Secret(whole[..<count])) else {
                continue
            }
            #expect(read.encoded().count <= count)
        }
    }

    @Test("what is written is read again, with a version of all 64 bits")
    func roundTrip() throws {
        let whole = Self.sample().encoded()
        let read = try PushNotificationRegistration(reading: whole)
        #expect(read.encoded() == whole && read.version == .max && read.allowedKeyList.count == 2)
    }

    @Test("an enum's number without a name survives, negative ones too", arguments: [-1, 99, Int32.max, .min])
    func enums(number: Int32) throws {
        var registration = Self.sample()
        registration.tokenType = .init(rawValue: number)
        #expect(
            try PushNotificationRegistration(reading: registration.encoded()).tokenType.rawValue == number)
    }

    @Test("a list of more fields than a payload can hold is refused")
    func hugeList() {
        let bytes = [UInt8]((0..<StatusLimits.fields + 1).flatMap { _ in [0x3A, 0x00] as [UInt8] })
        #expect(throws: StatusError(.malformedMessage)) {
            try PushNotificationRegistration(reading: Secret(bytes))
        }
    }

    @Test("a metadata message with any byte changed never names its signer with its message id")
    func changed() throws {
        let pair = try Secp256k1KeyPair(secret: Secret([UInt8](repeating: 5, count: 32)))
        let whole = MetadataMessage.wrap(Secret("payload".utf8), .query, by: pair).reveal { Array($0) }
        let read = try MetadataMessage(reading: Secret(whole))
        #expect(read.signer == pair.point && read.type == .query)
        for bytes in whole.withEachChanged(0x40) {
            guard let other = try? MetadataMessage(reading: Secret(bytes)) else { continue }
            #expect(!(other.messageID == read.messageID))
        }
        for count in whole.indices { _ = try? MetadataMessage(reading: Secret(whole[..<count])) }
    }

    @Test("a payload whose signature is none is malformed; a changed one names another signer, or nobody")
    func payloadSignature() throws {
        let pair = try Secp256k1KeyPair(secret: Secret([UInt8](repeating: 5, count: 32)))
        let body = WakuPayload.body(
            Secret("text".utf8), signer: pair, padding: [UInt8](repeating: 0, count: 9)
        ).reveal { Array($0) }
        func open(_ body: [UInt8]) throws -> WakuPayload.Opened {
            let sealed = WakuPayload.sealAsymmetric(
                Secret(body), to: pair.point, ephemeral: pair, iv: [UInt8](repeating: 1, count: 16))
            return try WakuPayload.openAsymmetric(sealed, with: pair)
        }
        #expect(try open(body).signer == pair.point)
        let start = body.count - StatusLimits.signatureBytes
        /// The body with a part of its signature set to one byte: where it begins, and how long it is.
        func broken(_ part: Int, _ count: Int, _ byte: UInt8) -> [UInt8] {
            var body = body
            for at in start + part..<start + part + count { body[at] = byte }
            return body
        }
        let bodies = [
            broken(64, 1, 4), broken(64, 1, 27), broken(0, 32, 0), broken(32, 32, 0), broken(0, 32, 255)
        ]
        for body in bodies { #expect(throws: StatusError(.malformedPayload)) { try open(body) } }
        for changed in body.withEachChanged() {
            guard let opened = try? open(changed), opened.data == Secret("text".utf8) else { continue }
            #expect(opened.signer != pair.point)
        }
    }

    @Test("garbage of any length opens as neither kind of payload")
    func garbage() throws {
        let pair = try Secp256k1KeyPair(secret: Secret([UInt8](repeating: 5, count: 32)))
        for count in 0..<300 {
            let bytes = Secret((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ 4) })
            #expect(throws: StatusError.self) { try WakuPayload.openAsymmetric(bytes, with: pair) }
            #expect(throws: StatusError.self) {
                try WakuPayload.openSymmetric(bytes, key: Secret([UInt8](repeating: 1, count: 32)))
            }
            #expect(throws: StatusError(.doesNotOpen)) {
                try StatusBox.open(bytes, key: Secret([UInt8](repeating: 1, count: 32)))
            }
        }
    }

    @Test(
        "content topics of another form have no id",
        arguments: [
            "", "/waku/1/0x/rfc26", "/waku/1/0xeb2da89/rfc26", "/waku/1/0xeb2da8zz/rfc26",
            "/waku/1/0x+b2da89a/rfc26",
            "/waku/2/0xeb2da89a/rfc26", "/waku/1/0xeb2da89a/proto"
        ])
    func contentTopics(text: String) {
        #expect(WakuTopic.id(ofContentTopic: text) == nil)
    }
}
