import PushModel
import SealbellKit
import Testing
import WireFormats

@Suite("What the system hands an app", .timeLimit(.minutes(30)))
struct DeliveredTests {
    private func json(_ delivered: Delivered) throws -> JSONValue {
        try delivered.json.reveal { try JSONValue.parse($0) }
    }

    /// One protocol's members as APNs hands them over, beside `aps`, and as FCM does, in texts.
    struct Shape: Sendable, CustomTestStringConvertible {
        let name: String
        let apns: @Sendable () -> [AnyHashable: Any]
        let fcm: [String: String]
        let members: [String]
        var testDescription: String { name }
    }

    /// As the relay writes them.
    static let shapes = [
        Shape(
            name: "Zulip 12", apns: { ["push_key_id": 4_294_967_295, "encrypted_data": "YWJj"] },
            fcm: ["push_key_id": "4294967295", "encrypted_data": "YWJj"],
            members: ["push_key_id", "encrypted_data"]),
        Shape(
            name: "Zulip 11", apns: { ["push_account_id": Int64.max, "encrypted_data": "YWJj"] },
            fcm: ["push_account_id": "9223372036854775807", "encrypted_data": "YWJj"],
            members: ["push_account_id", "encrypted_data"]),
        Shape(
            name: "Zulip's specification", apns: { ["push_account_id": 7, "encrypted_content": "YWJj"] },
            fcm: ["push_account_id": "7", "encrypted_content": "YWJj"],
            members: ["push_account_id", "encrypted_content"]),
        Shape(
            name: "Nextcloud", apns: { ["subject": "c3Vi", "signature": "c2ln"] },
            fcm: ["subject": "c3Vi", "signature": "c2ln"], members: ["subject", "signature"]),
        Shape(
            name: "Session", apns: { ["spns": 1, "enc_payload": "YWJj"] },
            fcm: ["spns": "1", "enc_payload": "YWJj"], members: ["spns", "enc_payload"]),
        Shape(
            name: "Status",
            apns: {
                [
                    "encryptedMessage": "0xab", "chatId": "0x01", "publicKey": "0x02",
                    "installation_ids": ["a", "b"]
                ]
            },
            fcm: [
                "encryptedMessage": "0xab", "chatId": "0x01", "publicKey": "0x02",
                "installation_ids": #"["a","b"]"#
            ], members: ["encryptedMessage", "chatId", "publicKey", "installation_ids"]),
        Shape(
            name: "Marmot", apns: { [:] }, fcm: ["content_available": "true"], members: [])
    ]

    @Test("Every protocol's members are there as numbers and as texts", arguments: shapes)
    func members(_ shape: Shape) throws {
        var userInfo = shape.apns()
        userInfo["aps"] = ["alert": ["title": "New message"], "mutable-content": 1] as [String: Any]
        let apns = try json(Delivered(userInfo: userInfo))
        let fcm = try json(Delivered(data: shape.fcm))
        #expect(apns["aps"]?["mutable-content"]?.int64 == 1)
        #expect(apns["aps"]?["alert"]?["title"]?.string == "New message")
        for name in shape.members {
            let fromAPNs = try #require(apns[name])
            let fromFCM = try #require(fcm[name]?.string)
            switch fromAPNs {
            case .number(let number): #expect(fromFCM == String(try #require(number.int64)))
            case .array: #expect(fromAPNs.serialized() == Array(fromFCM.utf8))
            default: #expect(fromAPNs.string == fromFCM)
            }
        }
        for (name, value) in shape.fcm { #expect(fcm[name]?.string == value) }
        // What either of them wrote is read again as a whole.
        #expect(throws: Never.self) { try Delivered(json: Delivered(data: shape.fcm).json) }
    }

    @Test("Values of the language are JSON's")
    func values() throws {
        let nothing: Int? = nil
        let found = try json(
            Delivered(userInfo: [
                "flag": true, "small": UInt8(7), "large": UInt64.max, "whole": 2.0, "half": 0.5,
                "float": Float(0.25), "text": "a\"\u{1}ä", "none": nothing as Any,
                "list": [1, "b", false] as [Any], "some": Optional(3) as Any
            ]))
        #expect(found["flag"]?.bool == true)
        #expect(found["small"]?.int64 == 7)
        #expect(found["large"]?.number?.double == 0x1p64)
        #expect(found["whole"]?.int64 == 2)
        #expect(found["half"]?.double == 0.5)
        #expect(found["float"]?.double == 0.25)
        #expect(found["text"]?.string == "a\"\u{1}ä")
        #expect(found["none"]?.isNull == true)
        #expect(found["list"]?.array?.count == 3)
        #expect(found["some"]?.int64 == 3)
    }

    struct Stranger {}

    @Test("What is no JSON is foreign")
    func foreign() {
        let infos: [[AnyHashable: Any]] = [
            [1: "a"], ["a": Stranger()], ["a": Double.nan], ["a": Double.infinity], ["a": [Stranger()]]
        ]
        for info in infos { #expect(throws: DeviceError(.foreign)) { try Delivered(userInfo: info) } }
        for text in ["", "1", "[]", "{", "{}x", #"{"a":}"#, "null", "\u{0}"] {
            #expect(throws: DeviceError(.foreign), "\(text)") { try Delivered(json: Secret(text.utf8)) }
        }
        #expect(throws: DeviceError(.foreign)) { try Delivered(json: Secret([0x22, 0xFF, 0x22])) }
    }

    @Test("More than 64 KiB or eight levels are too large")
    func bounds() throws {
        func nested(_ levels: Int) -> Any { levels == 0 ? 1 : ["a": nested(levels - 1)] }
        func text(_ levels: Int) -> Secret {
            let open = String(repeating: #"{"a":"#, count: levels)
            return Secret((open + "1" + String(repeating: "}", count: levels)).utf8)
        }
        #expect(throws: Never.self) { try Delivered(userInfo: ["a": nested(7)]) }
        #expect(throws: DeviceError(.tooLarge)) { try Delivered(userInfo: ["a": nested(8)]) }
        #expect(throws: Never.self) { try Delivered(json: text(8)) }
        #expect(throws: DeviceError(.tooLarge)) { try Delivered(json: text(9)) }
        #expect(throws: DeviceError(.tooLarge)) { try Delivered(userInfo: ["a": nested(100)]) }

        let most = String(repeating: "x", count: 65_536 - 8)
        #expect(try Delivered(data: ["a": most]).json.count == 65_536)
        #expect(throws: DeviceError(.tooLarge)) { try Delivered(data: ["a": most + "x"]) }
        #expect(throws: DeviceError(.tooLarge)) { try Delivered(userInfo: ["a": most + "x"]) }
        // Escapes count: six bytes for one.
        #expect(throws: DeviceError(.tooLarge)) {
            try Delivered(data: ["a": String(repeating: "\u{1}", count: 20_000)])
        }
        #expect(throws: DeviceError(.tooLarge)) {
            try Delivered(json: Secret([UInt8](repeating: 0x20, count: 65_537)))
        }
        #expect(throws: DeviceError(.tooLarge)) {
            try Delivered(data: [String(repeating: "n", count: 70_000): "a"])
        }
    }

