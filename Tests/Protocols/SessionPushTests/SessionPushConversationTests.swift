import EdwardsKeys
import Primitives
import PushModel
import PushTesting
import SessionPush
import Testing
import WireFormats

/// Device, origin and relay of this protocol exchange bytes in memory. Read this first.
@Suite("Session conversation", .timeLimit(.minutes(30)))
struct SessionPushConversationTests {
    /// A phone with a user and a group, and the way to its relay.
    private struct Phone {
        enum Way { case plain, onion(OnionCipher) }

        static let token = String(repeating: "a1", count: 32)
        static let onionKey = X25519KeyPair.generate(SessionRigWorld.world)
        var device: SessionRoutine
        var random = SeededRandom(seed: 77)
        let user: SessionAccountKey
        let group: AccountID
        let way: Way

        init(_ way: Way = .plain) throws {
            self.way = way
            device = SessionRoutine(using: &random)
            user = try SessionAccountKey(.generate(using: &random))
            // The group's admin sends the member what it signs with from then on.
            let admin = try GroupAdmin(seed: Ed25519KeyPair.generate(using: &random).seed)
            group = admin.key.account
            let membership = try Subaccount(
                signingValue: admin.signingValue(for: user.account), of: group, member: user.pair)
            try device.watch(WatchedAccount(user))
            try device.watch(WatchedAccount(membership))
            device.use(try SessionDeviceToken(.apns, Secret(Self.token.utf8)))
        }

        /// Sends all that is due, and takes the answers.
        /// - Parameter time: when it signs; `nil`: now.
        mutating func renew(
            at relay: SessionRig, signing time: UnixTime? = nil
        ) async throws -> [SessionVerdict] {
            let now = time ?? relay.world.now()
            var verdicts: [SessionVerdict] = []
            for call in try device.renewal(due: now) {
                let answer = try await ask(call, at: relay)
                verdicts += device.settle(call.id, answer, now: now, using: &random).map(\.verdict)
            }
            return verdicts
        }

        private mutating func ask(_ call: SessionCall, at relay: SessionRig) async throws -> SessionAnswer {
            guard case .onion(let cipher) = way else {
                let json = try await relay.ask(call.endpoint.rawValue, call.body.reveal { Array($0) })
                return SessionAnswer(status: 200, body: Secret(json.serialized()))
            }
            let server = try OnionServer(host: "push.example.org", key: Secret(Self.onionKey.publicKey))
            let request = try server.request(call, through: [], cipher, using: &random)
            let opened = try request.body.reveal { (body) throws(SessionError) in
                try SessionOnion.open(body, key: Self.onionKey)
            }
            let inner = try #require(opened.request)
            let json = try await relay.ask(inner.path, inner.body.reveal { Array($0) }, by: .onion)
            let reply = withBytes(json.serialized()) {
                opened.reply.seal(code: 200, contentType: "application/json", body: $0, relay.world)
            }
            return try request.answer(status: 200, body: reply)
        }

        func open(_ message: APNsMessage, at relay: SessionRig) throws -> SessionAction {
            try device.open(DeliveredPush(delivered: message.payload), now: relay.world.now())
        }
    }

    private enum SessionRigWorld { static let world = ManualClock(start: SessionRig.now).world(seed: 5) }

    private static let hash = "DW4L/OqQUUk/yDhTQb5viggmLznY08l8sXlCNW52etc"

    private func stored(
        _ account: AccountID, _ namespace: Int16 = 0, hash: String = Self.hash,
        data: [UInt8]? = Array("hi".utf8), at now: UnixTime = SessionRig.now
    ) -> StorageNotice {
        StorageNotice(
            account: account, hash: Secret(hash.utf8), namespace: namespace, timestamp: now,
            expiry: now + .seconds(86_400), data: data.map { Secret($0) })
    }

    private func message(_ relay: SessionRig, _ place: Int) async throws -> APNsMessage {
        await relay.services.sent(atLeast: place + 1)
        return try #require(relay.services.sent.dropFirst(place).first?.message.apns)
    }

