import Primitives
import PushModel
import Testing
import WireFormats
import ZulipPush

/// Bytes to values and back; whatever is cut short is refused (docs/conformance/zulip.md).
@Suite("Zulip wire")
struct ZulipWireTests {
    private static let realm = "0ec3eedd-6233-4c5e-a000-b9942be3494e"
    private static let server = "1c29d774-2414-40cc-a7d1-4fb445cf9726"

    private func form(_ bytes: ArraySlice<UInt8>) throws -> Form { try Form.parse(Array(bytes)) }

    // MARK: token id

    @Test("A token id reads back from its text, and from no shorter, longer or other writing of it")
    func tokenID() throws {
        for value in [0, 1, 0xFF, 0x8000_0000_0000_0000, .max] as [UInt64] {
            let id = TokenID(value)
            #expect(id.text.utf8.count == 12)
            #expect(TokenID(id.text) == id)
            #expect(id.signed == Int64(bitPattern: value))
            for length in 0..<12 { #expect(TokenID(String(id.text.prefix(length))) == nil) }
            #expect(TokenID(id.text + "=") == nil)
            #expect(TokenID(" " + id.text.dropFirst()) == nil)
        }
        // The last character before the padding carries two bits that must be zero.
        #expect(TokenID("AAAAAAAAAAE=") == TokenID(1))
        #expect(TokenID("AAAAAAAAAAF=") == nil)
        // SHA-256 of the empty text begins with e3b0c442 98fc1c14 (FIPS 180-4, example of NIST).
        #expect(TokenID(token: Secret([])).value == 0xE3B0_C442_98FC_1C14)
        #expect(TokenID(token: Secret("ab".utf8)) != TokenID(token: Secret("AB".utf8)))
    }

    // MARK: registration

    private static let registrations: [(TokenKind, String, String?)] = [
        (.apns, "B529dd6f", "org.zulip.Zulip"), (.apns, "00", "a"), (.fcm, "c:APA91b-_", nil),
        (.fcm, "\"\\\u{1F514}é\n", nil), (.fcm, String(repeating: "é", count: 4_096), nil)
    ]

    @Test("A registration reads back what was written", arguments: ZulipWireTests.registrations.indices)
    func registration(row: Int) throws {
        let (kind, token, appID) = Self.registrations[row]
        let plain = RegistrationPlaintext(
            kind: kind, token: Secret(token.utf8), timestamp: 1_700_000_000, appID: appID)
        let text = plain.serialized()
        let read = try RegistrationPlaintext(parsing: text)
        #expect(read.kind == kind && read.token == plain.token)
        #expect(read.timestamp == 1_700_000_000 && read.appID == appID)
        #expect(read.serialized() == text)
        let json = try text.reveal { try JSONValue.parse($0) }
        #expect(
            json.object?.names == ["token_kind", "token", "timestamp"] + (appID == nil ? [] : ["ios_app_id"]))
    }

