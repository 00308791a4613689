import Primitives
import PushModel
import PushTesting
import Testing
import WireFormats
import ZulipPush

/// The forms of an origin's door, and every way in which they can be wrong (docs/conformance/zulip.md).
@Suite("Zulip origin: forms of clients")
struct OriginRequestTests {
    private typealias Fields = [(String, String)]

    private static let blob = Base64.text([UInt8](repeating: 7, count: 60))
    private static let pushKey = Base64.text([0x31] + [UInt8](repeating: 7, count: 32))
    private static let point = "7+z31ePOqokTy1zbLQtJCBuIcF8vAXYuA4K7Q66X3xg="

    private static let zap: Fields = [
        ("push_account_id", "7"), ("encrypted_push_registration", blob), ("bouncer_public_key", "k"),
        ("push_public_key", point), ("token_kind", "fcm")
    ]
    private static let v11: Fields = [
        ("push_account_id", "7"), ("push_key", pushKey), ("token_kind", "apns"), ("bouncer_public_key", "k"),
        ("encrypted_push_registration", blob)
    ]
    private static let v12: Fields = [
        ("device_id", "7"), ("push_key_id", "1"), ("push_key", pushKey), ("token_kind", "apns"),
        ("token_id", "AAAAAAAAAAE="), ("bouncer_public_key", "k"), ("encrypted_push_registration", blob)
    ]

