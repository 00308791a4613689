import PushModel
import Testing
import WireFormats
import ZulipPush

/// What an origin reads and shows while it takes its host's name back (§5.2).
@Suite("A transfer at the origin", .timeLimit(.minutes(30)))
struct TransferWireTests {
    @Test("The relay's secret is read, and nothing that is none")
    func secret() throws {
        let asked = Secret(#"{"result":"success","msg":"","verification_secret":"5ec2e7"}"#.utf8)
        #expect(try #require(ZulipTransfer.secret(in: asked)) == Secret("5ec2e7".utf8))
        let long = String(repeating: "a", count: 129)
        for text in [
            "", "[]", "<html>", #"{"verification_secret":7}"#, #"{"verification_secret":""}"#,
            #"{"verification_secret":"\#(long)"}"#, #"{"verification_secret":"a"} x"#, #"{"other":"a"}"#
        ] {
            #expect(ZulipTransfer.secret(in: Secret(text.utf8)) == nil, "\(text.prefix(40))")
        }
    }

    @Test("Id and key are taken together, or not")
    func credentials() throws {
        let id = "6cde5f7a-1f7e-4978-9716-49f69ebfc9fe"
        let key = String(repeating: "k", count: 64)
        func answer(_ id: String, _ key: String) -> Secret {
            Secret(#"{"result":"success","zulip_org_id":"\#(id)","zulip_org_key":"\#(key)"}"#.utf8)
        }
        let read = try #require(ZulipTransfer.credentials(in: answer(id, key)))
        #expect(read.id == id)
        #expect(read.key == Secret(key.utf8))
        #expect(ZulipTransfer.credentials(in: answer(id, String(key.dropLast()))) == nil)
        #expect(ZulipTransfer.credentials(in: answer("no-uuid", key)) == nil)
        #expect(ZulipTransfer.credentials(in: Secret(#"{"zulip_org_id":"\#(id)"}"#.utf8)) == nil)
    }

    @Test("The host shows what it was given, whatever characters it has, and the calls carry no credentials")
    func shown() throws {
        let secret = Secret("a\"b\\c".utf8)
        #expect(try #require(ZulipTransfer.secret(in: ZulipTransfer.body(showing: secret))) == secret)
        var random = SystemRandomNumberGenerator()
        let origin = ZulipOrigin.invent(version: "12.2", using: &random).origin
        for call in [
            origin.transfer(hostname: "chat.example"),
            origin.verifyChallenge(hostname: "chat.example", accessToken: Secret("70ce2".utf8))
        ] {
            #expect(!call.headers.contains { $0.name.lowercased() == "authorization" })
            let text = call.body.reveal { String(decoding: $0, as: UTF8.self) }
            #expect(text.hasPrefix("hostname=chat.example"))
            #expect(!text.contains(origin.id))
        }
    }
}
