import Primitives
import PushModel
import PushTesting
import SessionPush
import Testing
import WireFormats

@Suite("Bodies of Session's calls")
struct CallTests {
    private let alice: PeerAccount

    init() throws { alice = try PeerAccount(seed: 1) }

    private func parse(_ text: String) throws -> SessionCallBody {
        try withBytes(Array(text.utf8)) { try SessionCallBody(.subscribe, by: .plain, $0) }
    }

    /// The refusal of the one element, or of all of it.
    private func refusal(_ json: JSONValue) -> SessionError? {
        do {
            let call = try withBytes(json.serialized()) { try SessionCallBody(.subscribe, by: .plain, $0) }
            if case .failure(let error) = call.elements[0] { return error }
            return nil
        } catch {
            return error as? SessionError
        }
    }

    private func refusal(_ name: String, _ value: JSONValue) -> SessionError? {
        var call = PeerCall(alice)
        call.others = [(name, value)]
        return refusal(call.subscribe)
    }

    @Test("Every required field may be neither absent nor null, and is named when it is")
    func required() throws {
        for name in [
            "pubkey", "session_ed25519", "namespaces", "sig_ts", "signature", "service", "service_info",
            "enc_key"
        ] {
            let error = refusal(name, .null)
            #expect(error?.code == .missingField, "\(name)")
            #expect(error?.sentence == "\(name) is missing.")
        }
        #expect(refusal("service_info", .object([:]))?.wireCode == 1)
        #expect(refusal("service_info", .object(["token": .null]))?.wireCode == 1)
        #expect(refusal("data", .null) == nil)
        #expect(refusal("subkey_tag", .null) == nil)
    }

    @Test(
        "Values of another type are malformed",
        arguments: [
            ("pubkey", .number(JSONNumber(5))), ("session_ed25519", .bool(true)),
            ("namespaces", .string("[0]")),
            ("namespaces", .array([])), ("namespaces", .array([.bool(true)])),
            ("namespaces", .array([.null])),
            ("namespaces", .array([.array([])])), ("data", .string("true")), ("data", .number(JSONNumber(1))),
            ("sig_ts", .string("1700000000")), ("sig_ts", .bool(true)), ("signature", .array([])),
            ("service", .number(JSONNumber(1))), ("service_info", .string("token")),
            ("service_info", .array([])),
            ("service_info", .object(["token": .number(JSONNumber(1))])), ("enc_key", .object([:])),
            ("subaccount", .bool(false))
        ] as [(String, JSONValue)])
    func types(name: String, value: JSONValue) {
        let error = refusal(name, value)
        #expect(error?.wireCode == 1)
        #expect(error?.code == .malformedField)
    }

    @Test(
        "Numbers are integers in range, in the spelling of an integer",
        arguments: [
            "[1.0]", "[1e0]", "[32768]", "[-32769]", "[65536]", "[70000]", "[9223372036854775808]",
            "[0,0]", "[1,0]", "[0,-1]", "[0,1,1]"
        ])
    func namespaces(list: String) throws {
        let text = String(decoding: PeerCall(alice).subscribe.serialized(), as: UTF8.self)
        let call = try parse(text.replacing("[0,2]", with: list))
        #expect(throws: SessionError(.malformedField)) { try call.elements[0].get() }
    }

    @Test("All 65,536 namespaces are too many, and so are 257")
    func manyNamespaces() throws {
        for count in [SessionLimits.namespaces + 1, 10_000] {
            var call = PeerCall(alice)
            call.namespaces = Array(0..<count)
            #expect(refusal(call.subscribe)?.code == .malformedField)
        }
        var call = PeerCall(alice)
        call.namespaces = Array(-128..<128)
        #expect(refusal(call.subscribe) == nil)
    }

    @Test("Bytes are hex or standard base64 of exactly their length")
    func byteFields() throws {
        let key = [UInt8](repeating: 0xFB, count: 32)
        let hex = Hex.encode(key), base64 = Base64.text(key)
        for text in [hex, hex.uppercased(), base64, base64.replacing("=", with: ""), base64 + "==="] {
            #expect(refusal("enc_key", .string(text)) == nil, "\(text)")
        }
        for text in [
            "", "=", String(hex.dropLast()), hex + "0", hex + "00", Base64.text(key, .url), " " + base64,
            base64 + "\n",
            String(base64.dropLast(2)), "=" + base64.dropLast(), String(repeating: "g", count: 64),
            String(repeating: "\u{FB}", count: 32), String(repeating: "A", count: 32),
            String(repeating: "A", count: 90_000)
        ] {
            #expect(refusal("enc_key", .string(text))?.code == .malformedField, "\(text.prefix(80))")
        }
    }

    @Test("An escaped spelling is the same text")
    func escapes() throws {
        let text = String(decoding: PeerCall(alice).subscribe.serialized(), as: UTF8.self)
        let call = try parse(text.replacing("\"pubkey\":\"05", with: "\"\\u0070ubkey\":\"\\u00305"))
        #expect(throws: Never.self) { try call.elements[0].get() }
    }

