import PushModel
import Testing
import ZulipPush

@Suite("Bodies of Zulip's registrations")
struct RegistrationBodyTests {
    @Test("Each says its own app, whichever was read before")
    func apps() throws {
        let apps = ["org.zulip.Zulip", "org.zulip.Zulik", "org.zulip.Zuli", "", "org.zulip.Zulip.\u{E9}"]
        for first in apps {
            for second in apps {
                for app in [first, second, second, first] {
                    let token = Secret(Array("\(app)-token".utf8))
                    let body = ZulipRegistration(kind: .apns, token: token, appID: app, accountID: 7).body
                    let read = try #require(ZulipRegistration(body: body))
                    #expect(read.appID == app)
                    #expect(read.token == token)
                }
            }
        }
    }
}
