import Primitives
import PushModel
import PushTesting
import Testing
import WireFormats
import ZulipPush

/// A phone, a server of one's own and the relay exchange bytes in memory, in each profile.
@Suite("Zulip origin conversation", .timeLimit(.minutes(30)))
struct OriginConversationTests {
    private static let realm = "0ec3eedd-6233-4c5e-a000-b9942be3494e"
    private static let token = "fcmtoken"
    private static let now = UnixTime(seconds: 1_800_000_000)

    @Test(
        "A phone registers, is notified, dies at its push service, and comes back by itself",
        arguments: ZulipProfile.allCases)
    func wholeLife(_ profile: ZulipProfile) async throws {
        let relay = try await TestRelay(now: Self.now, pairs: [try Self.pair(3)])
        try await relay.running { relay in
            var server = try await Server(relay, profile)
            // The phone's form goes in, and one sealed box to the relay.
            var step = try server.register(at: Self.now)
            #expect(step.calls.count == 1 && server.users.targets.isEmpty)
            step = await server.carryOut(step, at: Self.now)
            #expect(server.users.targets.count == 1 && step.alerts.isEmpty)

            #expect(try await server.notify(message: 1) == 1)
            let sent = try #require(relay.services.sends.last)
            #expect(try server.opened(sent).contains(#""message_id":1"#))

            // The push service says that the token is dead: the relay says so, and the record goes, or its
            // token.
            relay.services.answer(
                Self.token, with: StubServices.Upstream(status: 404, word: "UNREGISTERED"))
            #expect(try await server.notify(message: 2) == 0)
            #expect(server.users.targets.isEmpty)
            #expect(try await server.notify(message: 3) == nil, "nobody is left to be notified")

            // The client sees that in its map, and registers again with the same names.
            relay.services.answer(Self.token, with: nil)
            relay.advance(by: .seconds(60))
            let later = Self.now + .seconds(60)
            step = try server.register(at: later)
            _ = await server.carryOut(step, at: later)
            #expect(server.users.targets.count == 1)
            #expect(try await server.notify(message: 4) == 1)
        }
    }

