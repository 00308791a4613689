import PushModel
import PushTesting
import Secp256k1Keys
import StatusPush
import Testing
import WireFormats

/// The registering client where things go wrong.
@Suite("Status's registering client", .timeLimit(.minutes(30)))
struct StatusDeviceTests {
    @Test("Nothing is sent before the user asks for pushes, nor after it was switched off unheard")
    func offByDefault() throws {
        var world = StatusWorld()
        var device = StatusInstallation(key: world.keyPair(), using: &world.random)
        device.use(try StatusDeviceToken.fcm(Secret("token".utf8)))
        try device.apply(StatusSettings())
        try device.use(servers: world.servers.map(\.key.point))
        #expect(device.due(now: world.now, using: &world.random).isEmpty && device.nextDeadline == nil)
        device.switchOn()
        device.switchOff()
        #expect(device.due(now: world.now, using: &world.random).isEmpty && device.isForgotten)
    }

    @Test("A silent server is told again after 15 s · n · 2^n, twelve times, and again when asked for")
    func backoff() throws {
        var world = StatusWorld()
        world.servers[1].isDown = true
        var device = try world.phone()
        try world.settle(&device)
        for n in 1..<StatusLimits.registrationAttempts {
            let next = try #require(device.nextDeadline)
            // Later ones are longer than the time to the next advertisement.
            let pause = Duration.seconds(15 * n << n)
            if pause < .seconds(6_000) {
                #expect(next.since(world.now) == pause)
                #expect(device.due(now: next - .milliseconds(1), using: &world.random).isEmpty)
            }
            try world.settle(&device, for: pause)
        }
        #expect(device.servers[1].condition == .givenUp)
        world.servers[1].isDown = false
        device.retry()
        try world.settle(&device)
        #expect(device.servers.map(\.condition) == [.registered, .registered])
    }

    @Test("What a server calls malformed is not repeated before something changes")
    func malformed() throws {
        var world = StatusWorld()
        world.servers[0].registrationFaults = [.malformedMessage]
        var device = try world.phone()
        try world.settle(&device)
        #expect(world.events.first == .refused(world.servers[0].key.point, .malformed))
        try world.settle(&device, for: .seconds(3_600))
        #expect(device.servers.map(\.condition) == [.refused, .registered])
        device.use(try StatusDeviceToken.fcm(Secret("another".utf8)))
        try world.settle(&device)
        #expect(device.servers.map(\.condition) == [.registered, .registered] && device.version == 2)
    }

    @Test("A kind of token that a server does not support ends the matter there")
    func unsupported() throws {
        var world = StatusWorld()
        world.servers[1].registrationFaults = [.unsupportedTokenType]
        var device = try world.phone()
        try world.settle(&device, for: .seconds(3_600))
        #expect(device.servers.map(\.condition) == [.registered, .refused])
        #expect(world.events.contains(.refused(world.servers[1].key.point, .unsupportedToken)))
    }

    @Test("A server that holds a higher version is told a still higher one, and the others too")
    func versionMismatch() throws {
        var (world, old) = try StatusWorld.settled()
        for token in ["b", "c", "d", "e"] {
            old.use(try StatusDeviceToken.fcm(Secret(token.utf8)))
            try world.settle(&old)
        }
        #expect(old.version == 5)
        // The app has lost what it kept, and the account has its installation id still.
        var device = try StatusInstallation(
            key: old.key, installationID: old.installationID, using: &world.random)
        device.use(try StatusDeviceToken.fcm(Secret("f".utf8)))
        try device.apply(StatusSettings())
        try device.use(servers: world.servers.map(\.key.point))
        device.switchOn()
        try world.settle(&device, for: .seconds(3_600))
        #expect(device.servers.map(\.condition) == [.registered, .registered])
        #expect(device.version > 5)
        #expect(world.servers.allSatisfy { $0.live[0].registration.version == device.version })
    }

    @Test("A server that always claims a higher version is given up, and the number stays small")
    func endlessMismatch() throws {
        var world = StatusWorld()
        world.servers[0].registrationFaults = [PushNotificationRegistrationResponse.Fault](
            repeating: .versionMismatch, count: 100)
        var device = try world.phone()
        try world.settle(&device, for: .seconds(30 * 86_400))
        #expect(device.version < 1 << 20)
        #expect(device.servers[0].condition != .registered && device.servers[1].condition == .registered)
    }

    @Test("A server's own failure is followed by another try, later")
    func internalError() throws {
        var world = StatusWorld()
        world.servers[0].registrationFaults = [.internalError]
        var device = try world.phone()
        try world.settle(&device)
        #expect(world.events.contains(.later(world.servers[0].key.point)))
        #expect(device.servers[0].condition == .waiting)
        try world.settle(&device, for: .seconds(30))
        #expect(device.servers[0].condition == .registered)
    }

