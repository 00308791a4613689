import PushModel
import PushTesting
import Secp256k1Keys
import StatusPush
import Testing
import WireFormats

/// The device as an app has it: calls, answers, what is kept, and pushes.
@Suite("Status for app authors", .timeLimit(.minutes(30)))
struct StatusKitTests {
    @Test(
        "From nothing to a notification that is opened once, also with restarts around each answer",
        arguments: [false, true])
    func wholeWay(_ restarts: Bool) throws {
        var app = try StatusApp()
        app.restarts = restarts
        #expect(app.due().isEmpty && app.device.nextDue == nil && app.device.isGone)
        #expect(app.device.status(at: app.world.now).advice == .giveToken)
        try app.start()
        try app.work()
        #expect(app.conditions == [.registered, .registered] && !app.device.isGone)
        #expect(app.device.servers.map(\.key) == app.servers)
        #expect(app.world.servers.allSatisfy { $0.live.count == 1 && $0.live[0].registration.version == 1 })
        let status = app.device.status(at: app.world.now)
        #expect(status.state == .active && status.since == app.world.now && status.advice == .none)

        let delivered = try app.push()
        try app.restart()
        guard case .show(let message) = try app.device.open(delivered, at: app.world.now) else {
            Issue.record("shown")
            return
        }
        #expect(message.content.map { $0 == Secret("hello".utf8) } == true && message.chat == nil)
        app.device.stored(message)
        try app.restart()
        guard case .ignore(.repeated) = try app.device.open(delivered, at: app.world.now) else {
            Issue.record("shown twice")
            return
        }
        #expect(throws: DeviceError(.foreign)) {
            try app.device.open(Delivered(json: Secret(#"{"aps":{}}"#.utf8)), at: app.world.now)
        }
        // Of two accounts it is the second's.
        var other = try StatusApp(1)
        try other.start()
        let found = try StatusDevice.open(delivered, among: [other.device, app.device], at: app.world.now)
        #expect(found.place == 1)
    }

    @Test("It follows once a run, again when the node has lost it, and not when all is over")
    func follow() throws {
        var app = try StatusApp()
        try app.start()
        let first = app.due()
        #expect(first.count { $0.isStanding } == 1 && first.first?.isStanding == true)
        guard case .follow(let topics)? = first.first?.way else {
            Issue.record("it follows before it publishes")
            return
        }
        #expect(topics == app.device.topics && topics.count == 2)
        for call in first { app.answer(.taken, call) }
        #expect(app.due().isEmpty)
        app.answer(.none, first[0])
        #expect(app.due().isEmpty && app.device.nextDue == app.world.now + .seconds(15))
        app.world.now = app.world.now + .seconds(15)
        let second = app.due()
        #expect(second.map(\.isStanding) == [true] && second.first?.id != first[0].id)
        // Servers are told again when their time has come.
        app.world.now = app.world.now + .seconds(15)
        let answers = try app.world.publish(app.due().compactMap(\.message))
        // What the lost one brings late is nothing.
        #expect(!answers.isEmpty)
        let kept = app.device.kept
        for message in answers { app.answer(.waku(message), first[0]) }
        #expect(app.device.kept == kept)
        for message in answers { app.answer(.waku(message), second[0]) }
        #expect(app.conditions == [.registered, .registered])
        try app.device.use(token: nil)
        try app.work(wanted: false)
        #expect(app.device.isGone && app.due().isEmpty && app.device.nextDue == nil)
    }

    @Test("Answers that come twice, late, of another kind or to foreign calls change nothing")
    func strayAnswers() throws {
        var (app, other) = (try StatusApp(), try StatusApp(1))
        try app.start()
        try other.start()
        let (calls, foreign) = (app.due(), other.due())
        var kept = app.device.kept
        for call in foreign where !calls.contains(where: { $0.id == call.id }) {
            for answer in [CallAnswer.none, .taken, .http(status: 200, body: Secret([]))] {
                app.answer(answer, call)
            }
        }
        #expect(app.device.kept == kept)
        let publish = try #require(calls.last)
        app.answer(.taken, publish)
        #expect(app.device.kept == kept)
        // Taken is taken, whatever is said of it later.
        app.answer(.none, publish)
        #expect(app.device.kept == kept && app.due().isEmpty)
        // A call of the run before.
        try app.restart()
        kept = app.device.kept
        for call in calls { app.answer(.none, call) }
        #expect(app.device.kept == kept)
        #expect(app.due().count { $0.isStanding } == 1)
    }

    @Test("A node that publishes nothing is asked every 15 s, and no server is given up for it")
    func nodeFails() throws {
        var app = try StatusApp()
        app.nodeFails = true
        try app.start()
        for round in 0..<40 {
            let calls = app.due()
            #expect(calls.count == 3, "round \(round)")
            for call in calls { app.answer(.none, call) }
            #expect(app.due().isEmpty && app.device.nextDue == app.world.now + .seconds(15))
            #expect(app.device.kept.count < 32 << 10)
            app.world.now = app.world.now + .seconds(15)
        }
        #expect(app.conditions == [.waiting, .waiting])
        let status = app.device.status(at: app.world.now)
        #expect(status.state == .pending && !status.isQuiet && status.advice == .retrying)
        app.nodeFails = false
        try app.restart()
        try app.work()
        #expect(app.conditions == [.registered, .registered])
    }

    @Test("An answer to a registration of which the node said nothing counts")
    func takenAllTheSame() throws {
        var app = try StatusApp()
        try app.start()
        let calls = app.due()
        let answers = try app.world.publish(calls.compactMap(\.message))
        app.answer(.taken, calls[0])
        for call in calls.dropFirst() { app.answer(.none, call) }
        for message in answers { app.answer(.waku(message), calls[0]) }
        #expect(app.conditions == [.registered, .registered])
    }

    @Test("What servers refuse, or never answer, is in the status, and is tried again when asked for")
    func refusals() throws {
        var app = try StatusApp()
        app.world.servers[0].registrationFaults = [.unsupportedTokenType]
        app.world.servers[1].registrationFaults = [.malformedMessage]
        try app.start()
        try app.work()
        var status = app.device.status(at: app.world.now)
        #expect(app.conditions == [.refused, .refused] && status.state == .failed)
        #expect(status.detail == "unsupportedToken" && status.advice == .tellAdmin)
        app.world.now = app.world.now + .seconds(3_600)
        try app.restart()
        #expect(app.due().allSatisfy { $0.isStanding })
        #expect(app.device.status(at: app.world.now) == status)
        app.device.retry()
        try app.work()
        status = app.device.status(at: app.world.now)
        #expect(status.state == .active && status.detail == nil && status.since == app.world.now)
    }

    @Test("Another token is told at once; the same in other letters is not")
    func tokenChange() throws {
        var app = try StatusApp()
        try app.start()
        try app.work()
        app.token = "A5"
        try app.restart()
        #expect(app.due().allSatisfy { $0.isStanding })
        app.token = "b6"
        try app.restart()
        try app.work()
        #expect(app.world.servers.allSatisfy { $0.live[0].registration.version == 2 })
    }

    @Test("A server that leaves the setup forgets the account; another account's kept is refused")
    func setupChange() throws {
        var app = try StatusApp()
        try app.start()
        try app.work()
        let all = app.servers
        app.servers = [all[0]]
        try app.restart()
        #expect(app.conditions == [.registered, .waiting])
        try app.work()
        #expect(app.world.servers.map(\.live.count) == [1, 0] && app.conditions == [.registered])
        app.servers = all
        try app.restart()
        try app.work()
        #expect(app.world.servers.map(\.live.count) == [1, 1])

        let kept = app.device.kept
        let foreign = try StatusSetup(key: app.world.keyPair().secret, bundleID: "im", servers: all)
        #expect(throws: DeviceError(.malformedKept)) { try StatusDevice(foreign, keeping: kept) }
        let renamed = try StatusSetup(
            key: app.key.secret, bundleID: "im", installationID: "a6712c96-9eb0-4df5-bc7c-041602a28ea7",
            servers: all)
        #expect(throws: DeviceError(.malformedKept)) { try StatusDevice(renamed, keeping: kept) }
    }

    @Test("A logout is told until every server has forgotten, over restarts and without a network")
    func logout() throws {
        var app = try StatusApp()
        try app.start()
        try app.work()
        let delivered = try app.push()
        app.world.servers[1].isDown = true
        try app.device.use(token: nil)
        guard case .ignore(.switchedOff) = try app.device.open(delivered, at: app.world.now) else {
            Issue.record("shown")
            return
        }
        #expect(!app.device.isGone && app.device.status(at: app.world.now).state == .pending)
        app.nodeFails = true
        try app.work(wanted: false)
        // The contact code may not have been published: the next run does it.
        try app.restart(wanted: false)
        app.nodeFails = false
        try app.work(wanted: false)
        #expect(app.world.servers.map(\.live.count) == [0, 1] && !app.device.isGone)
        app.world.servers[1].isDown = false
        app.world.now = try #require(app.device.nextDue)
        try app.restart(wanted: false)
        try app.work(wanted: false)
        #expect(app.world.servers.allSatisfy { $0.live.isEmpty })
        #expect(app.device.isGone && app.device.nextDue == nil)
        #expect(app.device.status(at: app.world.now).state == .none)
        var sender = app.world.sender()
        sender.follow(app.key.point, now: app.world.now)
        let code = app.world.history.last { $0.contentTopic == app.device.topics[1] }
        sender.receive(try #require(code), now: app.world.now)
        #expect(sender.installations(of: app.key.point) == 0)
        // It may come back.
        try app.restart()
        try app.work()
        #expect(app.conditions == [.registered, .registered])
    }

    @Test("Every truncation and every falsified byte of what was kept is refused")
    func falsified() throws {
        var app = try StatusApp()
        app.world.servers[1].isDown = true
        try app.start()
        try app.work()
        let delivered = try app.push()
        let opened = try app.device.open(delivered, at: app.world.now)
        app.device.stored(try #require(opened.content))
        let kept = app.device.kept
        let setup = try StatusSetup(key: app.key.secret, bundleID: "im", servers: app.servers)
        let again = try StatusDevice(setup, keeping: kept)
        #expect(again.kept == kept)
        #expect(!kept.word.contains(String(repeating: "a5", count: 32)))
        #expect(!kept.word.contains(app.key.secret.hexDigits.word))
        let bytes = kept.reveal { Array($0) }
        for count in bytes.indices {
            #expect(throws: DeviceError(.malformedKept)) {
                try StatusDevice(setup, keeping: Secret(bytes[..<count]))
            }
        }
        for other in bytes.withEachChanged() {
            #expect(throws: DeviceError(.malformedKept)) { try StatusDevice(setup, keeping: Secret(other)) }
        }
        // A digest over other rows makes them no device.
        for rows in [[], [[]], [[], [], [], []], [["", "none", ""], ["00"], [], []]] {
            let forged = KeptForm.write("status-device", rows.map { $0.map { Secret(cell: $0) } })
            #expect(throws: DeviceError(.malformedKept)) { try StatusDevice(setup, keeping: forged) }
        }
    }

    @Test("A setup that cannot be, and a token of a service that the app has none of, are refused")
    func setups() throws {
        var world = StatusWorld()
        let key = world.keyPair()
        let server = try RelayKey(text: Hex.encode(key.point.compressed))
        let many = try (0...StatusLimits.deviceServers).map { _ in
            try RelayKey(text: Hex.encode(world.keyPair().point.compressed))
        }
        #expect(throws: DeviceError(.tooMany)) {
            try StatusSetup(key: key.secret, bundleID: nil, servers: many)
        }
        let zero = try RelayKey(text: "04" + String(repeating: "0", count: 128))
        let zulip = try RelayKey(text: "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=")
        for (secret, bundle, id, server) in [
            (Secret([1]), "im", nil, server), (Secret([UInt8](repeating: 0, count: 32)), "im", nil, server),
            (key.secret, "", nil, server), (key.secret, "two words", nil, server),
            (key.secret, String(repeating: "b", count: 257), nil, server),
            (key.secret, "im", "phone", server), (key.secret, "im", nil, zero), (key.secret, "im", nil, zulip)
        ] as [(Secret, String, String?, RelayKey)] {
            #expect(throws: DeviceError(.malformedSetup)) {
                try StatusSetup(key: secret, bundleID: bundle, installationID: id, servers: [server])
            }
        }
        var device = try StatusDevice(StatusSetup(key: key.secret, bundleID: nil, servers: [server, server]))
        #expect(device.servers.count == 1)
        #expect(throws: DeviceError(.wrongService)) { try device.use(token: .apns(bytes: [1, 2])) }
        #expect(device.due(at: world.now).isEmpty)
        try device.use(token: .fcm("token"))
        // The user's settings are to be known first.
        #expect(device.due(at: world.now).isEmpty && device.nextDue == nil)
        var settings = StatusSettings()
        settings.contacts = [PublicPoint](repeating: key.point, count: StatusLimits.deviceContacts + 1)
        #expect(throws: DeviceError(.tooMany)) { try device.apply(settings) }
        try device.apply(StatusSettings())
        #expect(device.due(at: world.now).count == 2)
    }
}