    @Test("A phone that was built for another relay is told so by its entry in the map")
    func anotherRelaysApp() async throws {
        let relay = try await TestRelay(now: Self.now, pairs: [try Self.pair(4)])
        try await relay.running { relay in
            var server = try await Server(relay, .zap)
            // The app was built for another relay: its key is none of this one's.
            let step = await server.carryOut(try server.register(at: Self.now), at: Self.now)
            #expect(
                step.events == [.accountRemoved(server.account, code: "INVALID_BOUNCER_PUBLIC_KEY")])
            #expect(server.users.accounts.isEmpty && server.users.queue.isEmpty)
            #expect(
                String(decoding: server.users.state(.zap), as: UTF8.self)
                    == #"{"7":{"status":"failed","error_code":"INVALID_BOUNCER_PUBLIC_KEY"}}"#)
        }
    }

    @Test("The daily job takes away what died long ago, page by page, and nothing else")
    func staleList() async throws {
        let relay = try await TestRelay(now: Self.now, pairs: [try Self.pair(3)])
        try await relay.running { relay in
            var server = try await Server(relay, .zap)
            _ = await server.carryOut(try server.register(at: Self.now), at: Self.now)
            #expect(try await server.runStaleList() == [])
            #expect(server.users.targets.count == 1)
            // Somebody else's notification found out; this server never heard.
            relay.services.answer(
                Self.token, with: StubServices.Upstream(status: 404, word: "UNREGISTERED"))
            let before = server.users
            #expect(try await server.notify(message: 1) == 0)
            server.users = before
            relay.advance(by: .seconds(15 * 86_400))
            server.now = Self.now + .seconds(15 * 86_400)
            #expect(try await server.runStaleList().count == 1)
            #expect(server.users.accounts.isEmpty)
        }
    }

    fileprivate static func pair(_ byte: UInt8) throws -> X25519KeyPair {
        try X25519KeyPair(privateKey: Secret([UInt8](repeating: byte, count: 32)))
    }

    /// A server with one user, who has one phone.
    private struct Server {
        let account: Int64 = 7
        var users = ZulipRegistrations(realm: OriginConversationTests.realm)
        var now = OriginConversationTests.now
        private let origin: ZulipOrigin
        private let relay: TestRelay
        private let profile: ZulipProfile
        private let phone: X25519KeyPair
        private let pushKey: PushKey
        private var device: Int64?
        private var random = SeededRandom(seed: 9)

        init(_ relay: TestRelay, _ profile: ZulipProfile) async throws {
            self.relay = relay
            self.profile = profile
            (origin, _) = ZulipOrigin.invent(version: "12.0", using: &random)
            phone = try OriginConversationTests.pair(5)
            pushKey = try PushKey(
                base64: Secret(Base64.encode([0x31] + [UInt8](repeating: 6, count: 32))))
            let signUp = await relay.ask(origin.signUp(hostname: "chat.example.org", mail: "a@example.org"))
            try #require(signUp.status == 200)
            let report = ZulipRealmReport(
                id: 1, uuid: OriginConversationTests.realm, ownerSecret: "s", host: "chat.example.org",
                url: "https://chat.example.org", name: "Chat", createdAt: 1)
            try #require(await relay.ask(origin.analytics(realms: [report])).status == 200)
        }

        /// The phone's call, with a fresh blob.
        mutating func register(at now: UnixTime) throws -> ZulipStep {
            self.now = now
            if profile == .v12, device == nil {
                device = try users.receive(.addDevice, now: now, using: &random).deviceID
            }
            let token = Secret(OriginConversationTests.token.utf8)
            let plain = RegistrationPlaintext(kind: .fcm, token: token, timestamp: now.seconds, appID: nil)
            let bouncer = try OriginConversationTests.pair(3).publicKey
            let ephemeral = try X25519KeyPair(privateKey: Secret(SHA256.hash(Array("\(now.seconds)".utf8))))
            let blob = try RegistrationBox.seal(plain, to: bouncer, ephemeral: ephemeral)
            var fields = [
                ("encrypted_push_registration", blob), ("token_kind", Secret("fcm".utf8)),
                ("bouncer_public_key", Secret(Base64.encode(bouncer)))
            ]
            switch profile {
            case .v12:
                fields += [
                    ("device_id", Secret("\(device ?? 0)".utf8)), ("push_key_id", Secret("9".utf8)),
                    ("push_key", pushKey.base64),
                    ("token_id", Secret(TokenID(token: token).text.utf8))
                ]
            case .v11:
                fields += [("push_account_id", Secret("\(account)".utf8)), ("push_key", pushKey.base64)]
            case .zap:
                fields += [
                    ("push_account_id", Secret("\(account)".utf8)),
                    ("push_public_key", Secret(Base64.encode(phone.publicKey)))
                ]
            }
            let form = Form(fields.map { (name: $0.0, value: $0.1.reveal { Array($0) }) })
            let request = try OriginRequest(.register, body: Secret(form.encoded()))
            return try users.receive(request.call, now: now, using: &random)
        }

        /// Makes a step's calls, and takes the answers.
        mutating func carryOut(_ step: ZulipStep, at now: UnixTime) async -> ZulipStep {
            var seen = ZulipStep()
            for call in step.calls {
                let answer = await ask(call.call(by: origin))
                seen = users.settle(call.id, answer, now: now, using: &random)
            }
            return seen
        }

        /// How many devices were reached; `nil` where there is nobody.
        mutating func notify(message: Int64) async throws -> Int64? {
            let body = ZulipMessage(
                id: message, time: 1, content: "hello", senderID: 8, senderName: "Iago",
                senderAvatarURL: "", recipient: .direct(userIDs: [7, 8]))
            let calls = try origin.notify(
                ZulipNotification(
                    realmURL: "https://chat.example.org", realmName: nil, userID: 7, body: .message(body)),
                to: users.targets, realm: users.realm, using: &random)
            guard let call = calls.first else { return nil }
            guard case .sent(let answer) = ZulipOrigin.notifyOutcome(await ask(call), profile: profile) else {
                Issue.record("the relay took no notification")
                return nil
            }
            _ = users.end(devices: answer.deadDeviceIDs, realm: users.realm, askedAt: now)
            _ = users.end(tokens: answer.deadTokenIDs, realm: users.realm, askedAt: now)
            return answer.apple + answer.android
        }

        mutating func runStaleList() async throws -> [Int64] {
            var run = StaleListRun(realm: users.realm)
            var ids: [Int64] = []
            while run.isUnderWay {
                let step = run.take(await ask(run.call(by: origin)), now: now, using: &random)
                #expect(step.fault == nil)
                _ = users.end(devices: step.ids, realm: run.realm, askedAt: now)
                ids += step.ids
            }
            return ids
        }

        /// What the push service got, as the phone reads it.
        func opened(_ sent: JSONValue) throws -> String {
            let data = try #require(sent["body"]?["message"]?["data"])
            let plain: Secret
            if let text = data["encrypted_content"]?.string {
                #expect(data["push_account_id"]?.string == "\(account)")
                plain = try AccountBox.open(Secret(text.utf8), with: phone)
            } else {
                plain = try ContentBox.open(
                    Secret(try #require(data["encrypted_data"]?.string).utf8), with: pushKey)
            }
            return plain.reveal { String(decoding: $0, as: UTF8.self) }
        }

        private func ask(_ call: HTTPCall) async -> CallAnswer {
            let parts = call.url.split(separator: "?", maxSplits: 1).map(String.init)
            let authorization = call.headers.first { $0.name == "Authorization" }?.value
            let answer = await relay.ask(
                call.method, parts[0], query: parts.count > 1 ? parts[1] : nil,
                authorization: authorization?.reveal { String(decoding: $0, as: UTF8.self) },
                body: call.body.reveal { Array($0) })
            return CallAnswer(status: answer.status, body: Secret(answer.json.serialized()))
        }
    }
}