    @Test("A contact who leaves makes the access token another; one who comes does not")
    func contacts() throws {
        var world = StatusWorld()
        var device = try world.phone()
        var settings = StatusSettings()
        let (one, two) = (world.keyPair().point, world.keyPair().point)
        settings.contacts = [one]
        try device.apply(settings)
        try world.settle(&device)
        let first = world.servers[0].live[0].registration.accessToken
        settings.contacts = [one, two]
        try device.apply(settings)
        try world.settle(&device)
        #expect(device.version == 1)
        settings.contacts = [two]
        try device.apply(settings)
        try world.settle(&device)
        let second = world.servers[0].live[0].registration.accessToken
        #expect(device.version == 2 && !(first == second))
        settings.contactsOnly = true
        try device.apply(settings)
        try world.settle(&device)
        let third = world.servers[0].live[0].registration
        #expect(device.version == 3 && !(third.accessToken == second) && third.allowedKeyList.count == 1)
    }

    @Test("A server that leaves the list forgets the account, and the other keeps its version")
    func leftServer() throws {
        var (world, device) = try StatusWorld.settled()
        try device.use(servers: [world.servers[0].key.point])
        try world.settle(&device)
        #expect(world.servers.map { $0.live.count } == [1, 0])
        #expect(world.servers[0].live[0].registration.version == 1)
        try device.use(servers: world.servers.map(\.key.point))
        try world.settle(&device)
        #expect(world.servers.map { $0.live.count } == [1, 1])
    }

    @Test("Two installations of one account advertise each other; one that leaves is left out")
    func otherInstallations() throws {
        var world = StatusWorld()
        let key = world.keyPair()
        var phone = try world.phone(key)
        var tablet = try world.phone(key)
        try world.settle(&phone)
        try world.settle(&tablet)
        for message in world.history where message.contentTopic == phone.topics[1] {
            if let event = phone.receive(message, now: world.now) { world.events.append(event) }
        }
        #expect(world.events.filter { $0 == .otherInstallation }.count == 1)
        try world.settle(&phone)
        var sender = world.sender()
        sender.follow(key.point, now: world.now)
        sender.receive(try #require(world.history.last), now: world.now)
        #expect(sender.installations(of: key.point) == 2)

        tablet.switchOff()
        try world.settle(&tablet)
        phone = try StatusInstallation(rows: phone.rows, key: key)
        phone.use(try StatusDeviceToken.apns(Secret(String(repeating: "a5", count: 32).utf8), topic: "im"))
        try phone.apply(StatusSettings())
        #expect(phone.receive(try #require(world.history.last), now: world.now) == .otherInstallation)
        try world.settle(&phone)
        var another = world.sender()
        another.follow(key.point, now: world.now)
        another.receive(try #require(world.history.last), now: world.now)
        #expect(another.installations(of: key.point) == 1)
    }

    @Test("The advertisement is repeated every day")
    func advertisement() throws {
        var (world, device) = try StatusWorld.settled()
        let before = world.history.count
        try world.settle(&device, for: StatusLimits.advertisementPeriod - .seconds(1))
        #expect(world.history.count == before)
        try world.settle(&device, for: .seconds(1))
        #expect(world.history.count == before + 1)
        #expect(world.history.last?.contentTopic == device.topics[1])
    }

    @Test("Answers of a server that was not asked, old answers and noise change nothing")
    func foreignAnswers() throws {
        var world = StatusWorld()
        var device = try world.phone()
        let messages = device.due(now: world.now, using: &world.random)
        let stranger = world.keyPair()
        let answers = try world.publish(messages)
        let id = Secret([UInt8](repeating: 1, count: 64))
        for (signer, answer) in [
            (stranger, PushNotificationRegistrationResponse(success: true, requestID: id)),
            (world.servers[0].key, PushNotificationRegistrationResponse(success: true, requestID: id))
        ] {
            let message = EndMessages.seal(
                .registrationResponse, answer.encoded(), signedBy: signer, to: device.key.point,
                on: WakuTopic.partitioned(of: device.key.point), world.now, &world.random)
            #expect(device.receive(message, now: world.now) == nil)
        }
        for topic in device.topics {
            for count in [0, 1, 12, 113, 400] {
                let noise = WakuMessage(
                    payload: Secret([UInt8](repeating: 4, count: count)), contentTopic: topic, timestamp: 0)
                #expect(device.receive(noise, now: world.now) == nil)
            }
        }
        #expect(device.receive(answers[0], now: world.now) == .registered(world.servers[0].key.point))
        #expect(device.receive(answers[0], now: world.now) == nil)
    }

    @Test("Too many servers or contacts, and tokens that are none, are refused")
    func bounds() throws {
        var world = StatusWorld()
        var device = try world.phone()
        let many = (0...StatusLimits.deviceServers).map { _ in world.keyPair().point }
        #expect(throws: StatusError(.tooManyServers)) { try device.use(servers: many) }
        var settings = StatusSettings()
        settings.contacts = [PublicPoint](repeating: many[0], count: StatusLimits.deviceContacts + 1)
        #expect(throws: StatusError(.tooManyEntries)) { try device.apply(settings) }
        #expect(throws: StatusError(.malformedToken)) { try StatusDeviceToken.fcm(Secret([])) }
        #expect(throws: StatusError(.malformedToken)) {
            try StatusDeviceToken.apns(Secret("a".utf8), topic: "")
        }
        #expect(throws: StatusError(.malformedInstallation)) {
            try StatusInstallation(key: device.key, installationID: "phone", using: &world.random)
        }
    }

