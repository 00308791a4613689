import PushModel
import SealbellKit
import Testing
import WireFormats
import ZulipPush

/// Answers that come late, never, or with nothing that is of use.
@Suite("Zulip device of the kit: late answers", .timeLimit(.minutes(30)))
struct ZulipKitLateTests {
    private func active(_ profile: ZulipProfile) throws -> ZulipKitPhone {
        var phone = try ZulipKitPhone(profile)
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

    // MARK: state and events

    @Test("A state may be as large as a realm's settings make it", arguments: ZulipProfile.allCases)
    func largeState(_ profile: ZulipProfile) throws {
        var phone = try ZulipKitPhone(profile)
        phone.server.settingsBytes = 300_000
        try phone.work()
        #expect(phone.status.state == .active)
    }

    @Test("A state whose answer never comes is asked for again, and a late answer only closes its queue")
    func lostState() throws {
        for profile in ZulipProfile.allCases {
            var phone = try active(profile)
            try phone.restart()
            let settings = try due("server_settings", &phone)
            phone.device.answered(
                phone.server.answer(settings, at: phone.now), to: settings, at: phone.now,
                using: &phone.random)
            let lost = try due("/api/v1/register", &phone)
            phone.now = phone.now + ZulipLimits.callLife
            #expect(phone.device.nextDue == phone.now)
            let call = try due("/api/v1/register", &phone)
            let answer = phone.server.answer(call, at: phone.now)
            let late = phone.server.answer(lost, at: phone.now)
            phone.device.answered(late, to: lost, at: phone.now, using: &phone.random)
            phone.device.answered(answer, to: call, at: phone.now, using: &phone.random)
            try phone.work()
            #expect(phone.server.queues.isEmpty)
            #expect(phone.status.state == .active)
        }
    }

    @Test("Events whose answer never comes are asked for again in the same queue")
    func lostEvents() throws {
        var phone = try ZulipKitPhone(.zap)
        for path in ["server_settings", "mobile_push/register", "/api/v1/register"] {
            let call = try due(path, &phone)
            phone.device.answered(
                phone.server.answer(call, at: phone.now), to: call, at: phone.now, using: &phone.random)
        }
        let lost = try due("/api/v1/events", &phone)
        phone.now = phone.now + ZulipLimits.callLife
        let call = try due("/api/v1/events", &phone)
        #expect(call.http?.url == lost.http?.url)
        phone.device.answered(
            phone.server.answer(call, at: phone.now), to: call, at: phone.now, using: &phone.random)
        try phone.work()
        #expect(phone.status.state == .active)
        #expect(phone.server.queues.isEmpty)
    }

    // MARK: logout

    /// Of a new phone: the registering call, which is not made yet.
    private func registering(_ phone: inout ZulipKitPhone) throws -> Call {
        let settings = try due("server_settings", &phone)
        phone.device.answered(
            phone.server.answer(settings, at: phone.now), to: settings, at: phone.now, using: &phone.random)
        return try due("mobile_push/register", &phone)
    }

    private func due(_ path: String, _ phone: inout ZulipKitPhone) throws -> Call {
        let calls = phone.device.due(at: phone.now, using: &phone.random)
        return try #require(calls.first { $0.http?.url.contains(path) == true })
    }

    @Test("The answer to a registering call of before a logout says nothing of the one after it")
    func answerOfBefore() throws {
        for profile in [ZulipProfile.zap, .v11] {
            var phone = try ZulipKitPhone(profile)
            let former = try registering(&phone)
            try phone.device.use(token: nil)
            _ = phone.device.due(at: phone.now, using: &phone.random)
            try phone.device.use(token: .apns(hex: ZulipKitPhone.token))
            let call = try registering(&phone)
            let kept = phone.device.kept
            let success = CallAnswer.http(status: 200, body: Secret(KitServer.success.utf8))
            phone.device.answered(success, to: former, at: phone.now, using: &phone.random)
            #expect(phone.device.kept == kept)
            phone.device.answered(
                phone.server.answer(call, at: phone.now), to: call, at: phone.now, using: &phone.random)
            try phone.work()
            #expect(phone.status.state == .active)
        }
    }

    @Test("What a registering call tells is forgotten behind its answer, or once that is lost")
    func logoutBesideCall() throws {
        for profile in [ZulipProfile.zap, .v11] {
            var phone = try ZulipKitPhone(profile)
            let call = try registering(&phone)
            try phone.device.use(token: nil)
            #expect(phone.device.due(at: phone.now, using: &phone.random).isEmpty)
            #expect(phone.device.nextDue == phone.now + ZulipLimits.callLife)
            #expect(!phone.device.isGone)
            let answer = phone.server.answer(call, at: phone.now)
            #expect(phone.server.registrations.count == 1)
            var lost = phone
            phone.device.answered(answer, to: call, at: phone.now, using: &phone.random)
            try phone.work()
            #expect(phone.server.registrations.isEmpty && phone.device.isGone)
            lost.now = lost.now + ZulipLimits.callLife
            try lost.work()
            #expect(lost.server.registrations.isEmpty && lost.device.isGone)
        }
    }

    @Test("A device that the server adds beside the logout is taken back, also behind the next login")
    func logoutBesideDevice() throws {
        var phone = try ZulipKitPhone(.v12)
        let settings = try due("server_settings", &phone)
        phone.device.answered(
            phone.server.answer(settings, at: phone.now), to: settings, at: phone.now, using: &phone.random)
        let call = try due("register_client_device", &phone)
        try phone.device.use(token: nil)
        #expect(phone.device.due(at: phone.now, using: &phone.random).isEmpty)
        #expect(phone.device.nextDue == phone.now + ZulipLimits.callLife && !phone.device.isGone)
        let answer = phone.server.answer(call, at: phone.now)
        #expect(phone.server.registrations.count == 1)
        var (lost, back) = (phone, phone)
        // The clock was a little ahead.
        phone.now = phone.now - .seconds(5)
        #expect(phone.device.due(at: phone.now, using: &phone.random).isEmpty && !phone.device.isGone)
        phone.device.answered(answer, to: call, at: phone.now, using: &phone.random)
        #expect(!phone.device.isGone)
        try phone.work()
        #expect(phone.server.registrations.isEmpty && phone.device.isGone)
        #expect(phone.device.nextDue == nil)
        let heard = phone.server.heard.count
        phone.device.answered(answer, to: call, at: phone.now, using: &phone.random)
        try phone.work()
        #expect(phone.server.heard.count == heard, "twice")

        // Nobody knows which it was; nor may a clock that was far ahead delay that.
        var ahead = lost
        ahead.now = ahead.now - ZulipLimits.callLife
        try ahead.work()
        #expect(ahead.device.isGone && ahead.device.nextDue == nil)
        lost.now = lost.now + ZulipLimits.callLife
        try lost.work()
        #expect(lost.device.isGone && lost.device.nextDue == nil)

        try back.device.use(token: .apns(hex: ZulipKitPhone.token))
        try back.work()
        #expect(back.server.registrations.count == 2)
        back.device.answered(answer, to: call, at: back.now, using: &back.random)
        try back.work()
        #expect(back.server.registrations.count == 1 && back.status.state == .active)
    }
}
