import PushModel
import PushTesting
import Secp256k1Keys
import StatusPush
import Testing
import WireFormats

/// A phone, a sender and two servers exchange messages in memory.
@Suite("Status conversations", .timeLimit(.minutes(30)))
struct StatusPushConversationTests {
    static let message = StatusNotification(
        messageID: Secret([UInt8](repeating: 7, count: 32)), .direct, content: Secret("hello".utf8))

    /// What gorush would deliver for a push.
    static func delivered(_ push: PushNotification) throws -> DeliveredData {
        func hex(_ secret: Secret) -> String { "0x" + secret.hexDigits.word }
        let json = """
            {"aps":{"alert":"You have a new message"},"encryptedMessage":"\(hex(push.message))",\
            "chatId":"\(hex(push.chatID))","publicKey":"\(hex(push.publicKey))"}
            """
        return try DeliveredData(delivered: Secret(json.utf8))
    }

    @Test("A phone registers at two servers and advertises; a contact's message reaches it by one of them")
    func wholeWay() throws {
        var (world, bob) = try StatusWorld.settled()
        #expect(world.events == world.servers.map { .registered($0.key.point) })
        #expect(bob.version == 1 && world.servers.allSatisfy { $0.live.count == 1 })

        var alice = world.sender()
        let ids = try alice.notify(Self.message, to: [bob.key.point], now: world.now)
        try world.settle(&alice)
        // The contact code was enough: nobody was asked.
        #expect(world.servers.map(\.queriesHeard) == [0, 0])
        #expect(
            world.settled == [StatusDispatch(id: ids[0], outcome: .taken(installations: 1, failed: 0))])
        let push = try #require(world.pushes.first)
        #expect(world.pushes.count == 1)

