import Primitives
import PushModel
import Testing
import WireFormats
import ZulipPush

/// What the relay reads in the account form and in the specification's own, right and wrong (§14.1 to §14.7).
@Suite("Zulip wire, with account ids")
struct AccountWireTests {
    private static let realm = "0ec3eedd-6233-4c5e-a000-b9942be3494e"

    // MARK: integers and times

    @Test("An integer has one spelling, within signed 64 bits")
    func integers() {
        let largest = "9223372036854775807"
        let good: [(String, Int64)] = [
            ("0", 0), ("1", 1), ("-1", -1), ("10", 10), (largest, .max), ("-9223372036854775808", .min),
            ("9007199254740993", 1 << 53 + 1), ("-9007199254740993", -(1 << 53) - 1)
        ]
        for (text, value) in good { #expect(CanonicalInteger.read(Array(text.utf8)) == value, "\(text)") }
        let bad = [
            "", "-", "+5", "-0", "007", "00", "-01", "5.0", "1e3", "0x10", " 5", "5 ", "\"5\"", "5\n", "٣",
            "9223372036854775808", "-9223372036854775809", "18446744073709551616", largest + "0",
            String(repeating: "9", count: 5_000), "--5", "5-", "1_000", "null", "abc"
        ]
        for text in bad { #expect(CanonicalInteger.read(Array(text.utf8)) == nil, "\(text)") }
    }

    private static let times: [(String, Int64)] = [
        ("1970-01-01T00:00:00Z", 0), ("2026-06-10T13:18:08Z", 1_781_097_488),
        ("2026-06-10t13:18:08z", 1_781_097_488), ("2026-06-10T13:18:08.999999999Z", 1_781_097_488),
        ("2026-06-10T18:48:08+05:30", 1_781_097_488), ("2026-06-10T05:18:08.1-08:00", 1_781_097_488),
        ("2026-06-10T13:18:08-00:00", 1_781_097_488), ("2026-06-10T13:17:60Z", 1_781_097_480),
        ("2024-02-29T00:00:00Z", 1_709_164_800), ("2000-02-29T12:00:00Z", 951_825_600),
        ("2026-12-31T23:59:60Z", 1_798_761_600), ("0000-01-01T00:00:00Z", -62_167_219_200),
        ("0000-01-01T00:00:00+23:59", -62_167_305_540), ("9999-12-31T23:59:60-23:59", 253_402_387_140),
        ("1969-12-31T23:59:59Z", -1), ("1900-03-01T00:00:00Z", -2_203_891_200)
    ]

    @Test("A time of RFC 3339 is a moment; truncated at any length it is none", arguments: times)
    func time(text: String, seconds: Int64) {
        let bytes = Array(text.utf8)
        #expect(withBytes(bytes) { RFC3339.seconds($0) } == seconds)
        for length in 0..<bytes.count {
            #expect(withBytes(Array(bytes[..<length])) { RFC3339.seconds($0) } == nil, "\(length)")
        }
        for end in ["Z", " ", "\0", "0"] {
            #expect(withBytes(bytes + Array(end.utf8)) { RFC3339.seconds($0) } == nil)
        }
    }

    @Test(
        "What is nearly a time is none",
        arguments: [
            "2026-06-10T13:18:08", "2026-06-10", "2026-06-10 13:18:08Z", "2026-02-29T00:00:00Z",
            "1900-02-29T00:00:00Z", "2026-04-31T00:00:00Z", "2026-00-10T00:00:00Z", "2026-13-01T00:00:00Z",
            "2026-06-00T00:00:00Z", "2026-06-10T24:00:00Z", "2026-06-10T23:60:00Z", "2026-06-10T23:59:61Z",
            "2026-06-10T13:18:08+0000", "2026-06-10T13:18:08+24:00", "2026-06-10T13:18:08+00:60",
            "2026-06-10T13:18:08.Z", "2026-06-10T13:18:08.0123456789Z", "20260610T131808Z",
            "2026-06-10T13:18Z", "+2026-06-10T13:18:08Z", "２026-06-10T13:18:08Z", "2026-06-10T13:18:08,5Z",
            "2026-W24-3T13:18:08Z", "2026-161T13:18:08Z", " 2026-06-10T13:18:08Z", "now", ""
        ])
    func noTime(text: String) { #expect(withBytes(Array(text.utf8)) { RFC3339.seconds($0) } == nil) }

    // MARK: the blob

    private func read(
        _ text: String, _ form: RegistrationPlaintext.Form = .account
    ) throws(ZulipError) -> RegistrationPlaintext {
        try RegistrationPlaintext(parsing: Secret(text.utf8), form)
    }

    @Test("Of doubled members the last counts, whatever stood before it; a wrong last one is refused")
    func doubled() throws {
        let rest = #""token":"ab12","timestamp":5"#
        for first in [#""gcm""#, "null", "5", "{}", "[1]", "true"] {
            let text = #"{"token_kind":\#(first),"token_kind":"apns",\#(rest)}"#
            #expect(try read(text).kind == .apns)
            let turned = #"{"token_kind":"apns","token_kind":\#(first),\#(rest)}"#
            #expect(throws: ZulipError(.invalidRegistration)) { try read(turned) }
        }
        for (name, wrong) in [("token", "5"), ("timestamp", "null"), ("ios_app_id", "7")] {
            let good = #"{"token_kind":"apns","token":"ab12","timestamp":5,"ios_app_id":"org.a""#
            #expect(throws: ZulipError(.invalidRegistration)) { try read(good + #","\#(name)":\#(wrong)}"#) }
            let text = #"{"\#(name)":\#(wrong),"# + good.dropFirst() + "}"
            #expect(try read(text).appID == "org.a")
        }
        #expect(try read(#"{"token_kind":"apns","ios_app_id":"x","ios_app_id":null,\#(rest)}"#).appID == nil)
    }

    @Test("A date and a missing app are the account form's alone; nothing of v12's changes")
    func forms() throws {
        let date =
            #"{"token_kind":"apns","token":"ab12","timestamp":"2026-06-10T13:18:08Z","ios_app_id":"a"}"#
        #expect(try read(date).timestamp == 1_781_097_488)
        #expect(throws: ZulipError(.invalidRegistration)) { try read(date, .token) }
        let bare = #"{"token_kind":"apns","token":"ab12","timestamp":5}"#
        #expect(try read(bare).appID == nil)
        #expect(throws: ZulipError(.invalidRegistration)) { try read(bare, .token) }
        let escaped = #"{"token_kind":"fcm","token":"x","timestamp":"2026-06-10\u005413:18:08Z"}"#
        #expect(try read(escaped).timestamp == 1_781_097_488)
        for time in ["1e3", "5.5", "1e400", "9223372036854775808", "[]", #""5.0""#, #""""#] {
            let text = #"{"token_kind":"fcm","token":"x","timestamp":\#(time)}"#
            let isWhole = time == "1e3"
            let isRead = (try? read(text)) != nil  // The question itself.
            #expect(isRead == isWhole, "\(time)")
        }
    }

    // MARK: register

    private func form(_ text: String) throws -> Form { try Form.parse(Array(text.utf8)) }

    private static let whole =
        "realm_uuid=\(realm)&push_account_id=-5&encrypted_push_registration=QUJD&bouncer_public_key=k"

    @Test("A registration names an account id, or a token id, which decides")
    func registerForms() throws {
        let account = try RegisterForm(form(Self.whole + "&token_kind=apns&zzz=1"))
        guard case .account(-5, kind: "apns") = account.handle else {
            Issue.record("another form")
            return
        }
        #expect(account.ignored == ["zzz"] && account.tokenID == nil)
        let token = try RegisterForm(form(Self.whole + "&token_id=AAAAAAAAAAE%3D&token_kind=apns"))
        #expect(token.tokenID == TokenID(1) && token.ignored == ["push_account_id", "token_kind"])
        // An empty token id is one that is wrong, not one that is missing.
        let empty = try RegisterForm(form(Self.whole + "&token_id="))
        guard case .token(nil) = empty.handle else {
            Issue.record("another form")
            return
        }
    }

    @Test("What is missing is named before what is wrong, in the order of the call")
    func registerFaults() throws {
        func fault(_ text: String) -> ZulipError? {
            do { _ = try RegisterForm(form(text)) } catch { return error as? ZulipError }
            return nil
        }
        func missing(_ text: String) -> String? {
            fault(text).flatMap { $0.code == .missingParameter ? $0.parameter : nil }
        }
        #expect(missing("") == "realm_uuid" && missing("push_account_id=x") == "realm_uuid")
        #expect(missing("realm_uuid=\(Self.realm)&bouncer_public_key=k") == "token_id")
        #expect(missing("realm_uuid=x&push_account_id=007") == "encrypted_push_registration")
        #expect(
            missing("realm_uuid=x&push_account_id=007&encrypted_push_registration=") == "bouncer_public_key")
        for id in ["007", "+5", "", "9223372036854775808", "5.0", "%005", "5%20"] {
            let text = Self.whole.replacing("push_account_id=-5", with: "push_account_id=\(id)")
            #expect(fault(text)?.code == .wrongType && fault(text)?.parameter == "push_account_id", "\(id)")
        }
        let both = Self.whole.replacing(Self.realm, with: "x").replacing("=-5", with: "=x")
        #expect(fault(both)?.parameter == "realm_uuid")
        // Of doubles the last counts.
        #expect(fault(Self.whole + "&push_account_id=007")?.code == .wrongType)
        #expect(fault("push_account_id=007&" + Self.whole) == nil)
    }

    @Test("The specification's spelling stands beside the code in the account form alone")
    func errorCodes() throws {
        for code in ZulipError.Code.allCases {
            for isAccount in [false, true] {
                var error = ZulipError(code)
                error.isOfAccountForm = isAccount
                let json = try JSONValue.parse(ZulipErrorAnswer(error).body)
                let word: String? =
                    switch code {
                    case .registrationExpired: "request_expired"
                    case .unknownBouncerKey: "INVALID_BOUNCER_PUBLIC_KEY"
                    default: nil
                    }
                #expect(json["error_code"]?.string == (isAccount ? word : nil), "\(code)")
            }
        }
    }

    // MARK: notify

    private static let v12 =
        #"{"token_id":"AAAAAAAAAAE=","fcm_priority":"high","payload":{"push_key_id":1,"encrypted_data":"QUJD"}}"#
    private static let v11 =
        #"{"device_id":7,"fcm_priority":"high","payload":{"push_account_id":-1,"encrypted_data":"QUJD"}}"#
    private static let zap = #"{"device_id":7,"encrypted_content":"QUJD","priority":"low"}"#

    private func request(_ items: [String]) throws(ZulipError) -> NotifyRequest {
        let body = Array(
            #"{"realm_uuid":"\#(Self.realm)","push_requests":[\#(items.joined(separator: ","))]}"#.utf8)
        return try withBytes(body) { (bytes) throws(ZulipError) in try NotifyRequest(parsing: bytes) }
    }

    private func code(_ items: [String]) -> ZulipError.Code? {
        do throws(ZulipError) { _ = try request(items) } catch { return error.code }
        return nil
    }

    @Test("Each form is recognised by what arrives, and no call has two")
    func threeForms() throws {
        let first = try request([Self.v12, Self.v12])
        #expect(first.items.map(\.tokenID) == [TokenID(1), TokenID(1)])
        let second = try request([Self.v11])
        #expect(second.items.map(\.device) == [.number(7)])
        #expect(second.items[0].payload == Secret(#"{"push_account_id":"-1","encrypted_data":"QUJD"}"#.utf8))
        guard case .sealed(let third) = try request([Self.zap, Self.zap]).asked else {
            Issue.record("another form")
            return
        }
        #expect(third.map(\.deviceID) == [7, 7] && third.allSatisfy { !$0.isUrgent })
        guard case .given(let none) = try request([]).asked else {
            Issue.record("a call without items is one of v12")
            return
        }
        #expect(none.isEmpty)
        let all = [Self.v12, Self.v11, Self.zap]
        for one in all {
            for other in all where one != other {
                #expect(code([one, other]) == .invalidRequest)
                #expect(code([one, one, other]) == .invalidRequest)
            }
        }
    }

    @Test("In v12 a device id, a priority and whatever they hold are members to ignore")
    func foreignMembers() throws {
        for extra in [#""device_id":"x""#, #""device_id":7"#, #""priority":5"#, #""priority":"none""#] {
            let item = #"{\#(extra),"# + Self.v12.dropFirst()
            #expect(try request([item]).items.map(\.tokenID) == [TokenID(1)], "\(extra)")
        }
        for extra in [
            #""http_headers":{"apns_priority":1}"#, #""http_headers":null"#, #""fcm_priority":"x""#,
            #""aps":{"badge":1}"#, #""aps":5"#, #""zzz":[[{}]]"#
        ] {
            #expect(code([#"{\#(extra),"# + Self.zap.dropFirst()]) == nil, "\(extra)")
        }
        for extra in [
            #""token_id":"AAAAAAAAAAE=""#, #""token_id":null"#, #""payload":{}"#, #""payload":null"#
        ] {
            #expect(code([#"{\#(extra),"# + Self.zap.dropFirst()]) == .invalidRequest, "\(extra)")
        }
    }

    @Test("A member that is missing or of another type fails the call, in each form")
    func missingMembers() throws {
        for item in [Self.v12, Self.v11, Self.zap] {
            let whole = try #require(try JSONValue.parse(Array(item.utf8)).object)
            for name in whole.names where name != "priority" {
                func with(_ value: JSONValue?) -> String {
                    var changed = JSONObject()
                    for member in whole.members where member.name != name {
                        changed[member.name] = member.value
                    }
                    changed[name] = value
                    return String(decoding: JSONValue.object(changed).serialized(), as: UTF8.self)
                }
                for value in [nil, JSONValue.null, .bool(true), .string("x"), .array([]), .object([:])] {
                    #expect(
                        code([Self.zap == item ? Self.zap : item, with(value)]) == .invalidRequest, "\(name)")
                }
            }
        }
        let good = Self.zap.replacing(#","priority":"low""#, with: "")
        #expect(code([good]) == nil)
        for priority in ["null", "5", #""""#, #""HIGH""#, #""normal""#, "true"] {
            #expect(code([good.dropLast() + #","priority":\#(priority)}"#]) == .invalidRequest, "\(priority)")
        }
    }

    @Test("A number is any signed 64 bits without fraction and exponent, for devices and for v11's accounts")
    func numbers() throws {
        let good = ["0", "-1", "9223372036854775807", "-9223372036854775808", "9007199254740993"]
        let bad = [
            "9223372036854775808", "-9223372036854775809", "18446744073709551615", "5.0", "5e0", "1e3",
            "\"5\"",
            "null", "[5]"
        ]
        for (number, isGood) in good.map({ ($0, true) }) + bad.map({ ($0, false) }) {
            for item in [Self.zap, Self.v11] {
                let changed = item.replacing(#""device_id":7"#, with: #""device_id":\#(number)"#)
                #expect((code([changed]) == nil) == isGood, "\(number)")
            }
            let account = Self.v11.replacing(#"id":-1"#, with: #"id":\#(number)"#)
            #expect((code([account]) == nil) == isGood, "\(number)")
            guard isGood else { continue }
            let sent = try request([account]).items[0].payload
            #expect(sent == Secret(#"{"push_account_id":"\#(number)","encrypted_data":"QUJD"}"#.utf8))
        }
    }

    @Test("Content is canonical base64 of 1 to 3,800 characters")
    func content() {
        func item(_ content: String) -> String { Self.zap.replacing("QUJD", with: content) }
        for good in ["QQ==", "QUI=", "QUJD", String(repeating: "AAAA", count: 950), #"\u0051UJD"#, #"QUJ\/"#]
        {
            #expect(code([item(good)]) == nil, "\(good.prefix(8))")
        }
        // Bits that stand for nothing are zero: else one content has several spellings.
        for bad in ["", "QR==", "QUJ=", "QUJDQ", "Q===", "====", "QUJD\\n", " QUJD", "QU_-", "QQ=A", "@@@@"] {
            #expect(code([item(bad)]) == .invalidRequest, "\(bad)")
        }
        #expect(code([item(String(repeating: "AAAA", count: 951))]) == .payloadTooLarge)
        #expect(code([item(String(repeating: #"\u0041"#, count: 3_804))]) == .payloadTooLarge)
        #expect(code([item(String(repeating: "AAAA", count: 20_000))]) == .payloadTooLarge)
    }

    @Test("A call has 1,000 items at most, and one bad item at the end fails it")
    func bounds() throws {
        #expect(code(Array(repeating: Self.zap, count: 1_000)) == nil)
        #expect(code(Array(repeating: Self.zap, count: 1_001)) == .tooManyRequests)
        #expect(code(Array(repeating: Self.zap, count: 999) + ["{}"]) == .invalidRequest)
    }

    // MARK: the stale list, and rows

    @Test("The stale list is asked for by query alone, in canonical numbers")
    func stale() throws {
        func ask(_ query: String?) -> ZulipError.Code? {
            do throws(ZulipError) {
                let inbound = try withBytes(Array("realm_uuid=\(Self.realm)".utf8)) {
                    (body) throws(ZulipError) in
                    try ZulipInbound.parse(
                        method: "GET", path: ZulipPath.staleDevices.rawValue, query: query,
                        authorization: "Basic MWMyOWQ3NzQtMjQxNC00MGNjLWE3ZDEtNGZiNDQ1Y2Y5NzI2Oms=",
                        body: body)
                }
                if case .refused(let error) = inbound.call { throw error }
            } catch { return error.code }
            return nil
        }
        let realm = "realm_uuid=\(Self.realm)"
        for query in [realm, realm + "&after=0&limit=1", realm + "&after=9223372036854775807&limit=1000&x=1"]
        {
            #expect(ask(query) == nil, "\(query)")
        }
        // What stands in a body counts for nothing.
        #expect(ask(nil) == .missingParameter && ask("after=x") == .missingParameter)
        for query in [
            "realm_uuid=x", realm + "&limit=0", realm + "&limit=1001", realm + "&limit=01", realm + "&limit=",
            realm + "&after=-1", realm + "&after=9223372036854775808", realm + "&after=+1",
            realm + "&after=1e3"
        ] {
            #expect(ask(query) == .wrongType, "\(query)")
        }
        #expect(ask("%") == .malformedForm)
    }

    @Test("A row with an account id is read as it was written, and cut at any length not at all")
    func rows() throws {
        for account in [nil, Int64.min, -1, 0, .max] {
            for kind in TokenKind.allCases {
                let row = ZulipRegistration(
                    kind: kind, token: Secret("ab12".utf8), appID: kind == .apns ? "org.a" : nil,
                    accountID: account)
                let body = row.body.reveal { Array($0) }
                let read = try #require(ZulipRegistration(body: Secret(body)))
                #expect(read.accountID == account && read.kind == kind && read.appID == row.appID)
                #expect(read.token == row.token)
                for length in 0..<body.count {
                    #expect(ZulipRegistration(body: Secret(body[..<length])) == nil, "\(length)")
                }
                #expect(ZulipRegistration(body: Secret(body + [0])) == nil)
                // An earlier version's rows are read as before.
                #expect(body[0] == (account == nil ? 1 : 2))
            }
        }
    }
}
