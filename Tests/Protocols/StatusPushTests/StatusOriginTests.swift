import PushModel
import PushTesting
import Secp256k1Keys
import StatusPush
import Testing
import WireFormats

/// The sending client where things go wrong, and the choices it makes.
@Suite("Status's sending client", .timeLimit(.minutes(30)))
struct StatusOriginTests {
    private static func message(
        _ byte: UInt8 = 1, _ occasion: StatusNotification.Occasion = .direct, content: Secret? = nil,
        installations: [String]? = nil
    ) -> StatusNotification {
        StatusNotification(
            messageID: Secret([UInt8](repeating: byte, count: 32)), occasion, content: content,
            installations: installations)
    }

    @Test("Nothing is sent before the user asks for it")
    func offByDefault() throws {
        var world = StatusWorld()
        var origin = StatusOriginRoutine(key: world.keyPair())
        let person = world.keyPair().point
        #expect(throws: StatusError(.sendingIsOff)) {
            try origin.notify(Self.message(), to: [person], now: world.now)
        }
        #expect(origin.due(now: world.now, using: &world.random).messages.isEmpty)
    }

    @Test("More notifications than there is room for are refused, and those that were taken stay")
    func tooMany() throws {
        var world = StatusWorld()
        var origin = world.sender()
        let person = world.keyPair().point
        let people = [PublicPoint](repeating: person, count: StatusLimits.originJobs)
        _ = try origin.notify(Self.message(), to: people, now: world.now)
        #expect(throws: StatusError(.tooManyNotifications)) {
            try origin.notify(Self.message(), to: [person], now: world.now)
        }
        try world.settle(&origin, for: .seconds(9))
        #expect(world.settled.count == StatusLimits.originJobs)
        #expect(origin.nextDeadline == nil || origin.nextDeadline! > world.now)
    }

    @Test("Of five installations the three that were active last are told, never fewer")
    func installations() throws {
        var world = StatusWorld()
        let key = world.keyPair()
        var phones = try (0..<5).map { _ in try world.phone(key) }
        for place in phones.indices { try world.settle(&phones[place]) }
        var origin = world.sender()
        origin.installationLimit = 1
        origin.follow(key.point, now: world.now)
        for message in world.history where message.contentTopic == phones[0].topics[1] {
            origin.receive(message, now: world.now)
        }
        #expect(origin.installations(of: key.point) == 5)
        for (place, phone) in phones.enumerated() {
            origin.saw(phone.installationID, of: key.point, at: world.now - .seconds(place))
        }
        try world.send(Self.message(), to: [key.point], by: &origin)
        let told = Set(world.pushes.map(\.installationID.word))
        #expect(told == Set(phones.prefix(3).map(\.installationID)))

        // A message for one installation goes to no other.
        let one = [phones[4].installationID]
        try world.send(Self.message(2, installations: one), to: [key.point], by: &origin)
        #expect(world.pushes.filter { $0.installationID.word == one[0] }.count == 1)
        #expect(world.pushes.count == 4)
    }

    @Test("A message in a group goes to its members in one request for each server")
    func grouping() throws {
        var world = StatusWorld()
        world.servers[1].isDown = true
        var members = try (0..<3).map { _ in try world.phone() }
        for place in members.indices { try world.settle(&members[place]) }
        var origin = world.sender()
        let chat = Secret("the chat".utf8)
        _ = try origin.notify(
            Self.message(1, .group(chat: chat)), to: members.map(\.key.point), now: world.now)
        try world.settle(&origin)
        #expect(world.servers[0].requestBytes.count == 1 && world.pushes.count == 3)
        #expect(world.pushes.allSatisfy { $0.chatID == StatusHash.chat(chat) && $0.type == .message })
        #expect(world.pushes.allSatisfy { $0.author == StatusHash.author(origin.key.point) })
    }

    @Test("Mentions and requests to join bear their types")
    func types() throws {
        var (world, bob) = try StatusWorld.settled()
        var origin = world.sender()
        let chat = Secret("the chat".utf8)
        for (byte, occasion) in [
            (1, StatusNotification.Occasion.mention(chat: chat)), (2, .joinRequest(community: chat)),
            (3, .direct)
        ] {
            try world.send(Self.message(UInt8(byte), occasion), to: [bob.key.point], by: &origin)
        }
        #expect(world.settled.count == 3)
        let types = world.pushes.sorted { $0.type.rawValue < $1.type.rawValue }.map(\.type)
        #expect(types == [.message, .mention, .requestToJoinCommunity])
    }

    @Test("A server that fails is followed by the other, and then by a pause")
    func internalError() throws {
        var (world, bob) = try StatusWorld.settled()
        for place in 0..<2 { world.servers[place].reportFaults = [.internalError] }
        var origin = world.sender()
        try world.send(Self.message(), to: [bob.key.point], by: &origin)
        #expect(world.pushes.isEmpty && world.servers.map { $0.requestBytes.count } == [1, 1])
        let next = try #require(origin.nextDeadline)
        #expect(next.since(world.now) == .seconds(2 * 2 * 4))
        try world.settle(&origin, for: .seconds(16))
        #expect(world.pushes.count == 1)
        #expect(world.settled.map(\.outcome) == [.taken(installations: 1, failed: 0)])
    }

    @Test("After four attempts a notification is given up")
    func givenUp() throws {
        var (world, bob) = try StatusWorld.settled()
        for place in 0..<2 { world.servers[place].isDown = true }
        var origin = world.sender()
        try world.send(Self.message(), to: [bob.key.point], by: &origin, for: .seconds(600))
        #expect(world.settled.map(\.outcome) == [.taken(installations: 0, failed: 1)])
        let requests = world.history.filter { message in
            world.servers.contains {
                WakuTopic.partitioned(of: $0.key.point).contentTopic == message.contentTopic
            }
        }
        // Two registrations; four attempts, no two of the same bytes.
        #expect(requests.count == 6)
        #expect(Set(requests.map { $0.payload.hexDigits.word }).count == 6)
    }

    @Test("A server that has forgotten an installation is not asked for it again")
    func notRegistered() throws {
        var (world, bob) = try StatusWorld.settled()
        var origin = world.sender()
        try world.send(Self.message(), to: [bob.key.point], by: &origin)
        bob.switchOff()
        try world.settle(&bob)
        try world.send(Self.message(2), to: [bob.key.point], by: &origin, for: .seconds(60))
        #expect(world.settled.last?.outcome == .taken(installations: 0, failed: 1))
        #expect(world.servers.allSatisfy { $0.requestBytes.count <= 2 })
        #expect(origin.installations(of: bob.key.point) == 0)
    }

    @Test("A late answer ends the repetition")
    func lateAnswer() throws {
        var world = StatusWorld()
        world.servers[1].isDown = true
        var bob = try world.phone()
        try world.settle(&bob)
        var origin = world.sender()
        _ = try origin.notify(Self.message(), to: [bob.key.point], now: world.now)
        var answers: [WakuMessage] = []
        for _ in 0..<3 {
            let work = origin.due(now: world.now, using: &world.random)
            for topic in work.histories {
                for message in world.history where message.contentTopic == topic {
                    origin.receive(message, now: world.now)
                }
                origin.readHistory(of: topic)
            }
            answers += try world.publish(work.messages)
        }
        world.servers[0].isDown = true
        try world.settle(&origin, for: .seconds(3))
        #expect(world.settled.isEmpty && answers.count == 1)
        #expect(origin.receive(answers[0], now: world.now) == true)
        try world.settle(&origin)
        #expect(world.settled.map(\.outcome) == [.taken(installations: 1, failed: 0)])
    }

    @Test("A contact code of somebody else, an old one, and noise teach nothing")
    func foreignCodes() throws {
        var (world, bob) = try StatusWorld.settled()
        let old = try #require(world.history.last)
        bob.use(try StatusDeviceToken.fcm(Secret("another".utf8)))
        try world.settle(&bob)
        let new = try #require(world.history.last)
        var origin = world.sender()
        let stranger = world.keyPair().point
        origin.follow(stranger, now: world.now)
        #expect(origin.receive(new, now: world.now) == false)
        origin.follow(bob.key.point, now: world.now)
        #expect(origin.receive(new, now: world.now) == true)
        let known = KeptRows.write(origin.rows)
        origin.receive(old, now: world.now)
        #expect(KeptRows.write(origin.rows) == known)
        for count in [0, 27, 28, 29, 300] {
            let noise = WakuMessage(
                payload: Secret([UInt8](repeating: 9, count: count)), contentTopic: new.contentTopic,
                timestamp: 0)
            #expect(origin.receive(noise, now: world.now) == false)
        }
    }

    @Test("A newer contact code without a token for the sender ends the older one, whatever comes when")
    func withheld() throws {
        var world = StatusWorld()
        var alice = world.sender()
        var bob = try world.phone()
        func tell(_ contacts: [PublicPoint]) throws -> WakuMessage {
            var settings = StatusSettings()
            settings.contactsOnly = true
            settings.contacts = contacts
            try bob.apply(settings)
            try world.settle(&bob)
            return try #require(world.history.last)
        }
        let old = try tell([alice.key.point])
        let new = try tell([])
        for codes in [[old, new], [new, old], [old, new, old]] {
            var origin = world.sender(alice.key)
            origin.follow(bob.key.point, now: world.now)
            for code in codes { origin.receive(code, now: world.now) }
            #expect(origin.installations(of: bob.key.point) == 0)
            // A restart forgets no version.
            origin = try StatusOriginRoutine(rows: origin.rows, key: origin.key)
            origin.receive(old, now: world.now)
            #expect(origin.installations(of: bob.key.point) == 0)
        }
        // Whoever knew the token asks the servers, and then is silent.
        alice.follow(bob.key.point, now: world.now)
        alice.receive(old, now: world.now)
        #expect(alice.installations(of: bob.key.point) == 1)
        #expect(alice.receive(new, now: world.now) == true)
        #expect(alice.receive(new, now: world.now) == false)
        try world.send(Self.message(), to: [bob.key.point], by: &alice, for: .seconds(9))
        #expect(world.settled.map(\.outcome) == [.noToken])
        #expect(world.servers.allSatisfy { $0.queriesHeard == 1 && $0.requestBytes.isEmpty })
        // Back in the list.
        #expect(alice.receive(try tell([alice.key.point]), now: world.now) == true)
        try world.send(Self.message(2), to: [bob.key.point], by: &alice)
        #expect(world.settled.last?.outcome == .taken(installations: 1, failed: 0))
    }

    @Test("A server that says there is no token ends no other server's")
    func withholdingServer() throws {
        var (world, bob) = try StatusWorld.settled()
        world.servers[0].withholdsFrom = 99
        for place in 0..<2 { world.servers[place].reportFaults = [.wrongToken] }
        var origin = world.sender()
        try world.send(Self.message(), to: [bob.key.point], by: &origin, for: .seconds(60))
        #expect(world.servers.allSatisfy { $0.queriesHeard == 1 })
        #expect(world.settled.map(\.outcome) == [.taken(installations: 1, failed: 0)])
        #expect(world.servers[1].pushes.count == 1)
    }

    @Test("A server that claims the highest version, and then is silent, shuts nobody else out")
    func claimedVersion() throws {
        var (world, bob) = try StatusWorld.settled()
        world.forgetHistory()
        world.servers[0].claimedVersion = .max
        var origin = world.sender()
        try world.send(Self.message(), to: [bob.key.point], by: &origin, for: .seconds(4))
        world.servers[0].isDown = true
        for byte in 2...9 {
            _ = try origin.notify(Self.message(UInt8(byte)), to: [bob.key.point], now: world.now)
        }
        try world.settle(&origin, for: .seconds(60))
        #expect(world.settled.count == 9)
        #expect(world.settled.allSatisfy { $0.outcome == .taken(installations: 1, failed: 0) })
        // A restart does not make more of its word, and the person's own outranks that of others.
        let again = try StatusOriginRoutine(rows: origin.rows, key: origin.key)
        #expect(KeptRows.write(again.rows) == KeptRows.write(origin.rows))
        var other = world.sender(origin.key)
        other.follow(bob.key.point, now: world.now)
        bob.use(try StatusDeviceToken.fcm(Secret("another".utf8)))
        try world.settle(&bob)
        let code = try #require(world.history.last { $0.contentTopic == bob.topics[1] })
        #expect(origin.receive(code, now: world.now) == true)
        #expect(other.receive(code, now: world.now) == true)
    }

    @Test("A server that tells of installations that nobody has leaves places to those of others")
    func madeUpInstallations() throws {
        var world = StatusWorld()
        var bob = try world.phone()
        world.servers[0].isDown = true
        try world.settle(&bob)
        world.servers[0].isDown = false
        try world.settle(&bob, for: .seconds(60))
        world.forgetHistory()
        world.servers[0].madeUp = StatusLimits.targetCoordinates
        var origin = world.sender()
        try world.send(Self.message(), to: [bob.key.point], by: &origin, for: .seconds(120))
        #expect(world.pushes.contains { $0.installationID.word == bob.installationID })
    }

    @Test("Whom there is no room to ask about at once is asked about later, all of three hundred")
    func roomToAsk() throws {
        var world = StatusWorld()
        for place in world.servers.indices { world.servers[place].isDown = true }
        let people = (0..<StatusLimits.originCalls + 44).map { _ in world.keyPair().point }
        // With the keys of their topics, which take long to make.
        let key = Secret(String(repeating: "0", count: 64).utf8)
        let rows = people.map { person -> [Secret] in
            let point = Secret(Hex.encode(person.compressed).utf8)
            return [Secret("person".utf8), point, point, Secret([]), Secret("1".utf8), key, key]
        }
        let head = [Secret("on".utf8), Secret("8".utf8)]
        var origin = try StatusOriginRoutine(rows: [head] + rows, key: world.keyPair())
        _ = try origin.notify(Self.message(), to: people, now: world.now)
        var (asked, moments) = (0, 0)
        // Contact codes are not there.
        while let next = origin.nextDeadline, moments < 20 {
            world.now = max(world.now, next)
            let work = origin.due(now: world.now, using: &world.random)
            asked += work.messages.count
            world.settled += work.settled
            moments += 1
        }
        #expect(asked == people.count && world.settled.count == people.count)
        #expect(world.settled.allSatisfy { $0.outcome == .noToken })
        #expect(world.now.since(StatusWorld.start) < StatusLimits.historyWait + .seconds(10))
    }

    @Test("What is kept is read back the same, and nothing else is taken")
    func keeping() throws {
        var (world, bob) = try StatusWorld.settled()
        var origin = world.sender()
        try world.send(Self.message(), to: [bob.key.point], by: &origin)
        origin.saw(bob.installationID, of: bob.key.point, at: world.now)
        let rows = origin.rows
        let again = try StatusOriginRoutine(rows: rows, key: origin.key)
        #expect(KeptRows.write(again.rows) == KeptRows.write(rows) && again.isSending)
        #expect(again.installations(of: bob.key.point) == 1)
        for place in rows.indices {
            for count in rows[place].indices {
                var other = rows
                other[place] = Array(rows[place][..<count])
                // A contact code's word without the mark of one is a server's.
                let isServers = rows[place].count == 6 && count == 5
                guard !isServers else { continue }
                #expect(throws: StatusError(.malformedRow)) {
                    try StatusOriginRoutine(rows: other, key: origin.key)
                }
            }
        }
        #expect(throws: StatusError(.malformedRow)) { try StatusOriginRoutine(rows: [], key: origin.key) }
    }
}
