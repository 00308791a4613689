import PushModel
import PushTesting
import Testing
import WireFormats
import ZulipPush

/// What a server may say of itself and of a phone: every member missing, doubled, of another type, too long.
@Suite("Zulip hostile server")
struct HostileServerTests {
    // MARK: settings

    private static let settings: [(body: String, level: Int64, isEncrypted: Bool)] = [
        ("{}", 0, false), (#"{"zulip_feature_level":468}"#, 468, false),
        (#"{"zulip_feature_level":"468"}"#, 0, false), (#"{"zulip_feature_level":468.0}"#, 0, false),
        (#"{"zulip_feature_level":4.68e2}"#, 0, false), (#"{"zulip_feature_level":null}"#, 0, false),
        (#"{"zulip_feature_level":[468]}"#, 0, false), (#"{"zulip_feature_level":{"a":468}}"#, 0, false),
        (#"{"zulip_feature_level":true}"#, 0, false), (#"{"zulip_feature_level":-468}"#, -468, false),
        (#"{"zulip_feature_level":9223372036854775807}"#, .max, false),
        (#"{"zulip_feature_level":9223372036854775808}"#, 0, false),
        (#"{"zulip_feature_level":1,"zulip_feature_level":468}"#, 468, false),
        (#"{"zulip_feature_level":468,"zulip_feature_level":"x"}"#, 0, false),
        (#"{"encrypted_push_notifications":true}"#, 0, true),
        (#"{"encrypted_push_notifications":true,"encrypted_push_notifications":0}"#, 0, false),
        (#"{"encrypted_push_notifications":"true"}"#, 0, false),
        (#"{"encrypted\u005fpush_notifications":true}"#, 0, true),
        (#"{"result":"success","other":{"zulip_feature_level":468}}"#, 0, false)
    ]

    @Test("Settings are read member by member; of another type is none, and of doubled ones the last counts")
    func readSettings() throws {
        for (body, level, isEncrypted) in Self.settings {
            let settings = try ZulipServerSettings(Secret(body.utf8))
            #expect(settings.featureLevel == level, "\(body)")
            #expect(settings.encryptedPushNotifications == isEncrypted, "\(body)")
        }
    }

    @Test("What is no object, says error, is too long or too deep are no settings: one error")
    func noSettings() {
        let whole =
            #"{"zulip_feature_level":468,"encrypted_push_notifications":true,"realm_name":"Zürich"}"#
        var bad = (0..<whole.utf8.count).map { Array(whole.utf8.prefix($0)) }
        let deep = String(repeating: "[", count: 200)
        for text in [
            "null", "[]", "5", #""x""#, "<html></html>", whole + "x", #"{"result":"error"}"#,
            #"{"a":\#(deep)}"#, #"{"a":"\#(String(repeating: "x", count: 1 << 20))"}"#, "{\"a\":\"\u{0}\"}"
        ] {
            bad.append(Array(text.utf8))
        }
        bad.append(Array(#"{"a":""#.utf8) + [0xFF] + Array(#""}"#.utf8))
        for body in bad {
            let start = String(decoding: body.prefix(80), as: UTF8.self)
            #expect(throws: ZulipError(.malformedAnswer), "\(start)") {
                try ZulipServerSettings(Secret(body))
            }
        }
    }

    // MARK: states and events

    /// A phone that is pending, and what it keeps then.
    private func pending(_ settings: ZulipServerSettings = ZulipPlayedDevice.zap) throws -> ZulipPlayedDevice
    {
        var phone = try ZulipPlayedDevice(settings)
        try phone.begin()
        if settings == ZulipPlayedDevice.v12 {
            try phone.answer(200, #"{"result":"success","device_id":41}"#)
        }
        try phone.answer(200)
        try #require(phone.status.state == .pending)
        return phone
    }

    private func expectRefused(_ phone: ZulipPlayedDevice, state: String? = nil, event: String? = nil) {
        var phone = phone
        let before = phone.device.encoded()
        #expect(throws: ZulipError(.malformedAnswer), "\(state ?? event ?? "")") {
            if let state { try phone.fetch(state) }
            if let event { try phone.event(event) }
        }
        #expect(phone.device.encoded() == before)
    }

    @Test(
        "A state without the map, or with an entry of ours that is none, is refused and changes nothing",
        arguments: [
            "", "null", "[]", "{}", #"{"push_account_ids":null}"#, #"{"push_account_ids":[]}"#,
            #"{"push_account_ids":"x"}"#, #"{"result":"error","push_account_ids":{}}"#,
            #"{"push_account_ids":{"$ID":null}}"#, #"{"push_account_ids":{"$ID":"active"}}"#,
            #"{"push_account_ids":{"$ID":[]}}"#, #"{"push_account_ids":{"$ID":{}}}"#,
            #"{"push_account_ids":{"$ID":{"status":null}}}"#, #"{"push_account_ids":{"$ID":{"status":5}}}"#,
            #"{"push_account_ids":{"$ID":{"status":"ACTIVE"}}}"#,
            #"{"push_account_ids":{"$ID":{"status":"queued"}}}"#,
            #"{"push_account_ids":{"$ID":{"status":"failed","error_code":5}}}"#,
            #"{"push_account_ids":{"$ID":{"status":"active"}}"#,
            #"{"push_account_ids":{"$ID":{"status":"active"}},"push_account_ids":5}"#,
            #"{"push_devices":{"$ID":{"status":"active"}}}"#
        ])
    func badState(_ state: String) throws { expectRefused(try pending(), state: state) }

    @Test("Entries of others may be of any form, and no other spelling of an id is ours")
    func foreignEntries() throws {
        for (state, word) in [
            (#"{"push_account_ids":{"5":null,"x":7,"$ID":{"status":"active"},"6":[{}]}}"#, "active"),
            (#"{"push_account_ids":{"$ID":{"status":"failed","n":1},"$ID":{"status":"active"}}}"#, "active"),
            (#"{"push_account_ids":{"$ID":{"status":"active","status":"pending"}}}"#, "pending"),
            (#"{"push_account_ids":{"0$ID":{"status":"active"}}}"#, "none"),
            (#"{"push_account_ids":{"+$ID":{"status":"active"}}}"#, "none"),
            (#"{"push_account_ids":{" $ID":{"status":"active"}}}"#, "none"),
            (#"{"push_account_ids":{"$ID.0":{"status":"active"}}}"#, "none"),
            (#"{"push_account_ids":{"-$ID":{"status":"active"}}}"#, "none")
        ] {
            var phone = try pending()
            try phone.fetch(state)
            #expect(phone.status.state.rawValue == word, "\(state)")
        }
    }

    @Test("An id above 2⁵³ is not its neighbour")
    func neighbours() throws {
        var phone = try pending()
        let id = try #require(phone.id.flatMap { Int64($0) })
        try #require(id > 1 << 53)
        for near in [id - 1, id &+ 1] {
            try phone.event(
                #"{"type":"push_account","op":"update","push_account_id":\#(near),"status":"active"}"#)
            #expect(phone.status.state == .pending)
        }
        try phone.event(#"{"type":"push_account","op":"update","push_account_id":$ID.0,"status":"active"}"#)
        #expect(phone.status.state == .pending)
        try phone.event(#"{"type":"push_account","op":"update","push_account_id":$ID,"status":"active"}"#)
        #expect(phone.status.state == .active)
    }

    @Test(
        "An event of ours that is none is refused with all that came with it",
        arguments: [
            #"{"type":"push_account","op":"update","push_account_id":$ID}"#,
            #"{"type":"push_account","op":"update","push_account_id":$ID,"status":7}"#,
            #"{"type":"push_account","op":"update","push_account_id":$ID,"status":"gone"}"#,
            #"{"type":"push_account","op":"remove","push_account_id":$ID,"error_code":7}"#,
            #"{"type":"push_account","op":7,"push_account_id":$ID}"#,
            #"{"type":"push_account","push_account_id":$ID,"status":"active"}"#,
            #"{"events":[{"type":"push_account","op":"remove","push_account_id":$ID},"#
                + #"{"type":"push_account","op":"update","push_account_id":$ID}]}"#,
            #"{"events":{}}"#, #"{"events":[1,]}"#, "[]", "", "{"
        ])
    func badEvent(_ event: String) throws { expectRefused(try pending(), event: event) }

    @Test(
        "An event that is not about this phone, or of a later version, is passed over",
        arguments: [
            #"{"type":"push_account","push_account_id":[$ID],"op":"update","status":"active"}"#,
            #"{"type":"push_account","push_account_id":null,"op":"update","status":7}"#,
            #"{}"#, #"{"type":"message"}"#, #"{"type":7,"push_account_id":$ID}"#,
            #"{"type":"push_account","push_account_id":5,"op":7,"status":{}}"#,
            #"{"type":"push_account","op":"paint","push_account_id":$ID}"#,
            #"{"type":"push_device","push_account_id":$ID,"status":"active"}"#,
            #"{"type":"device","op":"remove","device_id":$ID}"#,
            #"{"events":[]}"#, #"{"events":[1,"x",null,[],{"type":"heartbeat","id":0}]}"#
        ])
    func foreignEvent(_ event: String) throws {
        var phone = try pending()
        let before = phone.device.encoded()
        #expect(try phone.event(event) == [])
        #expect(phone.device.encoded() == before)
    }

    @Test("Events of one answer are taken in order, as many as a phone can have")
    func manyEvents() throws {
        let one = { (status: String) in
            #"{"id":5,"type":"push_account","op":"update","push_account_id":$ID,"status":"\#(status)"}"#
        }
        var phone = try pending()
        try phone.event(#"{"result":"success","events":[\#(one("pending")),\#(one("active"))]}"#)
        #expect(phone.status.state == .active)
        let many = Array(repeating: one("pending"), count: 1_001).joined(separator: ",")
        expectRefused(phone, event: #"{"events":[\#(many)]}"#)
    }

    @Test(
        "A column of v12 that is none is refused; null and absent are not the same",
        arguments: [
            #""push_key_id":-1"#, #""push_key_id":4294967296"#, #""push_key_id":"1""#, #""push_key_id":1.0"#,
            #""push_token_id":7"#, #""push_token_id":"AAAA""#, #""push_token_id":"AAAAAAAAAAB=""#,
            #""pending_push_token_id":"""#, #""pending_push_token_id":[]"#,
            #""push_token_last_updated_timestamp":"5""#, #""push_token_last_updated_timestamp":1.5"#,
            #""push_registration_error_code":5"#
        ])
    func badColumns(_ column: String) throws {
        let phone = try pending(ZulipPlayedDevice.v12)
        expectRefused(phone, state: #"{"devices":{"41":{\#(column)}}}"#)
        expectRefused(phone, event: #"{"type":"device","op":"update","device_id":41,\#(column)}"#)
        for state in ["{}", #"{"devices":null}"#, #"{"devices":{"41":null}}"#, #"{"devices":{"41":[]}}"#] {
            expectRefused(phone, state: state)
        }
    }

    @Test("A null clears a column and an absent one stays")
    func nulls() throws {
        var phone = try pending(ZulipPlayedDevice.v12)
        try phone.event(
            #"{"type":"device","op":"update","device_id":41,"push_registration_error_code":null}"#)
        #expect(phone.status.state == .pending)
        try phone.event(#"{"type":"device","op":"update","device_id":"41","pending_push_token_id":null}"#)
        #expect(phone.status.state == .none)
    }

    // MARK: any server at all

    /// Answers, states and events of a server that wants to be called as often as possible.
    private static func spite(
        _ phone: inout ZulipPlayedDevice, _ random: inout SeededRandom
    ) throws {
        let own = TokenID(token: Secret(ZulipPlayedDevice.token.utf8)).text
        let status = draw(["active", "pending", "failed", "7"], &random)
        let code = draw(["REQUEST_EXPIRED", "INVALID_BOUNCER_PUBLIC_KEY", "NEW", "new", nil], &random)
        let tokens = (0..<2).map { _ in draw([own, "AAAAAAAAAAE=", nil], &random) }
        let columns =
            #""push_token_id":\#(tokens[0]),"pending_push_token_id":\#(tokens[1]),"push_key_id":1,"#
            + #""push_registration_error_code":\#(code),"push_token_last_updated_timestamp":0"#
        let entry = #"{"status":\#(status),"error_code":\#(code)}"#
        let account = #""type":"push_account","push_account_id":$ID"#
        switch Int.random(in: 0..<10, using: &random) {
        case 0: try phone.fetch(#"{"push_account_ids":{},"push_devices":{},"devices":{}}"#)
        case 1:
            try phone.fetch(
                #"{"push_account_ids":{"$ID":\#(entry)},"push_devices":{"$ID":\#(entry)},"#
                    + #""devices":{"$ID":{\#(columns)}}}"#)
        case 2: try phone.event(#"{\#(account),"op":"remove","error_code":\#(code)}"#)
        case 3: try phone.event(#"{\#(account),"op":"update","status":\#(status)}"#)
        case 4:
            try phone.event(
                #"{"type":"push_device","push_account_id":$ID,"status":\#(status),"error_code":\#(code)}"#)
        case 5: try phone.event(#"{"type":"device","op":"remove","device_id":$ID}"#)
        case 6: try phone.event(#"{"type":"device","op":"update","device_id":$ID,\#(columns)}"#)
        default:
            let number = Int64.random(in: 1...3, using: &random)
            let statuses: [Int?] = [200, 200, 200, 429, 503, nil]
            try phone.answer(
                statuses.randomElement(using: &random) ?? nil,
                #"{"result":"success","device_id":\#(number),"retry-after":0}"#, retryAfter: "0")
        }
    }

    /// One of some texts, in quotation marks, or null.
    private static func draw(_ texts: [String?], _ random: inout SeededRandom) -> String {
        guard let text = texts.randomElement(using: &random) ?? nil else { return "null" }
        return #""\#(text)""#
    }

    @Test(
        "Whatever a server says, in any profile: one call at a time, and what is kept reads back",
        arguments: ZulipProfile.allCases)
    func anyServer(_ profile: ZulipProfile) throws {
        let settings = [
            ZulipProfile.v12: ZulipPlayedDevice.v12, .zap: ZulipPlayedDevice.zap, .v11: ZulipPlayedDevice.v11
        ]
        for seed in 0..<10 as Range<UInt64> {
            var phone = try ZulipPlayedDevice(#require(settings[profile]), seed: seed)
            var random = SeededRandom(seed: 1_000 + seed)
            try phone.begin()
            for number in 0..<200 {
                do { try Self.spite(&phone, &random) } catch let error as ZulipError {
                    #expect(error == ZulipError(.malformedAnswer), "seed \(seed)")
                }
                if Int.random(in: 0..<4, using: &random) == 0 { try phone.wait(1) }
                if Int.random(in: 0..<50, using: &random) == 0 { try phone.restart() }
                if number.isMultiple(of: 8) {
                    let kept = phone.device.encoded()
                    #expect(try ZulipRoutine(keeping: kept).encoded() == kept, "seed \(seed)")
                }
                #expect(phone.words.count { $0 == "register" || $0 == "add" } <= 1, "seed \(seed)")
                if let deadline = phone.device.nextDeadline, deadline <= phone.now {
                    try phone.wait(0)
                    // Time alone wants nothing twice.
                    #expect(phone.device.nextDeadline.map { $0 > phone.now } ?? true, "seed \(seed)")
                }
            }
        }
    }

    @Test("A server that never says active is called eight times in the first ten minutes at most")
    func neverActive() throws {
        for seed in 0..<5 as Range<UInt64> {
            var phone = try ZulipPlayedDevice(ZulipPlayedDevice.zap, seed: seed)
            var random = SeededRandom(seed: seed)
            try phone.begin()
            for _ in 0..<600 {
                let news = [
                    #"{"type":"push_account","op":"remove","push_account_id":$ID}"#,
                    #"{"type":"push_account","op":"remove","push_account_id":$ID,"error_code":"X"}"#,
                    #"{"type":"push_account","op":"add","push_account_id":$ID,"status":"pending"}"#
                ]
                try phone.event(news.randomElement(using: &random) ?? "")
                try phone.answer(200)
                try phone.fetch(#"{"push_account_ids":{}}"#)
                try phone.wait(1)
            }
            #expect(phone.calls.count <= 8, "seed \(seed): \(phone.calls.count)")
        }
    }
}
