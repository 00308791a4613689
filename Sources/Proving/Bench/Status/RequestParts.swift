import Crypto
import CryptoExtras
import Primitives
import PushModel
import Secp256k1Keys
import StatusPush
import WireFormats

/// Requests as a node hands them on, the people that they are for, and the arithmetic of what becomes of
/// them, taken apart: as many bytes through each primitive alone.
final class RequestParts: Sendable {
    /// What one request has of each primitive.
    private struct Part {
        let payload: Secret
        /// The key that the payload was sealed with.
        let point: PublicPoint
        /// Of the application message; the payload's own is another of the same kind.
        let signature: [UInt8]
        let digest: [UInt8]
        /// Texts that are hashed with Keccak-256, on the way in and on the way out.
        let hashed: [Secret]
        /// Bodies that are encrypted and authenticated, in both directions.
        let sealed: [Secret]
    }

    let notifications: Int
    private let relay: StatusRelay
    private let identity: Secp256k1KeyPair
    private let world: World
    // Safety: written in the initialiser alone.
    nonisolated(unsafe) private var parts: [Part] = []
    private let names: [(person: Secret, installation: Secret, token: Secret)]

    private static let people = 64
    /// Requests that share commits: a sixteenth of what a relay takes in at once (`StatusLink`).
    private static let callers = 32
    private let instance: ConfiguredName
    private static let accessToken = Secret("a6712c96-9eb0-4df5-bc7c-041602a28ea7".utf8)

    /// - Parameters:
    ///   - count: requests, each of a sender of its own, as deployed senders make keys.
    ///   - notifications: of each, for one installation each; every other one has FCM.
    ///   - bytes: of the sealed message of each; deployed senders put none in.
    init(_ count: Int, notifications: Int, bytes: Int, world: World) async throws {
        guard let instance = ConfiguredName("status-load") else { throw BenchError(.badPlan) }
        self.instance = instance
        let registry = HeldRecords()
        identity = .generate(world)
        relay = StatusRelay(
            instance: instance, identity: identity, policy: StatusPolicy(fcmApp: instance),
            registry: registry, charge: { _ in nil }, world: world)
        (self.notifications, self.world) = (notifications, world)
        names = (0..<Self.people).map { number in
            let digits = Secret(Secret(world.randomBytes(32)).hexDigits.reveal { Array($0) })
            return (
                StatusHash.person(Secp256k1KeyPair.generate(world).point),
                Secret("installation-\(number)".utf8), digits
            )
        }
        for (number, name) in names.enumerated() {
            let record = Self.record(name, isApple: number.isMultiple(of: 2), relay.keys, world.now())
            _ = try await registry.apply([.put(record, if: .any)])
        }
        for number in 0..<count { parts.append(try await part(number, bytes)) }
    }

    private static func record(
        _ name: (person: Secret, installation: Secret, token: Secret), isApple: Bool,
        _ keys: StatusRecordNames,
        _ now: UnixTime
    ) -> Record {
        var registration = PushNotificationRegistration()
        registration.tokenType = isApple ? .apn : .firebase
        registration.deviceToken = name.token
        registration.apnTopic = isApple ? Secret("org.example.chat".utf8) : Secret([])
        registration.installationID = name.installation
        registration.accessToken = accessToken
        registration.enabled = true
        registration.version = 1
        return Record(
            key: keys.registration(of: name.person, installation: name.installation),
            owner: keys.owner(name.person), version: 1, touchedAt: now,
            body: StatusRow(person: name.person, registration).body)
    }

    private func part(_ number: Int, _ bytes: Int) async throws -> Part {
        let sender = Secp256k1KeyPair.generate(world)
        let entries = (0..<notifications).map { at in
            let name = names[(number * notifications + at) % Self.people]
            var entry = PushNotification()
            entry.accessToken = Self.accessToken
            entry.chatID = Secret(world.randomBytes(StatusLimits.hashBytes))
            entry.publicKey = name.person
            entry.installationID = name.installation
            entry.message = Secret(world.randomBytes(bytes))
            entry.type = .message
            entry.author = Secret(world.randomBytes(StatusLimits.hashBytes))
            return entry
        }
        let text = PushNotificationRequest(requests: entries, messageID: Secret(world.randomBytes(32)))
            .encoded()
        let wrapped = MetadataMessage.wrap(text, .request, by: sender)
        let payload = WakuPayload.sealAsymmetric(wrapped, to: identity.point, signer: sender, world)
        let answer = try await judge(payload).onlyMessage(by: identity)
        let (read, written) = (body(wrapped), body(answer))
        let digest = Keccak.hash256(text)
        guard let point = payload.reveal({ PublicPoint($0.prefix(PublicPoint.uncompressedBytes)) }) else {
            throw BenchError(.setUpRefused)
        }
        return Part(
            payload: payload, point: point, signature: sender.signRecoverable(digest), digest: digest,
            // The message's text, its id; the answer's text, its payload's body.
            hashed: [text, wrapped, answer, written], sealed: [read, written])
    }

    /// As many bytes as the body of a payload has.
    private func body(_ data: Secret) -> Secret {
        WakuPayload.body(
            data, signer: identity,
            padding: world.randomBytes(WakuPayload.padding(data, isSigned: true)))
    }

