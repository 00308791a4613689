import PushModel
import SealbellKit
import Testing
import ZulipPush

/// A device that listens to its server for as long as its app runs.
@Suite("Zulip device of the kit: listening", .timeLimit(.minutes(30)))
struct ZulipKitListeningTests {
    private static let hour = Duration.seconds(3_600)
    private static let minute = Duration.seconds(60)

    private func listening(_ profile: ZulipProfile) throws -> ZulipKitPhone {
        var phone = try ZulipKitPhone(profile, login: ZulipKitPhone.login(asksForEvents: .always))
        try phone.work()
        try #require(phone.status.state == .active)
        return phone
    }

    @Test(
        "Its queue stays open, and what the server loses is registered again within the minute",
        arguments: ZulipProfile.allCases)
    func staysOpen(_ profile: ZulipProfile) throws {
        var phone = try listening(profile)
        let opened = phone.server.count("POST /api/v1/register")
        try phone.pass(Self.hour)
        #expect(phone.server.queues.count == 1)
        #expect(phone.server.count("POST /api/v1/register") == opened, "one queue")
        #expect(phone.server.count("GET /api/v1/events") >= 60)

        let (id, told) = (
            try #require(phone.server.registrations.keys.first), phone.server.count("mobile_push/register")
        )
        phone.server.registrations[id]?.status = "pending"
        phone.server.settle(code: "REQUEST_EXPIRED")
        try phone.pass(Self.minute)
        #expect(phone.server.count("mobile_push/register") == told + 1)
        #expect(phone.status.state == .active)
        #expect(phone.server.queues.count == 1)
    }

    @Test("A repeated registration of which no event tells is looked up", arguments: ZulipProfile.allCases)
    func repeated(_ profile: ZulipProfile) throws {
        var phone = try listening(profile)
        let told = phone.server.count("POST /api/v1/register")
        phone.device.registerAgain()
        try phone.work()
        #expect(phone.server.count("POST /api/v1/register") == told + 1)
        #expect(phone.status.state == .active && phone.server.queues.count == 1)
    }

    @Test("A queue that the server does not know any more has another in its place")
    func lostQueue() throws {
        var phone = try listening(.zap)
        let opened = phone.server.count("POST /api/v1/register")
        phone.server.queues = [:]
        try phone.pass(Self.minute)
        #expect(phone.server.queues.count == 1)
        #expect(phone.server.count("POST /api/v1/register") == opened + 1)
    }

    @Test("A server that is away, or refuses the state, is asked about once a minute until it answers")
    func away() throws {
        var phone = try listening(.zap)
        phone.server.isDown = true
        var polls = phone.server.count("GET /api/v1/events")
        try phone.pass(Self.hour)
        #expect((60...130).contains(phone.server.count("GET /api/v1/events") - polls))
        phone.server.isDown = false
        polls = phone.server.count("GET /api/v1/events")
        try phone.pass(Self.minute)
        #expect(phone.server.count("GET /api/v1/events") > polls)

        var refused = try ZulipKitPhone(.zap, login: ZulipKitPhone.login(asksForEvents: .always))
        refused.server.instead = [("/api/v1/register", 403, "")]
        try refused.work()
        try refused.pass(Self.hour)
        #expect((60...130).contains(refused.server.count("POST /api/v1/register")))
        refused.server.instead = []
        try refused.pass(Self.minute)
        #expect(refused.status.state == .active && refused.server.queues.count == 1)
    }

    @Test("It is closed at the app's word, and a late answer opens no other", arguments: [200, nil])
    func closing(_ late: Int?) throws {
        var phone = try listening(.zap)
        phone.now = try max(phone.now, #require(phone.device.nextDue))
        let calls = phone.device.due(at: phone.now, using: &phone.random)
        let poll = try #require(calls.first { $0.http?.method == "GET" })
        #expect(poll.patience == KitLimits.longPatience)
        let heard = phone.server.count("/api/v1/register")
        phone.device.closeEvents()
        let answer = late.map { CallAnswer.http(status: $0, body: Secret("<html>".utf8)) } ?? .none
        phone.device.answered(answer, to: poll, at: phone.now, using: &phone.random)
        try phone.pass(Self.hour)
        #expect(phone.server.queues.isEmpty)
        #expect(phone.server.count("/api/v1/register") == heard)
        #expect(phone.server.count("DELETE /api/v1/events") == 1)
        // The next start opens another.
        try phone.restart()
        try phone.work()
        #expect(phone.server.queues.count == 1)
    }

    @Test("A login that the server does not take any more ends it")
    func refusedLogin() throws {
        var phone = try listening(.zap)
        phone.server.apiKey = "another key"
        try phone.pass(Self.minute)
        #expect(phone.status.advice == .logInAgain)
        let heard = phone.server.heard.count
        try phone.pass(Self.hour)
        #expect(phone.server.heard.count == heard)
    }
}
