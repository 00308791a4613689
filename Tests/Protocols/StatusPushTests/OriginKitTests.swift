import PushModel
import PushTesting
import Secp256k1Keys
import StatusPush
import Testing
import WireFormats

/// The sender as an app has it: calls, answers, what is kept, and what became of notifications.
@Suite("Status's sender for app authors", .timeLimit(.minutes(30)))
struct OriginKitTests {
    @Test("From nothing to a push, and again after a restart, with what was learned")
    func wholeWay() throws {
        var app = try SendingApp()
        let bob = try app.phone()
        #expect(app.due().isEmpty && app.origin.nextDue == nil)
        let first = try app.notify(bob.key.point)
        #expect(app.origin.nextDue == .distantPast)
        try app.work()
        // The contact code was enough: nobody was asked.
        #expect(app.world.servers.map(\.queriesHeard) == [0, 0] && app.histories == 1)
        #expect(app.world.pushes.count == 1)
        #expect(app.settled == [Settled(id: first, reached: 1, missed: 0)])
        #expect(app.origin.takeSettled().isEmpty && app.origin.nextDue == nil)

        try app.restart()
        #expect(app.origin.isSending && app.origin.installations(of: bob.key.point) == 1)
        let published = app.published
        let second = try app.notify(bob.key.point, 8)
        try app.work()
        #expect(app.world.pushes.count == 2 && app.published == published + 1 && app.histories == 1)
        #expect(app.settled.last == Settled(id: second, reached: 1, missed: 0))
    }

    @Test("A restart between a call and its answer: the answer is nothing, and the next message arrives")
    func restartBetween() throws {
        var app = try SendingApp()
        let bob = try app.phone()
        try app.notify(bob.key.point)
        var calls = app.due()
        #expect(calls.map(\.isStanding) == [true, false] && calls.last?.topic != nil)
        try app.restart()
        var kept = app.origin.kept
        for message in app.world.history {
            for call in calls { app.answer(.waku(message), call) }
        }
        for call in calls { app.answer(.taken, call) }
        #expect(app.origin.kept == kept && app.origin.takeSettled().isEmpty)

        // Servers are asked, because there is no history, and the app ends before they answer.
        app.world.forgetHistory()
        try app.notify(bob.key.point)
        for call in app.due() { try app.make(call) }
        calls = app.due()
        let answers = try app.world.publish(calls.compactMap(\.message))
        #expect(answers.count == 2 && app.world.servers.map(\.queriesHeard) == [1, 1])
        for call in calls { app.answer(.taken, call) }
        let former = try #require(app.follows.last)
        try app.restart()
        kept = app.origin.kept
        for message in answers { app.answer(.waku(message), former) }
        #expect(app.origin.kept == kept && app.origin.installations(of: bob.key.point) == 0)
        // The next run asks again, and not a day later.
        try app.notify(bob.key.point, 8)
        try app.work(for: .seconds(4))
        #expect(app.world.servers.map(\.queriesHeard) == [2, 2] && app.world.pushes.count == 1)
        #expect(app.settled.map(\.reached) == [1])

        // Between a request and its report: it is not sent twice.
        try app.notify(bob.key.point, 9)
        calls = app.due()
        _ = try app.world.publish(calls.compactMap(\.message))
        try app.restart()
        for call in calls { app.answer(.none, call) }
        try app.work(for: .seconds(60))
        #expect(app.world.pushes.count == 2 && app.settled.count == 1)
    }

