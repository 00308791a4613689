import PushModel
import SealbellKit
import Testing
import WireFormats
import ZulipPush

/// Answers that come late, never, or with nothing that is of use.
@Suite("Zulip device of the kit: late answers", .timeLimit(.minutes(30)))
struct ZulipKitLateTests {
    private func active(_ profile: ZulipProfile) throws -> KitPhone {
        var phone = try KitPhone(profile)
        try phone.work()
        try #require(phone.status.state == .active)
        return phone
    }

    // MARK: once more, for the user

    @Test(
        "What the user asks for waits where the state is not to be had, and is done once it is",
        arguments: [503, nil])
    func againLater(_ status: Int?) throws {
        var phone = try active(.v12)
        let told = phone.server.count("mobile_push/register")
        let asked = phone.server.count("POST /api/v1/register")
        if let status {
            phone.server.instead = [("/api/v1/register", status, "")]
        } else {
            phone.server.isDown = true
        }
        try phone.restart()
        phone.device.registerAgain()
        try phone.work()
        #expect(phone.server.count("POST /api/v1/register") == asked + 1)
        phone.server.instead = []
        phone.server.isDown = false
        try phone.pass(.seconds(60))
        #expect(phone.server.count("mobile_push/register") == told + 1)
        #expect(phone.status.state == .active)
    }

    @Test("A state that is refused for its login is asked for no more, whatever the user has asked for")
    func againLoggedOut() throws {
        var phone = try active(.v12)
        phone.server.instead = [("/api/v1/register", 401, "")]
        try phone.restart()
        phone.device.registerAgain()
        let heard = phone.server.heard.count
        try phone.work()
        try phone.pass(.seconds(86_400))
        #expect(phone.server.heard.count == heard + 2, "the settings, and the state once")
        #expect(phone.status.advice == .logInAgain)
    }
}