    @Test(
        "Tokens have the length and the characters of their service",
        arguments: [
            ("apns", String(repeating: "A1", count: 32), true),
            ("apns", String(repeating: "a", count: 63), false),
            ("apns", String(repeating: "a", count: 65), false),
            ("apns", String(repeating: "g", count: 64), false),
            ("firebase", String(repeating: "f", count: 32), true),
            ("firebase", String(repeating: "f", count: 999), true),
            ("firebase", String(repeating: "f", count: 31), false),
            ("firebase", String(repeating: "f", count: 1_000), false), ("firebase", "", false),
            ("firebase", String(repeating: "f", count: 40) + " ", false),
            ("firebase", String(repeating: "é", count: 40), false),
            ("firebase", String(repeating: "f", count: 40) + "\u{0}", false)
        ])
    func tokens(service: String, token: String, isTaken: Bool) {
        var call = PeerCall(alice)
        call.service = service
        call.token = token
        #expect(refusal(call.subscribe) == (isTaken ? nil : SessionError(.invalidToken)))
    }

    @Test("Members of one name count once, the last of them, and what nobody knows is passed over")
    func members() throws {
        let text = String(decoding: PeerCall(alice).subscribe.serialized(), as: UTF8.self)
        let doubled =
            #"{"pubkey":"05","data":7,"deep":\#(String(repeating: "[", count: 60))"#
            + #"\#(String(repeating: "]", count: 60)),"# + text.dropFirst()
        #expect(throws: Never.self) { try parse(doubled).elements[0].get() }
    }

    @Test(
        "What is neither an object nor an array is no call",
        arguments: [
            "", " ", "null", "5", "\"{}\"", "true", "{", "[", "[{}", "{}{}", "[{}],", "\u{FEFF}{}", "nul",
            #"{"a":1,}"#
        ])
    func malformed(text: String) {
        #expect(throws: SessionError(.malformedBody)) { try parse(text) }
    }

    @Test("An array is answered in its order, an empty one with an empty one")
    func arrays() throws {
        let empty = try parse("[]")
        #expect(empty.isArray && empty.elements.isEmpty)
        #expect(CallReply.body([], isArray: true) == Array("[]".utf8))
        let mixed = try parse("[5,{},null,[{}],\"x\"]")
        #expect(mixed.elements.count == 5)
        for element in mixed.elements {
            #expect(throws: SessionError.self) { try element.get() }
        }
        #expect(try !parse("{}").isArray)
        #expect(try parse("[{}]").isArray)
    }

    @Test("Elements, bytes and depth have bounds")
    func bounds() throws {
        let many = { (count: Int) in "[" + Array(repeating: "{}", count: count).joined(separator: ",") + "]" }
        #expect(
            try parse(many(SessionLimits.elementsPerCall)).elements.count == SessionLimits.elementsPerCall)
        #expect(throws: SessionError(.tooManyElements)) { try parse(many(SessionLimits.elementsPerCall + 1)) }
        let long = { (count: Int) in #"{"a":""# + String(repeating: "x", count: count - 8) + #""}"# }
        #expect(throws: Never.self) { try parse(long(100_000)) }
        #expect(throws: SessionError(.bodyTooLarge)) { try parse(long(100_001)) }
        #expect(throws: SessionError(.malformedBody)) { try parse(String(repeating: "[", count: 90_000)) }
        #expect(throws: SessionError(.malformedBody)) {
            try parse("[" + String(repeating: #"{"a":"#, count: 19_000))
        }
    }

    @Test("Cut at every length, a call is refused")
    func truncation() {
        let text = PeerCall(alice).subscribe.serialized()
        for length in 0..<text.count {
            #expect(throws: SessionError(.malformedBody), "length \(length)") {
                try withBytes(Array(text[..<length])) { try SessionCallBody(.subscribe, by: .plain, $0) }
            }
        }
    }

    @Test("Every refusal has one of the five numbers and a sentence, and names no value")
    func answers() throws {
        for code in SessionError.Code.allCases {
            let answer = try JSONValue.parse(CallReply.body(SessionError(code)))
            #expect((1...5).contains(answer["error"]?.int64 ?? 0))
            #expect(answer["message"]?.string?.isEmpty == false)
            #expect(answer["success"] == nil)
        }
    }

    @Test("Paths and methods are told apart")
    func paths() throws {
        #expect(try SessionEndpoint.find(method: "POST", path: "/subscribe") == .subscribe)
        #expect(try SessionEndpoint.find(method: "post", path: "/unsubscribe") == .unsubscribe)
        #expect(try SessionEndpoint.find(method: "POST", path: "/oxen/v4/lsrpc") == .onion)
        #expect(throws: SessionError(.unknownPath)) { try SessionEndpoint.find(method: "POST", path: "/") }
        #expect(throws: SessionError(.unknownPath)) {
            try SessionEndpoint.find(method: "POST", path: "/oxen/v3/lsrpc")
        }
        #expect(throws: SessionError(.wrongMethod)) {
            try SessionEndpoint.find(method: "GET", path: "/subscribe")
        }
    }
}