    @Test("Without a contact code, or without a store, servers are asked; nobody known is nobody missed")
    func emptyHistory() throws {
        for hasNoStore in [false, true] {
            var app = try SendingApp()
            app.hasNoStore = hasNoStore
            let bob = try app.phone()
            if !hasNoStore { app.world.forgetHistory() }
            let stranger = app.world.keyPair().point
            let ids = try app.origin.notify(
                StatusNotification(messageID: Secret([7]), .direct), to: [bob.key.point, stranger],
                at: app.world.now)
            try app.work(for: .seconds(4))
            #expect(app.world.servers.map(\.queriesHeard) == [1, 1] && app.world.pushes.count == 1)
            #expect(
                Set(app.settled) == [
                    Settled(id: ids[0], reached: 1, missed: 0),
                    Settled(id: ids[1], reached: 0, missed: 0, detail: "noToken")
                ])
            // Each history once a run.
            try app.notify(stranger, 8)
            try app.work(for: .seconds(4))
            #expect(app.histories == 2 && app.settled.count == 3)
        }
    }

    @Test("A request that the node does not publish is tried four times, and blames no server")
    func requestRefused() throws {
        var app = try SendingApp()
        let bob = try app.phone()
        app.publishesNothing = true
        let first = try app.notify(bob.key.point)
        try app.work()
        #expect(app.published == 1 && app.settled.isEmpty)
        // The node is left alone, and it is no server's silence.
        #expect(app.origin.nextDue == app.world.now + .seconds(4))
        try app.work(for: .seconds(600))
        #expect(app.published == StatusLimits.requestAttempts)
        #expect(app.settled == [Settled(id: first, reached: 0, missed: 1, detail: "unpublished")])
        #expect(app.origin.nextDue == nil && app.origin.installations(of: bob.key.point) == 1)

        // A node that is back in between: the one server that is there gets it.
        app.world.servers[0].isDown = true
        try app.notify(bob.key.point, 8)
        try app.work()
        app.publishesNothing = false
        try app.work(for: .seconds(60))
        #expect(app.world.pushes.count == 1 && app.settled.last?.reached == 1)
    }

    @Test("A query that the node does not publish is tried again at once, and the next day does not matter")
    func queryRefused() throws {
        var app = try SendingApp()
        let bob = try app.phone()
        app.world.forgetHistory()
        app.publishesNothing = true
        let first = try app.notify(bob.key.point)
        try app.work(for: .seconds(60))
        #expect(app.published == StatusLimits.requestAttempts)
        #expect(app.settled == [Settled(id: first, reached: 0, missed: 0, detail: "unpublished")])
        #expect(app.origin.nextDue == nil)
        app.publishesNothing = false
        try app.notify(bob.key.point, 8)
        try app.work(for: .seconds(4))
        #expect(app.world.servers.map(\.queriesHeard) == [1, 1] && app.world.pushes.count == 1)
        #expect(app.settled.last?.reached == 1)

        // One that the node has published, whatever it said, is answered.
        app = try SendingApp()
        let carol = try app.phone()
        app.world.forgetHistory()
        try app.notify(carol.key.point)
        for call in app.due() { try app.make(call) }
        let calls = app.due()
        let answers = try app.world.publish(calls.compactMap(\.message))
        for call in calls where !call.isStanding { app.answer(.none, call) }
        let follow = try #require(app.follows.last)
        for message in answers { app.answer(.waku(message), follow) }
        try app.work(for: .seconds(4))
        #expect(app.settled.map(\.reached) == [1] && app.world.servers.map(\.queriesHeard) == [1, 1])
    }

    @Test("Answers that come twice, late, of another kind or to foreign calls change nothing")
    func strayAnswers() throws {
        var (app, other) = (try SendingApp(), try SendingApp())
        let bob = try app.phone()
        _ = other.world.keyPair()
        other.origin = try StatusOrigin(key: other.key.secret, using: &other.world.random)
        other.origin.isSending = true
        try other.notify(bob.key.point)
        let foreign = other.due()
        try app.notify(bob.key.point)
        let first = app.due()
        #expect(foreign.count == 2 && first.count == 2 && Set((foreign + first).map(\.id)).count == 4)
        let code = try #require(app.world.history.last)
        let strays = [CallAnswer.none, .taken, .waku(code), .http(status: 200, body: Secret([])), .events([])]
        var kept = app.origin.kept
        for call in foreign { for answer in strays { app.answer(answer, call) } }
        #expect(app.origin.kept == kept && app.due().isEmpty)

        for call in first { try app.make(call) }
        let second = app.due()
        #expect(second.count == 2 && second.last?.message != nil)
        kept = app.origin.kept
        // The history has ended.
        for answer in strays { app.answer(answer, first[1]) }
        #expect(app.origin.kept == kept && app.due().isEmpty)
        for call in second { try app.make(call) }
        try app.work()
        let request = try #require(second.last)
        kept = app.origin.kept
        for answer in strays { app.answer(answer, request) }
        #expect(app.origin.kept == kept && app.due().isEmpty && app.origin.nextDue == nil)
        #expect(app.settled.count == 1 && app.origin.takeSettled().isEmpty)
        #expect(app.world.pushes.count == 1)
    }

    @Test("It follows each new topic once, what a former follow brings counts, and a lost one is made again")
    func follow() throws {
        var app = try SendingApp()
        var bob = try app.phone()
        let carol = app.world.keyPair().point
        app.origin.isSending = false
        app.origin.follow(bob.key.point, at: app.world.now)
        #expect(app.due().isEmpty && app.origin.nextDue == nil, "the user has not asked for it")
        app.origin.isSending = true
        #expect(app.origin.nextDue == .distantPast)
        let first = try #require(app.due().first)
        #expect(first.topics?.count == 1 && app.due().isEmpty)
        app.origin.follow(bob.key.point, at: app.world.now)
        #expect(app.due().isEmpty, "it is followed")
        app.origin.follow(carol, at: app.world.now)
        let second = try #require(app.due().first)
        #expect(second.topics?.count == 2 && second.isStanding)
        let code = try #require(app.world.history.last)
        app.answer(.none, first)
        app.answer(.waku(code), first)
        #expect(app.origin.installations(of: bob.key.point) == 1 && app.due().isEmpty)

        app.answer(.none, second)
        #expect(app.due().isEmpty && app.origin.nextDue == app.world.now + .seconds(2))
        app.world.now = app.world.now + .seconds(2)
        let third = try #require(app.due().first)
        #expect(Set(third.topics ?? []) == Set(second.topics ?? []) && third.id != second.id)
        // What the lost ones bring late is nothing.
        bob.use(try StatusDeviceToken.fcm(Secret("another".utf8)))
        try app.world.settle(&bob)
        let newer = try #require(app.world.history.last)
        let kept = app.origin.kept
        for call in [first, second] { app.answer(.waku(newer), call) }
        #expect(app.origin.kept == kept)
        app.answer(.waku(newer), third)
        #expect(!(app.origin.kept == kept))

        app.origin.forget(carol)
        #expect(app.due().first?.topics?.count == 1)
    }

    @Test("What became of notifications is told once, and wakes nobody until it is asked for")
    func settledOnce() throws {
        var app = try SendingApp()
        let bob = try app.phone()
        for place in 0..<2 { app.world.servers[place].isDown = true }
        let ids = [try app.notify(bob.key.point, 1), try app.notify(app.world.keyPair().point, 2)]
        var rounds = 0
        while let next = app.origin.nextDue, rounds < 100 {
            rounds += 1
            app.world.now = max(app.world.now, next)
            for call in app.due() { try app.make(call) }
        }
        #expect(app.origin.nextDue == nil)
        #expect(
            Set(app.origin.takeSettled()) == [
                Settled(id: ids[0], reached: 0, missed: 1, detail: "noAnswer"),
                Settled(id: ids[1], reached: 0, missed: 0, detail: "noToken")
            ])
        #expect(app.origin.takeSettled().isEmpty)
        // Of somebody who is forgotten, at once.
        let third = try app.notify(bob.key.point, 3)
        app.origin.forget(bob.key.point)
        #expect(app.origin.takeSettled().map(\.id) == [third])
    }

    @Test("Nothing is taken before the user asks for it, nor more than there is room for")
    func refusals() throws {
        var app = try SendingApp()
        let person = app.world.keyPair().point
        let note = StatusNotification(messageID: Secret([1]), .direct)
        app.origin.isSending = false
        #expect(throws: DeviceError(.switchedOff)) {
            try app.origin.notify(note, to: [person], at: app.world.now)
        }
        app.origin.isSending = true
        let many = [PublicPoint](repeating: person, count: StatusLimits.originJobs + 1)
        #expect(throws: DeviceError(.tooMany)) {
            try app.origin.notify(note, to: many, at: app.world.now)
        }
        for key in [Secret([]), Secret([1]), Secret([UInt8](repeating: 0, count: 32))] {
            #expect(throws: DeviceError(.malformedSetup)) { try StatusOrigin(key: key) }
        }
    }

    @Test("Every truncation and every falsified byte of what was kept is refused, and another account's")
    func falsified() throws {
        var app = try SendingApp()
        let bob = try app.phone()
        try app.notify(bob.key.point)
        try app.work()
        app.origin.saw(bob.installationID, of: bob.key.point, at: app.world.now)
        app.origin.installationLimit = 5
        let kept = app.origin.kept
        let again = try StatusOrigin(key: app.key.secret, keeping: kept)
        #expect(again.kept == kept && again.isSending && again.installationLimit == 5)
        #expect(!kept.word.contains(app.key.secret.hexDigits.word))
        let bytes = kept.reveal { Array($0) }
        for count in bytes.indices {
            #expect(throws: DeviceError(.malformedKept)) {
                try StatusOrigin(key: app.key.secret, keeping: Secret(bytes[..<count]))
            }
        }
        for other in bytes.withEachChanged() {
            #expect(throws: DeviceError(.malformedKept)) {
                try StatusOrigin(key: app.key.secret, keeping: Secret(other))
            }
        }
        let stranger = app.world.keyPair()
        #expect(throws: DeviceError(.malformedKept)) { try StatusOrigin(key: stranger.secret, keeping: kept) }
        // A digest over other rows makes them no sender.
        let mark = StatusHash.person(app.key.point).hexDigits.word
        for rows in [
            [], [[]], [[mark]], [[mark], []], [[mark], ["on", "-1"]], [[mark], ["on", "8"], ["person"]]
        ] as [[[String]]] {
            let forged = KeptForm.write("status-origin", rows.map { $0.map { Secret(cell: $0) } })
            #expect(throws: DeviceError(.malformedKept)) {
                try StatusOrigin(key: app.key.secret, keeping: forged)
            }
        }
    }

    @Test("Where there is no room to keep all people, those who were notified last are kept")
    func keptRoom() throws {
        var world = StatusWorld()
        var sender = world.sender()
        let people = (0..<3).map { _ in world.keyPair().point }
        for (place, person) in people.enumerated() {
            sender.follow(person, now: world.now + .seconds(place))
            sender.saw(String(repeating: "\u{1}", count: 200), of: person, at: world.now)
        }
        let all = sender.rows
        let room = KeptRows.write(Array(all.dropFirst())).count
        #expect(all.count == 7 && sender.rows(atMost: room + 8).count == 7)
        let most = sender.rows(atMost: room - 1)
        #expect(most.count == 5 && KeptRows.write(Array(most.dropFirst())).count < room)
        let again = try StatusOriginRoutine(rows: most, key: sender.key)
        var latest = world.sender()
        for person in people[1...] { latest.follow(person, now: world.now) }
        #expect(again.topics == latest.topics)
        #expect(sender.rows(atMost: 0).count == 1)
    }
}