    @Test("A registration that is cut at any length is refused")
    func truncatedRegistration() throws {
        for (kind, token, appID) in Self.registrations.prefix(4) {
            let plain = RegistrationPlaintext(
                kind: kind, token: Secret(token.utf8), timestamp: 1_700_000_000, appID: appID)
            let bytes = plain.serialized().reveal { Array($0) }
            for length in 0..<bytes.count {
                #expect(throws: ZulipError(.invalidRegistration), "length \(length)") {
                    try RegistrationPlaintext(parsing: Secret(bytes[..<length]))
                }
            }
        }
    }

    @Test(
        "A registration that says what no relay takes is refused",
        arguments: [
            #"{"token_kind":"apns","token":"abc","timestamp":1,"ios_app_id":"a"}"#,
            #"{"token_kind":"apns","token":"xy","timestamp":1,"ios_app_id":"a"}"#,
            #"{"token_kind":"apns","token":"ab","timestamp":1}"#,
            #"{"token_kind":"apns","token":"ab","timestamp":1,"ios_app_id":null}"#,
            #"{"token_kind":"apns","token":"ab","timestamp":1,"ios_app_id":""}"#,
            #"{"token_kind":"apns","token":"ab","timestamp":1,"ios_app_id":"a/b"}"#,
            #"{"token_kind":"fcm","token":"ab","timestamp":1,"ios_app_id":"a"}"#,
            #"{"token_kind":"fcm","token":"","timestamp":1}"#,
            #"{"token_kind":"wns","token":"ab","timestamp":1}"#,
            #"{"token_kind":"fcm","token":7,"timestamp":1}"#,
            #"{"token_kind":"fcm","token":"ab"}"#,
            #"{"token_kind":"fcm","token":"ab","timestamp":1} x"#, "[]", "null", "7", ""
        ])
    func wrongRegistration(text: String) {
        #expect(throws: ZulipError(.invalidRegistration)) {
            try RegistrationPlaintext(parsing: Secret(text.utf8))
        }
    }

    @Test(
        "A time may be written as deployed relays read it: whole seconds as a number or its text",
        arguments: [
            ("1700000000", Int64(1_700_000_000)), ("1700000000.0", 1_700_000_000), ("17e8", 1_700_000_000),
            ("\"1700000000\"", 1_700_000_000), ("-1", -1), ("-0", 0), ("9223372036854775807", .max),
            ("1700000000.5", nil), ("\"1700000000.0\"", nil), ("\" 1\"", nil), ("\"\"", nil),
            ("9223372036854775808", nil), ("1e300", nil), ("true", nil), ("null", nil), ("[1]", nil)
        ] as [(String, Int64?)])
    func times(text: String, seconds: Int64?) throws {
        let plain = Secret(#"{"token_kind":"fcm","token":"ab","timestamp":\#(text)}"#.utf8)
        guard let seconds else {
            #expect(throws: ZulipError(.invalidRegistration)) { try RegistrationPlaintext(parsing: plain) }
            return
        }
        #expect(try RegistrationPlaintext(parsing: plain).timestamp == seconds)
    }

    @Test("A token of 4,096 characters passes and one more does not, counted as characters")
    func tokenLength() {
        func isTaken(_ token: String) -> Bool {
            let plain = RegistrationPlaintext(
                kind: .fcm, token: Secret(token.utf8), timestamp: 1, appID: nil)
            return (try? RegistrationPlaintext(parsing: plain.serialized())) != nil  // The question itself.
        }
        #expect(isTaken(String(repeating: "a", count: 4_096)))
        #expect(!isTaken(String(repeating: "a", count: 4_097)))
        #expect(isTaken(String(repeating: "\u{1F514}", count: 4_096)))
        #expect(!isTaken(String(repeating: "\u{1F514}", count: 4_097)))
    }

    // MARK: notify

    private func parse(_ body: [UInt8]) throws(ZulipError) -> NotifyRequest {
        try withBytes(body) { (bytes) throws(ZulipError) in try NotifyRequest(parsing: bytes) }
    }

    @Test("A notify item becomes exactly the body that the push service gets")
    func payloads() throws {
        let apns =
            #"{"payload":{"aps":{"content-available":1},"encrypted_data":"QUJD","push_key_id":7},"#
            + #""http_headers":{"apns_push_type":"background","apns_priority":5},"token_id":"AAAAAAAAAAE="}"#
        let fcm = RealmRig.fcm(
            #""AAAAAAAAAAI=""#, #""normal""#, #"{"push_key_id":4294967295,"encrypted_data":"QU\/D"}"#)
        let request = try parse(Array(RealmRig.body([apns, fcm, RealmRig.item("AAAAAAAAAAM=")]).utf8))
        #expect(request.realm == UUIDText(Self.realm))
        #expect(request.items.map(\.tokenID) == [TokenID(1), TokenID(2), TokenID(3)])
        #expect(
            request.items.map(\.target)
                == [.apns(priority: 5, .background), .fcm(.normal), .apns(priority: 10, .alert)])
        let expected = [
            #"{"push_key_id":7,"encrypted_data":"QUJD","aps":{"content-available":1}}"#,
            #"{"push_key_id":"4294967295","encrypted_data":"QU/D"}"#,
            #"{"push_key_id":1,"encrypted_data":"QUJD","#
                + #""aps":{"mutable-content":1,"alert":{"title":"New notification"}}}"#
        ]
        for (item, text) in zip(request.items, expected) {
            #expect(item.payload == Secret(text.utf8))
            let data = item.payload.reveal { Array($0[item.ciphertext]) }
            #expect(data.count == 4)
            #expect(data.starts(with: Array("QU".utf8)))
        }
    }

    @Test("A notify body that is cut at any length is refused, for both kinds")
    func truncatedNotify() {
        let items = [
            RealmRig.item("AAAAAAAAAAE=", extra: #","aps":{"alert":{"title":"x"}}"#),
            RealmRig.fcm(#""AAAAAAAAAAE=""#, #""high""#, #"{"push_key_id":1,"encrypted_data":"QUJD"}"#)
        ]
        let body = Array(RealmRig.body(items).utf8)
        for length in 0..<body.count {
            #expect(throws: ZulipError.self, "length \(length)") { try parse(Array(body[..<length])) }
        }
        #expect(throws: ZulipError(.malformedJSON)) { try parse(body + [0x7D]) }
    }

    // MARK: forms

    @Test("A sign-up that is cut at any length is refused")
    func truncatedSignUp() throws {
        let key = String(repeating: "k", count: 64)
        let fields = [
            ("hostname", "Chat.Example.org:8443"), ("contact_email", "a+b@example.org"),
            ("zulip_org_id", Self.server), ("zulip_org_key", key)
        ]
        let body = Form(fields.map { ($0.0, Array($0.1.utf8)) }).encoded()
        let whole = try SignUpForm(form(body[...]))
        #expect(whole.hostname.text == "chat.example.org:8443" && whole.hostname.name == "chat.example.org")
        #expect(whole.id.text == Self.server)
        #expect(whole.mail.text == Secret("a+b@example.org".utf8))
        #expect(whole.keyHash == Secret(SHA256.hash(Array(key.utf8))))
        #expect(whole.newKeyHash == nil)
        for length in 0..<body.count {
            #expect(throws: (any Error).self, "length \(length)") {
                try SignUpForm(form(body[..<length]))
            }
        }
    }

    @Test("A registration call that is cut at any length is refused")
    func truncatedRegister() throws {
        let fields = [
            ("encrypted_push_registration", "QUJD+/=="), ("bouncer_public_key", "key+/="), ("extra", "1"),
            ("token_id", "AAAAAAAAAAE="), ("realm_uuid", Self.realm)
        ]
        let body = Form(fields.map { ($0.0, Array($0.1.utf8)) }).encoded()
        let whole = try RegisterForm(form(body[...]))
        #expect(whole.realm.text == Self.realm && whole.tokenID == TokenID(1))
        #expect(whole.sealed == Secret("QUJD+/==".utf8) && whole.bouncerKey == "key+/=")
        #expect(whole.ignored == ["extra"])
        for length in 0..<body.count {
            #expect(throws: (any Error).self, "length \(length)") {
                try RegisterForm(form(body[..<length]))
            }
        }
    }

    @Test("A parameter that the form does not have is taken from the query, as older servers send theirs")
    func query() throws {
        func parse(_ path: ZulipPath, _ query: String?, _ body: String) throws(ZulipError) -> ZulipInbound {
            try withBytes(Array(body.utf8)) { (bytes) throws(ZulipError) in
                try ZulipInbound.parse(
                    method: "POST", path: path.rawValue, query: query,
                    authorization: RealmRig.basic(Self.server), body: bytes)
            }
        }
        let fields =
            "zulip_org_id=\(Self.server)&zulip_org_key=\(String(repeating: "k", count: 64))"
            + "&hostname=a.example.org&contact_email=a%2Bb%40example.org"
        for (query, body) in [(fields, ""), (nil, fields), ("hostname=b.example.org&x=1", fields)] {
            guard case .signUp(let form) = try parse(.signUp, query, body).call else {
                Issue.record("no sign-up")
                return
            }
            #expect(form.id.text == Self.server && form.hostname.text == "a.example.org")
            #expect(form.mail.text == Secret("a+b@example.org".utf8))
        }
        #expect(throws: ZulipError(.missingParameter)) { try parse(.signUp, nil, "") }
        #expect(throws: ZulipError(.malformedForm)) { try parse(.signUp, "a=%zz", fields) }
        let register = "realm_uuid=\(Self.realm)&token_id=AAAAAAAAAAE%3D&encrypted_push_registration=QUJD"
        guard case .register(let form) = try parse(.register, "z=1&bouncer_public_key=k&a", register).call
        else {
            Issue.record("no registration")
            return
        }
        #expect(form.bouncerKey == "k" && form.ignored == ["a", "z"])
        // A notification is JSON in the body, and nothing else.
        guard case .refused(let error) = try parse(.notify, "realm_uuid=\(Self.realm)", "").call else {
            Issue.record("a notification without a body")
            return
        }
        #expect(error.code == .malformedJSON)
    }

    @Test("A sign-up's parameters are judged one after the other, then their forms")
    func signUpOrder() {
        let id = Self.server
        let key = String(repeating: "k", count: 64)
        func code(_ fields: [(String, String)]) -> ZulipError? {
            do throws(ZulipError) {
                _ = try SignUpForm(Form(fields.map { ($0.0, Array($0.1.utf8)) }))
                return nil
            } catch { return error }
        }
        let long = String(repeating: "a", count: 129)
        let rows: [([(String, String)], ZulipError.Code, String?)] = [
            ([("zulip_org_id", "x")], .wrongLength, "zulip_org_id"),
            ([("zulip_org_key", "x")], .missingParameter, "zulip_org_id"),
            ([("zulip_org_id", id), ("zulip_org_key", "x")], .wrongLength, "zulip_org_key"),
            ([("zulip_org_id", id), ("zulip_org_key", key)], .missingParameter, "hostname"),
            ([("zulip_org_id", id), ("zulip_org_key", key), ("hostname", long)], .wrongLength, "hostname"),
            (
                [
                    ("zulip_org_id", id), ("zulip_org_key", key), ("hostname", "a b"), ("new_org_key", "x")
                ], .missingParameter, "contact_email"
            ),
            (
                [
                    ("zulip_org_id", id), ("zulip_org_key", key), ("hostname", "a b"), ("contact_email", "x"),
                    ("new_org_key", "x")
                ], .wrongLength, "new_org_key"
            ),
            (
                [
                    ("zulip_org_id", id.uppercased()), ("zulip_org_key", key), ("hostname", "a b"),
                    ("contact_email", "x")
                ], .invalidHostname, nil
            ),
            (
                [
                    ("zulip_org_id", id.uppercased()), ("zulip_org_key", key), ("hostname", "a.org"),
                    ("contact_email", "x")
                ], .invalidMail, nil
            ),
            (
                [
                    ("zulip_org_id", id.uppercased()), ("zulip_org_key", key), ("hostname", "a.org"),
                    ("contact_email", "x@example.com")
                ], .mailDomainRefused, nil
            ),
            (
                [
                    ("zulip_org_id", id.uppercased()), ("zulip_org_key", key), ("hostname", "a.org"),
                    ("contact_email", "x@example.org")
                ], .invalidUUID, nil
            )
        ]
        for (fields, expected, parameter) in rows {
            let error = code(fields)
            #expect(error?.code == expected, "\(expected) \(parameter ?? "")")
            if let parameter { #expect(error?.parameter == parameter) }
        }
    }

    @Test("An analytics call that is cut at any length is refused")
    func truncatedAnalytics() throws {
        let fields = [
            ("realms", #"[{"uuid":"\#(Self.realm)","id":1},{"uuid":"\#(Self.realm)","id":1}]"#),
            ("installation_counts", #"[{"id":3,"x":[1]},{"id":2}]"#),
            ("realmauditlog_rows", "null"), ("realm_counts", #"[{"id":12}]"#)
        ]
        let body = Form(fields.map { ($0.0, Array($0.1.utf8)) }).encoded()
        let whole = try AnalyticsForm(form(body[...]))
        #expect(whole.realms?.map(\.text) == [Self.realm])
        #expect(whole.lastInstallationCount == 3 && whole.lastRealmCount == 12 && whole.lastAuditLog == 0)
        for length in 0..<body.count {
            #expect(throws: (any Error).self, "length \(length)") {
                try AnalyticsForm(form(body[..<length]))
            }
        }
    }

    @Test("A transfer that is cut says no other host than what is left of it")
    func truncatedTransfer() throws {
        let head = "access_token=tok-1&hostname="
        let host = "chat.example.org:443"
        let body = Array((head + host).utf8)
        for length in 0...body.count {
            let rest = String(host.prefix(max(0, length - head.utf8.count)))
            let isHost = rest.utf8.last.map { $0 != 0x2E && $0 != 0x3A } ?? false
            let read = try? TransferForm(form(body[..<length]), isVerification: true)  // The question itself.
            // The port of https is none.
            let text = rest == host ? "chat.example.org" : rest
            #expect(read?.hostname.text == (isHost ? text : nil), "length \(length)")
            if read != nil { #expect(read?.accessToken == "tok-1") }
        }
        #expect(throws: ZulipError(.missingParameter)) {
            try TransferForm(form(Array("hostname=a.example.org".utf8)[...]), isVerification: true)
        }
    }

    @Test("Credentials that are cut name no server or prove no key")
    func truncatedCredentials() throws {
        let key = String(repeating: "k", count: 64)
        let text = RealmRig.basic(Self.server, key)
        let whole = try ServerCredentials(authorization: text)
        #expect(whole.id?.text == Self.server)
        for length in 0..<text.utf8.count {
            // Cut after a whole group it is still base64, but of another id or key.
            guard let cut = try? ServerCredentials(authorization: String(text.prefix(length))) else {
                continue
            }
            #expect(cut.id == nil || !(cut.keyHash == whole.keyHash), "length \(length)")
        }
        #expect(throws: ZulipError(.missingAuthorization)) { try ServerCredentials(authorization: nil) }
        #expect(throws: ZulipError(.otherAuthorizationScheme)) {
            try ServerCredentials(authorization: "Bearer abc")
        }
        #expect(throws: ZulipError(.malformedAuthorization)) {
            try ServerCredentials(authorization: "Basic !")
        }
        // Two words first, as deployed; the scheme in any case, and what stands between them of any length.
        let text2 = text.dropFirst("Basic ".utf8.count)
        for words in ["Basic", "Basic ", "Bearer", "", " ", text + " x", String(text2)] {
            #expect(throws: ZulipError(.malformedAuthorization), "\(words.count)") {
                try ServerCredentials(authorization: words)
            }
        }
        for scheme in ["basic ", "BASIC ", "Basic  ", "Basic\t"] {
            #expect(try ServerCredentials(authorization: scheme + text2).keyHash == whole.keyHash)
        }
        #expect(throws: ZulipError(.userInsteadOfServer)) {
            try ServerCredentials(authorization: "Basic " + Base64.text(Array("a@b.org:k".utf8)))
        }
    }

    @Test(
        "A host name is a name with at most a port",
        arguments: [
            "", ".", "a.", ".a", "-a.org", "a-.org", "a b", "a/b", "a?b", "u@a.org", "a.org:", "a.org:0",
            "127.1", "0177.0.0.1", "0x7f000001", "a.0x7f", "1.2.3.256", "1.2.3.04", "a.1",
            "a.org:65536", "a.org:1:2", "a.org:x", "é.org", "[::1]", String(repeating: "a", count: 64),
            String(repeating: "a.", count: 64) + "a"
        ])
    func hostnames(text: String) {
        #expect(ZulipHostname(Array(text.utf8)) == nil)
        #expect(ZulipHostname(Array("a.example.org:65535".utf8))?.name == "a.example.org")
        #expect(ZulipHostname(Array("127.0.0.1".utf8)) != nil)
    }

    @Test(
        "A host has one spelling",
        arguments: [
            ("A.Example.ORG", "a.example.org"), ("a.org:443", "a.org"), ("a.org:00443", "a.org"),
            ("a.org:08443", "a.org:8443"), ("a.org:8443", "a.org:8443"), ("10.0.0.1:443", "10.0.0.1")
        ])
    func spelling(given: String, text: String) throws {
        let host = try #require(ZulipHostname(Array(given.utf8)))
        #expect(host.text == text)
        #expect(ZulipHostname(Array(host.text.utf8)) == host)
        #expect(ContactMail(Array("admin@\(given)".utf8)) == nil || !given.contains(":"))
    }

    // MARK: records

    @Test("A server's, realm's and registration's record reads back, and not when it is cut or longer")
    func bodies() throws {
        var server = ZulipServer(
            id: try #require(UUIDText(Self.server)), keyHash: Secret([UInt8](repeating: 3, count: 32)),
            standing: .suspended, hostname: "chat.example.org", mail: Secret("a@example.org".utf8))
        server.lastRealmCount = 12
        server.lastAuditLog = .max
        let realm = ZulipRealm(
            id: try #require(UUIDText(Self.realm)), server: server.id, isLocallyDeleted: true)
        let phone = ZulipRegistration(kind: .apns, token: Secret("ab".utf8), appID: "org.example.app")
        let read = try #require(ZulipServer(body: server.body))
        #expect(read.id == server.id && read.keyHash == server.keyHash && read.standing == .suspended)
        #expect(read.hostname == server.hostname && read.mail == server.mail)
        #expect(read.lastRealmCount == 12 && read.lastInstallationCount == 0 && read.lastAuditLog == .max)
        #expect(ZulipRealm(body: realm.body) == realm)
        #expect(read.quota == nil)
        var bounded = server
        bounded.quota = 0
        #expect(ZulipServer(body: bounded.body)?.quota == 0)
        bounded.quota = 70_000
        #expect(ZulipServer(body: bounded.body)?.quota == 70_000)
        var rotated = bounded
        rotated.oldKeyEnds = UnixTime(seconds: 1_800_000_000)
        #expect(ZulipServer(body: rotated.body)?.oldKeyEnds == rotated.oldKeyEnds)
        #expect(ZulipServer(body: rotated.body)?.quota == 70_000)
        rotated.quota = nil
        #expect(ZulipServer(body: rotated.body)?.quota == nil)
        let old = ZulipRealm(id: realm.id, server: server.id, isLocallyDeleted: true, naming: .byRealm)
        #expect(ZulipRealm(body: old.body) == old && old != realm && old.tenancy != realm.tenancy)
        let registration = try #require(ZulipRegistration(body: phone.body))
        #expect(registration.kind == .apns && registration.token == phone.token)
        #expect(registration.appID == phone.appID)
        let readers: [(Secret, (Secret) -> Bool)] = [
            (server.body, { ZulipServer(body: $0) != nil }),
            (bounded.body, { ZulipServer(body: $0) != nil }),
            (rotated.body, { ZulipServer(body: $0) != nil }), (realm.body, { ZulipRealm(body: $0) != nil }),
            (old.body, { ZulipRealm(body: $0) != nil }), (phone.body, { ZulipRegistration(body: $0) != nil })
        ]
        for (body, reads) in readers {
            let bytes = body.reveal { Array($0) }
            #expect(reads(body))
            for length in 0..<bytes.count { #expect(!reads(Secret(bytes[..<length])), "length \(length)") }
            #expect(!reads(Secret(bytes + [0])))
            #expect(!reads(Secret([bytes[0] + 3] + bytes.dropFirst())))
        }
    }
}