    @Test("Each form is known by its names, and what it does not know is listed")
    func forms() throws {
        func name(_ fields: Fields) throws -> String {
            switch try read(fields).call {
            case .registerAccount(let form):
                if case .zap = form.key {
                    "zap \(form.id) \(form.kind)"
                } else {
                    "v11 \(form.id) \(form.kind)"
                }
            case .registerDevice(let form): "v12 \(form.deviceID)"
            default: "?"
            }
        }
        #expect(
            try name(Self.zap) == "zap 7 fcm" && name(Self.v11) == "v11 7 apns" && name(Self.v12) == "v12 7")
        // An account id beside v12's names is one more parameter that the call does not know.
        #expect(try name(Self.v12 + [("push_account_id", "x")]) == "v12 7")
        #expect(
            try read(Self.v12 + [("push_account_id", "x"), ("b", ""), ("b", "")]).ignored == [
                "b", "push_account_id"
            ])
        #expect(try read(Self.zap).ignored == [])
    }

    @Test("Of a parameter that is there twice the last counts")
    func doubled() throws {
        let call = try read([("push_account_id", "x")] + Self.zap).call
        guard case .registerAccount(let form) = call else { throw OriginRefusalExpected() }
        #expect(form.id == 7)
        #expect(word(Self.zap + [("push_account_id", "x")]) == .malformed)
    }

    @Test("A missing parameter is named, the first of several in the order of the specification")
    func missing() {
        for (fields, names) in [
            (
                Self.zap,
                ["push_account_id", "encrypted_push_registration", "bouncer_public_key", "token_kind"]
            ),
            (
                Self.v11,
                ["push_account_id", "token_kind", "bouncer_public_key", "encrypted_push_registration"]
            )
        ] {
            for (place, name) in names.enumerated() {
                let refusal = self.refusal(fields.filter { $0.0 != name })
                #expect(refusal?.word == .missing && refusal?.parameter == name, "\(name)")
                #expect(refusal?.code == "REQUEST_VARIABLE_MISSING" && refusal?.status == 400)
                // With all behind it missing as well, it is still the first, and it stands before a wrong
                // form.
                let gone = Set(names[place...])
                let broken = fields.filter { !gone.contains($0.0) }.map {
                    ($0.0, $0.0 == "push_account_id" ? "x" : $0.1)
                }
                #expect(self.refusal(broken)?.parameter == name, "\(name)")
            }
        }
        #expect(refusal([])?.parameter == "device_id")
        #expect(refusal([("push_account_id", "7")])?.parameter == "encrypted_push_registration")
        let noKey = Self.zap.filter { $0.0 != "push_public_key" }
        #expect(refusal(noKey)?.parameter == "push_public_key")
    }

    @Test("Marks of two profiles refuse a call before anything else is looked at")
    func mixed() {
        for name in ["push_key", "device_id", "token_id", "push_key_id"] {
            #expect(word(Self.zap + [(name, "")]) == .mixedProfiles)
            #expect(word([("push_public_key", ""), (name, "")]) == .mixedProfiles)
        }
        #expect(word([("device_id", "1"), ("push_account_id", "1")], .test) == .mixedProfiles)
    }

    @Test("Integers are canonical decimal within 64 bits")
    func integers() throws {
        for text in [
            "0", "-1", "9007199254740991", "9007199254740992", "9007199254740993", "9223372036854775807",
            "-9223372036854775808"
        ] {
            let fields = Self.zap.map { ($0.0, $0.0 == "push_account_id" ? text : $0.1) }
            guard case .registerAccount(let form) = try read(fields).call else {
                throw OriginRefusalExpected()
            }
            #expect(String(form.id) == text)
        }
        for text in [
            "", "007", "+5", "-0", "5.0", "1e3", "0x10", " 5", "5 ", "\"5\"", "9223372036854775808",
            "-9223372036854775809", "99999999999999999999999", "٣", "5\u{0}", "-", "--5", "null"
        ] {
            for (path, fields) in [
                (OriginPath.register, Self.zap), (.register, Self.v11), (.register, Self.v12),
                (.forget, [("push_account_id", "")]), (.removeDevice, [("device_id", "")]),
                (.test, [("device_id", "")]), (.test, [("push_account_id", "")])
            ] {
                let name = fields.contains { $0.0 == "push_account_id" } ? "push_account_id" : "device_id"
                let broken = fields.map { ($0.0, $0.0 == name ? text : $0.1) }
                #expect(word(broken, path) == .malformed, "\(path) \(text)")
            }
        }
        for text in ["-1", "4294967296", "1.0", ""] {
            let broken = Self.v12.map { ($0.0, $0.0 == "push_key_id" ? text : $0.1) }
            #expect(word(broken) == .malformed, "\(text)")
        }
    }

    private static let longest = Base64.text([UInt8](repeating: 7, count: 12_288))

    @Test("Blobs, keys and kinds have the forms of the specification, in both profiles")
    func values() throws {
        let rows: [(name: String, good: [String], bad: [String])] = [
            (
                "encrypted_push_registration",
                [Base64.text([UInt8](repeating: 1, count: 49)), Self.longest],
                [
                    "", "random-string", Base64.text([UInt8](repeating: 1, count: 48)),
                    Base64.text([UInt8](repeating: 1, count: 12_289)), Self.blob + "=", Self.blob + "\n",
                    Base64.text([UInt8](repeating: 0xFB, count: 60), .url),
                    Base64.text([UInt8](repeating: 7, count: 61)).replacing("Bw==", with: "Bx==")
                ]
            ),
            (
                "bouncer_public_key", ["k", String(repeating: "é", count: 128), "zzz", " "],
                ["", String(repeating: "k", count: 129), String(repeating: "é", count: 129)]
            ),
            ("token_kind", ["fcm", "apns"], ["", "gcm", "FCM", "apns ", "webpush"])
        ]
        for (name, good, bad) in rows {
            for fields in [Self.zap, Self.v11] {
                func with(_ text: String) -> Fields { fields.map { ($0.0, $0.0 == name ? text : $0.1) } }
                for text in good { _ = try read(with(text)) }
                for text in bad {
                    let refusal = self.refusal(with(text))
                    #expect(
                        refusal?.word == .malformed && refusal?.parameter == name,
                        "\(name) \(text.prefix(20))")
                    #expect(refusal?.code == "BAD_REQUEST")
                }
            }
        }
        let shared = Self.v11.map { ($0.0, $0.0 == "push_key" ? Self.point : $0.1) }
        #expect(word(shared) == .invalidPushKey)
        let tagged = Self.zap.map { ($0.0, $0.0 == "push_public_key" ? Self.pushKey : $0.1) }
        #expect(refusal(tagged)?.parameter == "push_public_key")
    }

    @Test("Of two wrong forms the earlier parameter's is said")
    func twoFaults() {
        let order = [
            "push_account_id", "encrypted_push_registration", "bouncer_public_key", "push_public_key"
        ]
        for (place, name) in order.enumerated() {
            let broken = Set(order[place...] + ["token_kind"])
            let fields = Self.zap.map { ($0.0, broken.contains($0.0) ? "" : $0.1) }
            #expect(refusal(fields)?.parameter == name)
        }
    }

    @Test("Whole groups of v12 are told from halves, behind the question whose device it is")
    func groups() throws {
        var random = SeededRandom(seed: 1)
        let start = UnixTime(seconds: 1_800_000_000)
        func word(_ fields: Fields, hasKey: Bool, isOwn: Bool = true) throws -> OriginRefusal.Word? {
            var row = ZulipDeviceRow(id: isOwn ? 7 : 8)
            if hasKey { (row.keyID, row.key) = (3, try PushKey(base64: Secret(Self.pushKey.utf8))) }
            var value = ZulipRegistrations(realm: "r", devices: [row])
            let before = RegistrationStore.text(of: value)
            do {
                _ = try value.receive(try read(fields).call, now: start, using: &random)
                return nil
            } catch let refusal {
                #expect(RegistrationStore.text(of: value) == before)
                return refusal.word
            }
        }
        func without(_ names: String...) -> Fields { Self.v12.filter { !names.contains($0.0) } }
        let keyAlone = without("token_kind", "token_id", "bouncer_public_key", "encrypted_push_registration")
        let tokenAlone = without("push_key_id", "push_key")
        #expect(try word(Self.v12, hasKey: false) == nil && word(keyAlone, hasKey: true) == nil)
        #expect(try word(tokenAlone, hasKey: true) == nil)
        #expect(try word(keyAlone, hasKey: false) == .noRegistrationForKey)
        #expect(try word(tokenAlone, hasKey: false) == .noRegistrationForToken)
        #expect(try word([("device_id", "7")], hasKey: true) == .incompleteGroups)
        for name in Self.v12.map(\.0).dropFirst() {
            #expect(try word(without(name), hasKey: true) == .incompleteGroups, "\(name)")
            #expect(try word(without(name), hasKey: true, isOwn: false) == .invalidDeviceID, "\(name)")
        }
        for (name, text, expected) in [
            ("push_key", Self.point, OriginRefusal.Word.invalidPushKey), ("push_key", "", .invalidPushKey),
            ("token_id", "AAAAAAAAAAE", .invalidTokenID), ("token_id", "AAAA", .invalidTokenID),
            ("bouncer_public_key", "", .malformed), ("encrypted_push_registration", "AAAA", .malformed)
        ] {
            let broken = Self.v12.map { ($0.0, $0.0 == name ? text : $0.1) }
            #expect(try word(broken, hasKey: true) == expected, "\(name) \(text)")
        }
    }

    @Test("Who asks and whether there is a relay come before what is asked")
    func order() {
        for fields in [Self.zap, Self.v12, [], [("push_public_key", ""), ("push_key", "")]] {
            let body = Self.body(fields)
            #expect(
                thrown { try OriginRequest(.register, body: body, isBot: true, hasRelay: false) } == .isBot)
            #expect(thrown { try OriginRequest(.register, body: body, hasRelay: false) } == .noRelay)
        }
        #expect(thrown { try OriginRequest(.test, body: Secret([]), hasRelay: false) } == .noRelay)
        for path in [OriginPath.legacyAPNs, .legacyFCM] {
            #expect(thrown { try OriginRequest(path, body: Secret("%".utf8), isBot: true) } == .legacy)
        }
    }

    @Test("A body that is no form, has too many fields or is too long is refused")
    func bodies() {
        let many = (0..<65).map { ("f\($0)", "") }
        let long = Secret([UInt8](repeating: 0x61, count: ZulipOriginLimits.formBodyBytes + 1))
        for path in OriginPath.allCases where path != .legacyAPNs && path != .legacyFCM {
            for body in [Secret("a=%".utf8), Secret("a=%FF".utf8), Secret([0xFF]), Self.body(many), long] {
                #expect(thrown { try OriginRequest(path, body: body) } == .malformedForm, "\(path)")
            }
        }
        // The largest form that may come fits, with each character of the blob escaped.
        let largest = Self.zap.map { ($0.0, $0.0 == "encrypted_push_registration" ? Self.longest : $0.1) }
        #expect(Self.body(largest).count + 2 * Self.longest.utf8.count < ZulipOriginLimits.formBodyBytes)
    }

    @Test("Cut at any length, a form is another one or none, and nothing traps")
    func truncated() {
        for fields in [Self.zap, Self.v11, Self.v12] {
            let bytes = Self.body(fields).reveal { Array($0) }
            for length in 0..<bytes.count {
                // Whether it is one is not the question.
                _ = try? OriginRequest(.register, body: Secret(bytes[..<length]))
            }
        }
    }

    @Test("Every refusal is the deployed envelope, and has nothing of the input in it")
    func envelopes() throws {
        let canary = "canary7f3a"
        for fields in [
            Self.zap.map { ($0.0, canary) }, Self.v11.map { ($0.0, canary) }, Self.v12.map { ($0.0, canary) }
        ] {
            let refusal = try #require(self.refusal(fields))
            let body = String(decoding: refusal.body(), as: UTF8.self)
            #expect(!body.contains(canary) && !"\(refusal)".contains(canary))
            let json = try JSONValue.parse(refusal.body())
            #expect(json["result"]?.string == "error" && json["code"]?.string == "BAD_REQUEST")
        }
    }

    // MARK: parts

    private struct OriginRefusalExpected: Error {}

    private static func body(_ fields: Fields) -> Secret {
        Secret(Form(fields.map { (name: $0.0, value: Array($0.1.utf8)) }).encoded())
    }

    private func read(_ fields: Fields, _ path: OriginPath = .register) throws(OriginRefusal) -> OriginRequest
    {
        try OriginRequest(path, body: Self.body(fields))
    }

    private func refusal(_ fields: Fields, _ path: OriginPath = .register) -> OriginRefusal? {
        do throws(OriginRefusal) {
            _ = try read(fields, path)
            return nil
        } catch { return error }
    }

    private func word(_ fields: Fields, _ path: OriginPath = .register) -> OriginRefusal.Word? {
        refusal(fields, path)?.word
    }

    private func thrown(_ body: () throws -> OriginRequest) -> OriginRefusal.Word? {
        do {
            _ = try body()
            return nil
        } catch { return (error as? OriginRefusal)?.word }
    }
}
