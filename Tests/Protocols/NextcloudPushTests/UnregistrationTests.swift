import NextcloudPush
import PushModel
import PushTesting
import Testing
import WireFormats

/// An account that leaves a phone is taken back at the server, then at the proxy, however long it takes
/// (§3.4).
@Suite("Nextcloud unregistration", .timeLimit(.minutes(30)))
struct UnregistrationTests {
    private static let password = Secret(Base64.text(Array("alice@example.org:aaaaa-bbbbb".utf8)).utf8)
    private let ends: Ends
    private var phone: NextcloudKitPhone

    init() throws {
        ends = try Ends()
        phone = try NextcloudKitPhone.registered(ends)
    }

    @Test(
        "The server is asked first, then the proxy, whatever the server says, and after a restart too",
        arguments: [200, 202, 400, 401, 404])
    mutating func bothSides(_ status: Int) throws {
        try phone.device.use(token: nil)
        #expect(!phone.device.isGone && phone.device.status(at: phone.now).state == .pending)
        try phone.restart(leaves: true)
        let server = try phone.due()
        #expect(
            server.path
                == "DELETE https://cloud.example.org/ocs/v2.php/apps/notifications/api/v2/push?format=json")
        #expect(server.header("Authorization")?.hasPrefix("Basic ") == true && server.text.isEmpty)
        #expect(phone.isIdle())
        phone.answer(status, to: server)
        #expect(!phone.device.isGone)
        try phone.restart(leaves: true)
        let proxy = try phone.due()
        #expect(proxy.path == "DELETE https://push.example.com/devices")
        let fields = try Form.parse(Array(proxy.text.utf8))
        #expect(
            fields.fields.map(\.name) == [
                "deviceIdentifier", "deviceIdentifierSignature", "userPublicKey"
            ])
        #expect(fields.text("userPublicKey") == ends.user.key.publicKey.pem)
        phone.answer(403, to: proxy)
        phone.answer(503, to: proxy)
        #expect(phone.device.isGone && phone.device.nextDue == nil && phone.isIdle())
        // Switched off: there is nothing that the user should do.
        #expect(phone.device.status(at: phone.now).advice == .none)
        try phone.restart(leaves: true)
        #expect(phone.device.isGone)
    }

    @Test("The password is kept between the logout and the server's answer, and at no other time")
    mutating func password() throws {
        func holds(_ phone: NextcloudKitPhone) -> Bool {
            let text = phone.device.kept.reveal { String(decoding: $0, as: UTF8.self) }
            return text.contains(Self.password.reveal { String(decoding: $0, as: UTF8.self) })
                || text.contains("aaaaa-bbbbb")
        }
        #expect(!holds(phone))
        try phone.device.use(token: nil)
        #expect(holds(phone))
        // The login need not be at hand any more.
        let bare = NextcloudAccount(
            serverURL: Ends.server, userID: "alice", loginName: "", appPassword: Secret([]))
        let before = try phone.due().header("Authorization")
        let login = NextcloudLogin(bare, Ends.app)
        try phone.restart(login, leaves: true)
        #expect(try phone.device.kept == NextcloudDevice(login, keeping: phone.device.kept).kept)
        let again = try phone.due()
        #expect(again.header("Authorization") == before && before != nil)
        phone.answer(202, to: again)
        #expect(!phone.device.isGone && !holds(phone))
        phone.answer(200, to: try phone.due())
        #expect(phone.device.isGone && !holds(phone))
    }

    @Test("A phone without network tries again, less and less often, for a month")
    mutating func offline() throws {
        try phone.device.use(token: nil)
        let start = phone.now
        var tries = 0
        while !phone.device.isGone {
            for call in phone.device.due(at: phone.now, using: &phone.random) {
                phone.answer(nil, to: call)
                tries += 1
            }
            guard let next = phone.device.nextDue else { break }
            #expect(next.since(phone.now) <= .seconds(300))
            // The phone is looked at once in six hours, and its app has ended meanwhile.
            phone.now = max(next, phone.now + .seconds(6 * 3_600))
            try phone.restart(leaves: true)
        }
        #expect(tries == 120 && phone.device.isGone)
        #expect(phone.now.since(start) >= .seconds(30 * 86_400))
    }

    @Test("A relay that asks for patience gets it, and a call that is lost is made again")
    mutating func patience() throws {
        try phone.device.use(token: nil)
        phone.answer(202, to: try phone.due())
        phone.answer(503, after: "60", to: try phone.due())
        #expect(phone.device.nextDue == phone.now + .seconds(60))
        phone.now = phone.now + .seconds(59)
        #expect(phone.isIdle())
        phone.now = phone.now + .seconds(1)
        let lost = try phone.due()
        phone.now = phone.now + .seconds(120)
        let last = try phone.due()
        phone.answer(200, to: lost)
        #expect(!phone.device.isGone)
        phone.answer(200, to: last)
        #expect(phone.device.isGone)
    }

    @Test("Nothing was ever told: it is gone at once; what was perhaps told is taken back")
    mutating func neverTold() throws {
        var fresh = try NextcloudKitPhone(ends)
        #expect(!fresh.device.isGone)
        try fresh.device.use(token: nil)
        #expect(fresh.device.isGone && fresh.isIdle())
        #expect(fresh.device.status(at: fresh.now).advice == .none)
        // Nor after a refusal.
        var refused = try NextcloudKitPhone(ends)
        try refused.tell()
        refused.answer(401, to: try refused.due())
        #expect(refused.device.status(at: refused.now).advice == .logInAgain)
        try refused.device.use(token: nil)
        let off = refused.device.status(at: refused.now)
        #expect(refused.device.isGone && off.state == .none && off.advice == .none && off.detail == nil)
        // The server was asked what it can do, and nothing else.
        try fresh.tell()
        let asked = try fresh.due()
        try fresh.device.use(token: nil)
        #expect(fresh.device.isGone)
        fresh.answer(200, NextcloudKitPhone.capabilities, to: asked)
        #expect(fresh.isIdle())
        // Its answer to the registration never came: it may have one, and the proxy has none.
        try fresh.tell()
        fresh.answer(200, NextcloudKitPhone.capabilities, to: try fresh.due())
        _ = try fresh.due()
        try fresh.restart(leaves: true)
        #expect(!fresh.device.isGone)
        let server = try fresh.due()
        #expect(server.path.hasPrefix("DELETE \(Ends.server)"))
        fresh.answer(202, to: server)
        #expect(fresh.isIdle() && fresh.device.isGone)
    }

    @Test("A logout in the middle of a registration waits for its answer, and then takes it back")
    mutating func midway() throws {
        for step in 1...2 {
            var fresh = try NextcloudKitPhone(ends)
            try fresh.tell()
            let answers = [(200, NextcloudKitPhone.capabilities), (201, try ends.serverAnswer()), (200, "")]
            for (status, body) in answers[..<step] { fresh.answer(status, body, to: try fresh.due()) }
            let open = try fresh.due()
            try fresh.device.use(token: nil)
            #expect(fresh.isIdle() && !fresh.device.isGone)
            fresh.answer(answers[step].0, answers[step].1, to: open)
            let server = try fresh.due()
            #expect(server.path.hasPrefix("DELETE \(Ends.server)"))
            fresh.answer(202, to: server)
            let proxy = try fresh.due()
            #expect(proxy.path == "DELETE \(Ends.proxy)/devices")
            fresh.answer(200, to: proxy)
            #expect(fresh.device.isGone)
        }
    }

    @Test("After a logout nothing is shown; whoever logs in again is registered anew")
    mutating func again() throws {
        let sealed = try ends.delivered(try ends.sealed(Array(#"{"delete-all":true}"#.utf8)))
        try phone.device.use(token: nil)
        try phone.restart(leaves: true)
        guard case .ignore(.switchedOff) = try phone.device.open(sealed, at: phone.now) else {
            Issue.record("ignored")
            return
        }
        let server = try phone.due()
        try phone.tell()
        // Both under way would overtake each other.
        #expect(phone.isIdle())
        phone.answer(202, to: server)
        try phone.register()
        #expect(try phone.device.open(sealed, at: phone.now).content == .withdrawalOfAll)
        // And the same over a restart between the two.
        try phone.device.use(token: nil)
        phone.answer(202, to: try phone.due())
        try phone.restart()
        try phone.register()
    }
}