    /// The relay's whole way with all requests, payload, message, look-up, pushes, answer, payload, and its
    /// primitives.
    func dissection(_ name: String) -> Dissection {
        Dissection(
            name: name, whole: Contender("whole", batch: parts.count) { _ in try await self.judge() },
            primitives: Self.primitives.map { primitive in
                Contender(primitive.name, batch: parts.count) { _ in
                    for number in self.parts.indices { primitive.run(self, number) }
                }
            })
    }

    private func judge() async throws {
        for part in parts {
            let reply = try await judge(part.payload)
            _ = WakuPayload.sealAsymmetric(
                reply.onlyMessage(by: identity), to: reply.recipient, signer: identity, world)
        }
    }

    private func judge(_ payload: Secret) async throws -> StatusReply {
        try Self.reply(try await Self.verdict(payload, relay, identity), notifications)
    }

    private static func verdict(
        _ payload: Secret, _ relay: StatusRelay, _ identity: Secp256k1KeyPair
    ) async throws -> StatusRelay.Judged {
        let opened = try WakuPayload.openAsymmetric(payload, with: identity)
        guard let inbound = try StatusInbound(MetadataMessage(reading: opened.data)) else {
            throw BenchError(.setUpRefused)
        }
        return try await relay.receive(inbound)
    }

    private static func reply(_ verdict: StatusRelay.Judged, _ notifications: Int) throws -> StatusReply {
        guard verdict.pushes.count == notifications,
            case .withdrawingAfterFirstAttempt(_, _, let reply) = verdict.reply,
            let reply = reply(verdict.pushes.map { _ in .known(.accepted) })
        else { throw BenchError(.setUpRefused) }
        return reply
    }

    /// The way of a request on into the lanes. Its answer, which waits for what the push services say, is
    /// sealed at once: what it says costs nothing.
    func laneWay() -> LaneWay<Void, StatusError> {
        let (relay, identity, notifications, world) = (relay, identity, notifications, world)
        let payloads = parts.map(\.payload)
        return LaneWay(
            count: payloads.count, pushes: payloads.count * notifications, callers: Self.callers,
            app: instance, world: world,
            primitives: { at, _ in for primitive in Self.primitives { primitive.run(self, at) } },
            judge: { at in
                let verdict = try await Self.verdict(payloads[at], relay, identity)
                let reply = try Self.reply(verdict, notifications)
                _ = WakuPayload.sealAsymmetric(
                    reply.onlyMessage(by: identity), to: reply.recipient, signer: identity, world)
                return Verdict(pushes: verdict.pushes, changes: verdict.changes, reply: .now(()))
            })
    }

    /// Every primitive, and what a request has of it.
    private static let primitives: [(name: String, run: @Sendable (RequestParts, Int) -> Void)] = [
        ("ecdh", { own, at in for _ in 0..<2 { _ = own.identity.sharedX(with: own.parts[at].point) } }),
        ("key_pair", { own, _ in _ = Secp256k1KeyPair.generate(own.world) }),
        (
            "recovery",
            { own, at in _ = PublicPoint.recovered(from: own.parts[at].signature, of: own.parts[at].digest) }
        ),
        (
            "signature",
            { own, at in for _ in 0..<2 { _ = own.identity.signRecoverable(own.parts[at].digest) } }
        ),
        ("keccak_256", { own, at in for text in own.parts[at].hashed { _ = Keccak.hash256(text) } }),
        ("aes_128_ctr", { own, at in for text in own.parts[at].sealed { crypt(text) } }),
        ("hmac_sha256", { own, at in for text in own.parts[at].sealed { authenticate(text) } }),
        ("blake2b_256", { own, at in own.identify(at) })
    ]

    private static let cipherKey = SymmetricKey(size: .bits128)
    private static let macKey = Secret([UInt8](repeating: 7, count: 32))

    private static func crypt(_ text: Secret) {
        text.reveal { text in
            // A counter of 16 bytes is never refused.
            guard let nonce = try? AES._CTR.Nonce(nonceBytes: [UInt8](repeating: 1, count: 16)),
                (try? AES._CTR.encrypt(Array(text), using: cipherKey, nonce: nonce)) != nil
            else { preconditionFailure("AES-CTR takes a key and a counter of 16 bytes") }
        }
    }

    private static func authenticate(_ text: Secret) {
        text.reveal { _ = HMAC256.code(key: macKey, $0) }
    }

    /// Of each notification the name of its registration's record, and what names a repeat.
    private func identify(_ number: Int) {
        for at in 0..<notifications {
            let name = names[(number * notifications + at) % Self.people]
            name.person.reveal { person in
                name.token.reveal { token in
                    name.installation.reveal { _ = Blake2b.digest32([person, $0]) }
                    _ = Blake2b.digest32([token, person])
                }
            }
        }
    }
}

extension StatusReply {
    /// Of an answer that is short enough to be one.
    fileprivate func onlyMessage(by key: Secp256k1KeyPair) -> Secret { messages(by: key).first ?? Secret([]) }
}