    /// A protocol with one member, `own`, which may be in a text `whole` beside others.
    struct Own: DeliveredMembers {
        var text: String?
        var areThere: Bool { text != nil }

        mutating func read(
            _ name: JSONStringSlice, _ kind: JSONKind, _ reader: inout JSONReader
        ) throws(FormatError) -> DeliveredMember {
            if name.equals("whole") { return .whole(try reader.readString().secret()) }
            guard name.equals("own") else { return .foreign }
            text = try reader.readString().string()
            return .own
        }
    }

    @Test(
        "A protocol's members are found in every place that push services put them",
        arguments: [
            #"{"aps":{"own":"no"},"own":"a"}"#, #"{"data":{"own":"a"}}"#,
            #"{"message":{"data":{"own":"a"}}}"#, #""{\"own\":\"a\"}""#,
            #"{"message":"{\"own\":\"a\"}"}"#, #"{"own":"a","data":{"own":"b"}}"#,
            #"{"own":"b","own":"a"}"#, #"{"data":{"own":"b"},"message":{"own":"a"}}"#,
            #"{"own":"b","whole":"{\"own\":\"a\"}","data":{"own":"c"}}"#,
            #"{"own":"a","message":"no JSON"}"#, #"{"data":{"data":{"data":{"own":"a"}}}}"#,
            #" {"data":null,"message":[],"own":"a"} "#
        ])
    func places(_ json: String) {
        #expect(Delivered.find(Own.self, in: Secret(json.utf8))?.text == "a")
        #expect(Delivered.find(Own.self, in: Secret(json.utf8), atMost: json.utf8.count)?.text == "a")
        #expect(Delivered.find(Own.self, in: Secret(json.utf8), atMost: json.utf8.count - 1) == nil)
    }

    @Test(
        "What has no members of a protocol, or is no JSON, or has them too far in, is not of it",
        arguments: [
            "", "7", "null", "[]", #"["own"]"#, "{}", #""own""#, #"{"aps":{"own":"a"}}"#, #"{"own":1}"#,
            #"{"data":{"data":{"data":{"data":{"own":"a"}}}}}"#, #"{"own":"a"}x"#, #"{"own":"a""#,
            #"{"own":"a","whole":"{}"}"#, #"{"own":"a","whole":1}"#, #"{"data":"own"}"#,
            #"{"data":["own"]}"#
        ])
    func places(without json: String) {
        #expect(Delivered.find(Own.self, in: Secret(json.utf8)) == nil)
    }

    @Test("It prints as nothing of itself")
    func prints() throws {
        let delivered = try Delivered(data: ["canary": "word"])
        var dumped = ""
        dump(delivered, to: &dumped)
        for text in ["\(delivered)", String(reflecting: delivered), dumped] {
            #expect(!text.contains("canary") && !text.contains("word"), "\(text)")
        }
    }
}