    @Test(
        "A phone subscribes, a message comes by the swarm, and only the phone opens it",
        arguments: [0, 1, 2])
    func wholeWay(way: Int) async throws {
        let relay = try await SessionRig()
        try await relay.running { relay in
            var phone = try Phone([.plain, .onion(.xchacha20), .onion(.aesGCM)][way])
            // A user and a group, in one call.
            #expect(try await phone.renew(at: relay) == [.added, .added])
            #expect(try await phone.renew(at: relay).isEmpty)

            // Each member of the swarm reports the message; the phone hears of it once.
            let text = "encrypted by its sender"
            for _ in 0..<5 {
                try await relay.notify(stored(phone.user.account, data: Array(text.utf8)))
            }
            let push = try await message(relay, 0)
            #expect(push.token == Secret(Phone.token.utf8) && push.topic == SessionRig.bundle)
            let payload = push.payload.reveal { String(decoding: $0, as: UTF8.self) }
            #expect(!payload.contains(Self.hash) && !payload.contains(text))
            guard case .show(let opened) = try phone.open(push, at: relay) else {
                Issue.record("shown")
                return
            }
            #expect(opened.account == phone.user.account && opened.hash == Self.hash)
            #expect(opened.data.map { $0 == Secret(text.utf8) } == true)
            phone.device.remember(opened)
            guard case .ignore(.repeated) = try phone.open(push, at: relay) else {
                Issue.record("delivered twice")
                return
            }

            // The group's keys change: for the app, not for the screen.
            try await relay.notify(stored(phone.group, 12, hash: Self.hash.replacing("D", with: "B")))
            guard case .update(let keys) = try phone.open(await message(relay, 1), at: relay) else {
                Issue.record("taken in")
                return
            }
            #expect(keys.account == phone.group && keys.namespace == 12)

            // A member is removed, in a namespace below zero.
            try await relay.notify(stored(phone.group, -11, hash: Self.hash.replacing("D", with: "E")))
            guard case .update(let removed) = try phone.open(await message(relay, 2), at: relay) else {
                Issue.record("taken in")
                return
            }
            #expect(removed.namespace == -11)

            // What is too long for a push is fetched.
            let long = [UInt8](repeating: 7, count: 2_501)
            try await relay.notify(
                stored(phone.group, 11, hash: Self.hash.replacing("D", with: "C"), data: long))
            guard case .fetch(let missing) = try phone.open(await message(relay, 3), at: relay) else {
                Issue.record("fetched")
                return
            }
            #expect(missing.isTooLong && missing.isForPeople)
            #expect(relay.services.sent.count == 4)
        }
    }

    @Test("A phone renews before its signature is old, and the relay forgets one that does not")
    func renewal() async throws {
        let relay = try await SessionRig()
        try await relay.running { relay in
            var phone = try Phone()
            _ = try await phone.renew(at: relay)
            relay.advance(by: .seconds(7 * 86_400))
            #expect(try await phone.renew(at: relay) == [.updated, .updated])
            relay.advance(by: .seconds(10 * 86_400))
            try await relay.notify(stored(phone.user.account, at: relay.world.now()))
            _ = try phone.open(await message(relay, 0), at: relay)
            relay.advance(by: .seconds(4 * 86_400))
            let late = Self.hash.replacing("D", with: "F")
            try await relay.notify(stored(phone.user.account, hash: late, at: relay.world.now()))
            #expect(relay.services.sent.count == 1)
            #expect(try await phone.renew(at: relay).count == 2)
        }
    }

    @Test("Another token takes the place of the old one, to which nothing is sent any more")
    func anotherToken() async throws {
        let relay = try await SessionRig()
        try await relay.running { relay in
            var phone = try Phone()
            _ = try await phone.renew(at: relay)
            relay.advance(by: .seconds(60))
            let token = String(repeating: "b2", count: 32)
            phone.device.use(try SessionDeviceToken(.apns, Secret(token.utf8)))
            #expect(
                try await phone.renew(at: relay)
                    == [.added, .added, .removed(wasThere: true), .removed(wasThere: true)])
            try await relay.notify(stored(phone.user.account))
            #expect(try await message(relay, 0).token == Secret(token.utf8))
            #expect(relay.services.sent.count == 1)
        }
    }

    @Test("A token that Apple refuses ends the subscription, and the phone's next renewal brings it back")
    func deadToken() async throws {
        let relay = try await SessionRig()
        try await relay.running { relay in
            var phone = try Phone()
            _ = try await phone.renew(at: relay)
            relay.services.answer(Phone.token) { _ in
                Answer(.unregistered(since: nil), .badDeviceToken, sentAt: SessionRig.now)
            }
            try await relay.notify(stored(phone.user.account))
            _ = try await message(relay, 0)
            await relay.store.ends(atLeast: 1)
            try await relay.notify(stored(phone.user.account, hash: Self.hash.replacing("D", with: "G")))
            #expect(relay.services.sent.count == 1)
            relay.services.answer(Phone.token, by: nil)
            relay.advance(by: .seconds(7 * 86_400))
            _ = try await phone.renew(at: relay)
            let next = Self.hash.replacing("D", with: "H")
            try await relay.notify(stored(phone.user.account, hash: next, at: relay.world.now()))
            guard case .show = try phone.open(await message(relay, 1), at: relay) else {
                Issue.record("shown")
                return
            }
        }
    }

    @Test("An account that leaves hears nothing any more, also when an old subscription is sent again")
    func leaving() async throws {
        let relay = try await SessionRig()
        try await relay.running { relay in
            var phone = try Phone()
            var earlier = phone
            _ = try await phone.renew(at: relay)
            try phone.device.leave(phone.user.account, now: SessionRig.now)
            #expect(try await phone.renew(at: relay) == [.removed(wasThere: true)])
            // Somebody kept what was sent before.
            relay.advance(by: SessionLimits.sameSecond + .seconds(1))
            let kept = try await earlier.renew(at: relay, signing: SessionRig.now)
            #expect(kept.contains(.refused(error: 4)))
            try await relay.notify(stored(phone.user.account))
            #expect(relay.services.sent.isEmpty)
            // The group is still there.
            try await relay.notify(stored(phone.group, 11))
            guard case .show = try phone.open(await message(relay, 0), at: relay) else {
                Issue.record("shown")
                return
            }
            // The user comes back.
            try phone.device.watch(WatchedAccount(phone.user))
            #expect(try await phone.renew(at: relay) == [.added])
        }
    }
}