        var inbox = StatusInbox(using: &world.random)
        let chat = StatusHash.contactID(alice.key.point)
        let action = inbox.open(
            try Self.delivered(push), accounts: [bob], chats: [bob.installationID: [chat]])
        guard case .show(let message) = action else {
            Issue.record("shown")
            return
        }
        #expect(message.chat.map { $0 == chat } == true)
        #expect(message.author == alice.key.point)
        #expect(message.content.map { $0 == Secret("hello".utf8) } == true)
        inbox.remember(message)
        var again = try StatusInbox(row: inbox.row)
        guard case .ignore(.repeated) = again.open(try Self.delivered(push), accounts: [bob]) else {
            Issue.record("shown twice")
            return
        }
        again.remember(message)
    }

    @Test("Without a contact code the servers are asked once, and the day after at the earliest again")
    func asking() throws {
        var (world, bob) = try StatusWorld.settled()
        world.forgetHistory()
        var alice = world.sender()
        try world.send(Self.message, to: [bob.key.point], by: &alice, for: .seconds(4))
        #expect(world.servers.map(\.queriesHeard) == [1, 1] && world.pushes.count == 1)

        let stranger = world.keyPair().point
        for _ in 0..<2 {
            try world.send(Self.message, to: [stranger], by: &alice, for: .seconds(4))
        }
        #expect(world.settled.suffix(2).allSatisfy { $0.outcome == .noToken })
    }

    @Test("Whoever would wait long for coordinates waits three seconds for more, once a server has told some")
    func patientAsking() throws {
        var (world, bob) = try StatusWorld.settled()
        world.forgetHistory()
        var alice = world.sender()
        alice.answerWait = .seconds(45)
        try world.send(Self.message, to: [bob.key.point], by: &alice, for: .seconds(2))
        #expect(world.servers.map(\.queriesHeard) == [1, 1] && world.pushes.isEmpty)
        try world.settle(&alice, for: .seconds(2))
        #expect(world.pushes.count == 1)

        // Nobody answers for a stranger: that is waited for.
        try world.send(Self.message, to: [world.keyPair().point], by: &alice, for: .seconds(44))
        #expect(world.settled.count == 1)
        try world.settle(&alice, for: .seconds(2))
        #expect(world.settled.last?.outcome == .noToken)
    }

    @Test("A server that is silent for three seconds is passed over for the other, by different bytes")
    func failover() throws {
        for down in 0..<2 {
            var (world, bob) = try StatusWorld.settled()
            var alice = world.sender()
            world.servers[down].isDown = true
            for _ in 0..<4 { _ = try alice.notify(Self.message, to: [bob.key.point], now: world.now) }
            try world.settle(&alice, for: .seconds(4))
            #expect(world.servers[1 - down].pushes.count == 4)
            #expect(world.settled.allSatisfy { $0.outcome == .taken(installations: 1, failed: 0) })
        }
    }

    @Test("A wrong token is asked for again, and the message sent with the new one")
    func wrongToken() throws {
        var world = StatusWorld()
        let carol = world.keyPair().point
        var bob = try world.phone()
        let settings = changing(StatusSettings()) { $0.contacts = [carol] }
        try bob.apply(settings)
        try world.settle(&bob)
        var alice = world.sender()
        try world.send(Self.message, to: [bob.key.point], by: &alice)

        // Carol is no contact any more: the token is another, and alice misses the advertisement.
        try bob.apply(StatusSettings())
        try world.settle(&bob)
        #expect(bob.version == 2)
        try world.send(Self.message, to: [bob.key.point], by: &alice, for: .seconds(60))
        #expect(world.servers.map(\.queriesHeard) == [1, 1] && world.pushes.count == 2)
        #expect(world.settled.last?.outcome == .taken(installations: 1, failed: 0))
    }

    @Test("A server that was away during a change is brought level later")
    func broughtLevel() throws {
        var (world, bob) = try StatusWorld.settled()
        world.servers[1].isDown = true
        let settings = changing(StatusSettings()) { $0.contactsOnly = true }
        try bob.apply(settings)
        try world.settle(&bob, for: .seconds(100))
        #expect(bob.servers.map(\.condition) == [.registered, .waiting])
        #expect(world.servers[1].live[0].registration.version == 1)
        // A restart in between.
        var later = try StatusInstallation(rows: bob.rows, key: bob.key)
        later.use(try StatusDeviceToken.apns(Secret(String(repeating: "a5", count: 32).utf8), topic: "im"))
        try later.apply(settings)
        world.servers[1].isDown = false
        try world.settle(&later, for: .seconds(1_000))
        #expect(later.servers.map(\.condition) == [.registered, .registered] && later.version == 2)
        #expect(world.servers[1].live[0].registration.version == 2)
    }

    @Test("Switching off makes the servers forget, and switching on again needs no luck with versions")
    func off() throws {
        var (world, bob) = try StatusWorld.settled()
        bob.switchOff()
        #expect(!bob.isForgotten)
        try world.settle(&bob)
        #expect(bob.isForgotten && world.servers.allSatisfy { $0.live.isEmpty })
        var alice = world.sender()
        try world.send(Self.message, to: [bob.key.point], by: &alice, for: .seconds(120))
        #expect(world.pushes.isEmpty)
        bob.switchOn()
        try world.settle(&bob)
        #expect(world.servers.allSatisfy { $0.live.count == 1 } && bob.version == 3)
    }

    @Test("Contacts alone may send: a contact's list opens, a stranger's does not")
    func contactsOnly() throws {
        var world = StatusWorld()
        var alice = world.sender()
        var eve = world.sender()
        var bob = try world.phone()
        var settings = StatusSettings()
        settings.contactsOnly = true
        settings.contacts = [alice.key.point]
        try bob.apply(settings)
        try world.settle(&bob)
        _ = try alice.notify(Self.message, to: [bob.key.point], now: world.now)
        _ = try eve.notify(Self.message, to: [bob.key.point], now: world.now)
        try world.settle(&alice, for: .seconds(4))
        try world.settle(&eve, for: .seconds(4))
        #expect(world.pushes.count == 1)
        #expect(world.settled.map(\.outcome) == [.taken(installations: 1, failed: 0), .noToken])
    }

    @Test("In anonymous mode a contact who knows the push key reaches the phone, and nobody else")
    func anonymous() throws {
        var world = StatusWorld()
        let chatKey = world.keyPair().point
        var bob = try world.phone()
        try world.settle(&bob)
        var alice = world.sender()
        var eve = world.sender()
        alice.learn(pushKey: bob.key.point, of: chatKey, now: world.now)
        _ = try alice.notify(Self.message, to: [chatKey], now: world.now)
        _ = try eve.notify(Self.message, to: [chatKey], now: world.now)
        try world.settle(&alice, for: .seconds(4))
        try world.settle(&eve, for: .seconds(9))
        #expect(world.pushes.count == 1)
        #expect(world.settled.map(\.outcome) == [.taken(installations: 1, failed: 0), .noToken])
    }
}