    @Test("What a device takes a relay takes and a node carries, with all lists as long as they may be")
    func atItsBounds() async throws {
        var random = SeededRandom(seed: 11)
        let server = samplePair(1)
        var device = StatusInstallation(key: samplePair(2), using: &random)
        let token = String(repeating: "t", count: StatusLimits.deviceTokenBytes)
        device.use(try .fcm(Secret(token.utf8)))
        var settings = StatusSettings()
        settings.contactsOnly = true
        settings.contacts = [PublicPoint](repeating: samplePair(3).point, count: StatusLimits.deviceContacts)
        let rest = StatusLimits.deviceEntries - StatusLimits.deviceContacts
        let chats = (0..<rest).map { Secret("chat \($0)".utf8) }
        settings.mutedChats = Array(chats.prefix(StatusLimits.deviceChats))
        settings.chatsWithMentions = Array(chats.dropFirst(StatusLimits.deviceChats))
        try device.apply(settings)
        settings.blockedChats = [Secret("one more".utf8)]
        #expect(throws: StatusError(.tooManyEntries)) { try device.apply(settings) }
        try device.use(servers: [server.point])
        device.switchOn()
        let messages = device.due(now: StatusRig.now, using: &random)
        #expect(messages.count == 1)
        #expect(messages.allSatisfy { $0.encoded().count <= StatusLimits.carriedBytes })
        let message = try #require(messages.first)
        let wrapped = try WakuPayload.openAsymmetric(message.payload, with: server).data
        let isTaken = try await StatusRig(identity: server).running { rig -> Bool in
            guard case .registration(let answer)? = await rig.receive(wrapped)?.body else { return false }
            return answer.success
        }
        #expect(isTaken)
        #expect(throws: StatusError(.malformedToken)) {
            try StatusDeviceToken.fcm(Secret((token + "t").utf8))
        }
        let apple = String(repeating: "a", count: StatusLimits.appleTokenBytes)
        let topic = String(repeating: "b", count: StatusLimits.apnTopicBytes)
        _ = try StatusDeviceToken.apns(Secret(apple.utf8), topic: topic)
        for (token, topic) in [(apple + "a", topic), (apple, topic + "b"), (apple, "two words")] {
            #expect(throws: StatusError(.malformedToken)) {
                try StatusDeviceToken.apns(Secret(token.utf8), topic: topic)
            }
        }
    }

    @Test("A contact code with a list for each of eight servers is as many messages as a node carries")
    func longContactCode() throws {
        var world = StatusWorld()
        var (phone, tablet) = (try world.phone(), try world.phone())
        tablet = try world.phone(phone.key)
        let contact = world.keyPair()
        var settings = StatusSettings()
        settings.contactsOnly = true
        settings.contacts =
            [PublicPoint](repeating: world.keyPair().point, count: StatusLimits.deviceContacts - 1)
            + [contact.point]
        try phone.apply(settings)
        try world.settle(&phone)
        let codes = world.history.filter { $0.contentTopic == phone.topics[1] }
        #expect(codes.count == 2)
        #expect(world.history.allSatisfy { $0.encoded().count <= StatusLimits.carriedBytes })
        // A contact learns of both servers, in any order of the parts.
        for codes in [codes, codes.reversed()] {
            var origin = world.sender(contact)
            origin.follow(phone.key.point, now: world.now)
            for code in codes { #expect(origin.receive(code, now: world.now) == true) }
            #expect(origin.rows.count { $0.first?.word == "server" } == 2)
        }
        // Another phone of the account keeps what has room, is not astonished by the second part, and can be
        // read back.
        for _ in 0..<3 { for code in codes { _ = tablet.receive(code, now: world.now) } }
        let kept = KeptRows.write(tablet.rows)
        #expect(kept.count < StatusLimits.deviceRowBytes)
        let again = try StatusInstallation(rows: tablet.rows, key: tablet.key)
        #expect(KeptRows.write(again.rows) == kept)
        #expect(codes.allSatisfy { tablet.receive($0, now: world.now) == nil })
    }
}
