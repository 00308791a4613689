import Primitives
import PushModel
import PushTesting
import Testing
import WireFormats
import ZulipPush

/// A push as the system hands it over, against all accounts of a phone.
@Suite("Zulip delivery")
struct DeliveryTests {
    private static let day: Int64 = 86_400
    private static let plain = Secret(
        #"{"realm_url":"https://chat.example.org","realm_name":"Chat","user_id":7,"type":"test","time":5}"#
            .utf8)

    /// Sealed to what the phone last told its server.
    private func content(
        of phone: ZulipPlayedDevice, _ plain: Secret = DeliveryTests.plain
    ) throws -> (id: String, text: String) {
        var random = SeededRandom(seed: 5)
        let call = try #require(phone.calls.last { $0.kind == .register })
        let id = try #require(call.text("push_key_id") ?? call.text("push_account_id"))
        let sealed: Secret
        if let key = call.text("push_public_key") {
            sealed = try AccountBox.seal(plain, to: PushPublicKey(base64: key), using: &random)
        } else {
            let key = try Base64.decode(#require(call.text("push_key")))
            let nonce = [UInt8](repeating: 4, count: SecretBox.nonceBytes)
            let box = try SecretBox.seal(plain, key: Secret(key[1...]), nonce: nonce)
            sealed = Secret(Base64.encode(nonce + box))
        }
        return (id, sealed.reveal { String(decoding: $0, as: UTF8.self) })
    }

    private func open(_ json: String, _ phones: [ZulipPlayedDevice]) -> String {
        open(Secret(json.utf8), phones)
    }

    private func open(_ json: Secret, _ phones: [ZulipPlayedDevice]) -> String {
        do throws(ZulipError) {
            let now = phones.first?.now ?? ZulipPlayedDevice.start
            let opened = try ZulipRoutine.open(delivered: json, for: phones.map(\.device), now: now)
            return "\(opened.place)" + (opened.notification == nil ? " ignored" : "")
        } catch { return error.codeText }
    }

    private func registered(_ settings: ZulipServerSettings, seed: UInt64 = 1) throws -> ZulipPlayedDevice {
        var phone = try ZulipPlayedDevice(settings, seed: seed)
        try phone.begin()
        if settings == ZulipPlayedDevice.v12 {
            try phone.answer(200, #"{"result":"success","device_id":41}"#)
        }
        try phone.answer(200)
        return phone
    }

    @Test("A push of each profile opens at its own account, whichever place that has")
    func allProfiles() throws {
        let phones = [
            try registered(ZulipPlayedDevice.v12, seed: 1), try registered(ZulipPlayedDevice.zap, seed: 2),
            try registered(ZulipPlayedDevice.v11, seed: 3)
        ]
        let members = [
            ("push_key_id", "encrypted_data"), ("push_account_id", "encrypted_content"),
            ("push_account_id", "encrypted_data")
        ]
        for (place, (id, content)) in members.enumerated() {
            let sealed = try self.content(of: phones[place])
            for value in [sealed.id, #""\#(sealed.id)""#] {
                let json = #"{"\#(id)":\#(value),"\#(content)":"\#(sealed.text)"}"#
                #expect(open(json, phones) == "\(place)")
                // As APNs has it, as FCM has it, and as a text within it.
                let beside = #"{"aps":{"alert":{"title":"x"}},"from":5,\#(json.dropFirst())"#
                #expect(open(beside, phones) == "\(place)")
                #expect(open(#"{"message":{"token":"t","data":\#(json)}}"#, phones) == "\(place)")
                var writer = JSONWriter()
                writer.string(json)
                let text = String(decoding: writer.bytes, as: UTF8.self)
                #expect(open(#"{"data":\#(text)}"#, phones) == "\(place)")
                #expect(open(json, [phones[(place + 1) % 3], phones[(place + 2) % 3]]).hasPrefix("unknown"))
                #expect(open(json, []).hasPrefix("unknown"))
            }
        }
    }

    @Test("A content never opens with another profile's key, under whatever name it comes")
    func neverMixed() throws {
        let zap = try registered(ZulipPlayedDevice.zap)
        let v11 = try registered(ZulipPlayedDevice.v11, seed: 2)
        let v12 = try registered(ZulipPlayedDevice.v12, seed: 3)
        let boxes = try [zap, v11, v12].map { try content(of: $0) }
        let ids = boxes.map(\.id)
        for box in boxes {
            // The id is another's, or the member is.
            let crossed = [
                #"{"push_account_id":\#(ids[0]),"encrypted_data":"\#(box.text)"}"#,
                #"{"push_account_id":\#(ids[1]),"encrypted_content":"\#(box.text)"}"#
            ]
            for json in crossed { #expect(open(json, [zap, v11, v12]) == "unknownAccount", "\(json)") }
        }
        let misplaced = [
            #"{"push_account_id":\#(ids[0]),"encrypted_content":"\#(boxes[1].text)"}"#,
            #"{"push_account_id":\#(ids[1]),"encrypted_data":"\#(boxes[0].text)"}"#,
            #"{"push_account_id":\#(ids[1]),"encrypted_data":"\#(boxes[2].text)"}"#,
            #"{"push_key_id":\#(ids[2]),"encrypted_data":"\#(boxes[1].text)"}"#
        ]
        for json in misplaced { #expect(open(json, [zap, v11, v12]) == "doesNotOpen", "\(json)") }
    }

    @Test("A former id opens for thirty days after the token changed, and then no more")
    func formerIDs() throws {
        var phone = try registered(ZulipPlayedDevice.zap)
        let old = try content(of: phone)
        try phone.take(.token(ZulipPlayedDevice.apns(ZulipPlayedDevice.other)))
        let new = try content(of: phone)
        #expect(old.id != new.id)
        let json = { (box: (id: String, text: String)) in
            #"{"push_account_id":\#(box.id),"encrypted_content":"\#(box.text)"}"#
        }
        for days in [0, 29] as [Int64] {
            var later = phone
            later.now = later.now + .seconds(days * Self.day)
            #expect(open(json(old), [later]) == "0")
            #expect(open(json(new), [later]) == "0")
        }
        phone.now = phone.now + .seconds(30 * Self.day)
        #expect(open(json(old), [phone]) == "unknownAccount")
        try phone.restart(ZulipPlayedDevice.other)
        #expect(open(json(old), [phone]) == "unknownAccount")
        #expect(open(json(new), [phone]) == "0")
    }

    @Test("A content of another user or realm is refused, one of a later type ignored")
    func contents() throws {
        let phone = try registered(ZulipPlayedDevice.zap)
        let chat = #"{"realm_url":"https://chat.example.org""#
        let bodies = [
            (chat + #","user_id":8,"type":"test","time":5}"#, "foreignContent"),
            (#"{"realm_url":"https://evil.org","user_id":7,"type":"test","time":5}"#, "foreignContent"),
            (chat + #","user_id":7,"type":"paint"}"#, "0 ignored"),
            (chat + #","user_id":7,"type":"test"}"#, "malformedContent"), ("", "malformedContent"),
            ("[]", "malformedContent")
        ]
        for (body, outcome) in bodies {
            let box = try content(of: phone, Secret(body.utf8))
            let json = #"{"push_account_id":\#(box.id),"encrypted_content":"\#(box.text)"}"#
            #expect(open(json, [phone]) == outcome, "\(body)")
        }
        // Padded as an origin pads it, and a little more.
        for size in [512, 1_024, 2_048, 2_688, 8_000] {
            let padding = String(repeating: " ", count: size)
            let body =
                #"{"realm_url":"https://chat.example.org","user_id":7,"type":"test","time":5,"padding":"#
                + #""\#(padding)"}"#
            let box = try content(of: phone, Secret(body.utf8))
            let json = #"{"push_account_id":\#(box.id),"encrypted_content":"\#(box.text)"}"#
            #expect(open(json, [phone]) == "0", "\(size)")
        }
    }

    @Test(
        "What is not of this protocol is another's",
        arguments: [
            "", "null", "[]", "5", #""x""#, "{}", #"{"aps":{}}"#, #"{"push_account_id":1}"#,
            #"{"encrypted_content":"QUJD"}"#, #"{"push_account_id":true,"encrypted_content":"QUJD"}"#,
            #"{"push_account_id":1,"encrypted_content":5}"#,
            #"{"push_account_id":[1],"encrypted_content":"QUJD"}"#,
            #"{"push_account_id":1,"encrypted_content":null}"#,
            #"{"push_account_id":"01","encrypted_content":"QUJD"}"#,
            #"{"push_account_id":"+1","encrypted_content":"QUJD"}"#,
            #"{"push_account_id":"-0","encrypted_content":"QUJD"}"#,
            #"{"push_account_id":"1 ","encrypted_content":"QUJD"}"#,
            #"{"push_account_id":"","encrypted_content":"QUJD"}"#,
            #"{"push_account_id":"1e3","encrypted_content":"QUJD"}"#,
            #"{"push_account_id":1e3,"encrypted_content":"QUJD"}"#,
            #"{"push_account_id":9223372036854775808,"encrypted_content":"QUJD"}"#,
            #"{"push_account_id":-9223372036854775809,"encrypted_content":"QUJD"}"#,
            #"{"push_key_id":4294967296,"encrypted_data":"QUJD"}"#,
            #"{"push_key_id":-1,"encrypted_data":"QUJD"}"#, #"{"push_key_id":1,"encrypted_content":"QUJD"}"#,
            #"{"push_key_id":1,"push_account_id":1,"encrypted_data":"QUJD"}"#,
            #"{"push_key_id":1,"push_account_id":1,"encrypted_content":"QUJD"}"#,
            #"{"push_account_id":1,"encrypted_data":"QUJD","encrypted_content":"QUJD"}"#,
            #"{"data":{"data":{"data":{"data":{"push_account_id":1,"encrypted_content":"QUJD"}}}}}"#,
            #"{"push_account_id":1,"encrypted_content":"QUJD"}x"#,
            #"{"push_account_id":1,"encrypted_content":"QUJD","a":"\#(String(repeating: "x", count: 17_000))"}"#
        ])
    func foreign(_ json: String) throws {
        #expect(open(json, [try registered(ZulipPlayedDevice.zap)]) == "foreignPush")
    }

    @Test("Of doubled members the last counts; a null is not there; ids reach to both ends")
    func doubled() throws {
        let phone = try registered(ZulipPlayedDevice.zap)
        let box = try content(of: phone)
        let doubled =
            #"{"push_account_id":1,"encrypted_content":"x","push_key_id":null,"encrypted_data":null,"#
            + #""push_account_id":\#(box.id),"encrypted_content":"\#(box.text)"}"#
        #expect(open(doubled, [phone]) == "0")
        for id in ["-9223372036854775808", "9223372036854775807", "0", "-1"] {
            for value in [id, #""\#(id)""#] {
                #expect(
                    open(#"{"push_account_id":\#(value),"encrypted_content":"QUJD"}"#, [phone])
                        == "unknownAccount")
            }
        }
    }

    @Test("A push that is cut or changed anywhere is dropped, with one of the errors that say so")
    func changed() throws {
        let phone = try registered(ZulipPlayedDevice.zap)
        let box = try content(of: phone)
        let whole = Array(#"{"push_account_id":\#(box.id),"encrypted_content":"\#(box.text)"}"#.utf8)
        try #require(open(Secret(whole), [phone]) == "0")
        let dropped: Set = ["foreignPush", "unknownAccount", "doesNotOpen"]
        for length in whole.indices {
            #expect(dropped.contains(open(Secret(whole[..<length]), [phone])), "length \(length)")
        }
        for (place, bytes) in whole.withEachChanged(2).enumerated() {
            #expect(dropped.contains(open(Secret(bytes), [phone])), "byte \(place)")
        }
    }
}
