import Foundation
import PushModel
import Secp256k1Keys
import Simulators
import StatusPush
import WireFormats

/// One person with one installation, and who asks for it and notifies it: messages made by hand, with a canary
/// in every field that has one.
struct StatusCast {
    /// Fields of registration and request that a push service gets, by the names of their canaries.
    static let pushed: Set<String> = [
        "device token", "hash of the registered key", "installation id", "chat id", "message"
    ]

    let server: PublicPoint
    let person = Secp256k1KeyPair.generate(.live)
    /// It asks for the access token.
    let asker = Secp256k1KeyPair.generate(.live)
    /// The keys that requests were signed with.
    private(set) var senders: [Secp256k1KeyPair] = []
    let token: String
    private(set) var canaries: [Canary] = []
    private var form = PushNotificationRegistration()

    /// - Parameter token: instead of one of the service's usual length.
    init(at server: PublicPoint, _ service: DeviceToken.Service, token: String? = nil) throws {
        self.server = server
        let hex = Hex.encode(World.live.randomBytes(32))
        self.token = token ?? (service == .apns ? hex : "c\(hex.prefix(20)):APA91b\(hex)\(hex)")
        canaries.append(Canary("device token", self.token))
        let (installation, access) = (UUID().uuidString.lowercased(), UUID().uuidString.lowercased())
        canaries += try Canary.hex("installation id", installation)
        canaries += try Canary.hex("access token", access)
        form.tokenType = service == .apns ? .apn : .firebase
        form.deviceToken = Secret(self.token.utf8)
        form.installationID = Secret(installation.utf8)
        form.accessToken = Secret(access.utf8)
        form.enabled = true
        form.version = 1
        form.apnTopic = Secret(service == .apns ? Array(StatusMember.topic.utf8) : [])
        form.grant = Grant.sign(by: person, server: server, accessToken: form.accessToken)
        canaries.append(Canary("grant", form.grant.bytes))
        form.allowedKeyList = [plant("entry of the allowed keys", 64), plant("entry of the allowed keys", 64)]
        form.blockedChatList = [plant("blocked chat", StatusLimits.hashBytes)]
        form.mutedChatList = [plant("muted chat", StatusLimits.hashBytes)]
        form.allowedMentionsChatList = [plant("chat with mentions", StatusLimits.hashBytes)]
        canaries.append(Canary("hash of the registered key", hash.bytes))
        plant(person.point, "registered key")
        for topic in topics {
            canaries.append(Canary("key of a topic", TopicKey.derive(from: topic).bytes))
        }
    }

    private var hash: Secret { StatusHash.person(person.point) }
    /// Where servers are asked about the person.
    private var topics: [WakuTopic] { [.query(of: hash), .prefixedQuery(of: hash)] }

    private mutating func plant(_ name: String, _ count: Int) -> Secret {
        let bytes = World.live.randomBytes(count)
        canaries.append(Canary(name, bytes))
        return Secret(bytes)
    }

    private mutating func plant(_ point: PublicPoint, _ name: String) {
        let x = Array(point.compressed.dropFirst())
        canaries += [Canary(name, x), Canary(name + " as libsecp256k1 has it", x.reversed())]
    }

    // MARK: Messages

    /// Wraps, signs and seals; what of it is new is planted.
    private mutating func message(
        _ name: String, _ payload: Secret, _ type: MessageType, by key: Secp256k1KeyPair,
        asking topic: WakuTopic? = nil
    ) -> SimulatedWakuMessage {
        let wrapped = MetadataMessage.wrap(payload, type, by: key)
        // A tag and a length stand before it.
        let signature = Array(wrapped.bytes.dropFirst(2).prefix(StatusLimits.signatureBytes))
        canaries.append(Canary("signature of the \(name)", signature))
        let id = wrapped.reveal { MetadataMessage.messageID(of: $0, by: key.point) }
        canaries.append(Canary("id of the \(name)", id.bytes))
        let sealed =
            topic.map {
                WakuPayload.sealSymmetric(wrapped, key: TopicKey.derive(from: $0), signer: key, .live)
            } ?? WakuPayload.sealAsymmetric(wrapped, to: server, signer: key, .live)
        canaries.append(Canary("sealed \(name)", Array(sealed.bytes.dropFirst(100).prefix(60))))
        return Self.carried(sealed.bytes, on: topic ?? .partitioned(of: server))
    }

    private static func carried(
        _ payload: [UInt8], on topic: WakuTopic, meta: [UInt8] = []
    ) -> SimulatedWakuMessage {
        SimulatedWakuMessage(
            payload: payload, contentTopic: topic.contentTopic,
            timestamp: World.live.now().milliseconds * 1_000_000, meta: meta)
    }

    mutating func registration() -> SimulatedWakuMessage {
        let box = StatusBox.seal(form.encoded(), from: person, to: server, .live)
        canaries.append(Canary("box of the registration", Array(box.bytes.dropFirst(12).prefix(60))))
        canaries.append(Canary("id in the registration's answer", EndMessages.requestID(box).bytes))
        return message("registration", box, .registration, by: person)
    }

    /// The same once more, of the next version.
    mutating func renewal() -> SimulatedWakuMessage {
        form.version += 1
        return registration()
    }

    /// It names somebody besides whom nobody knows.
    mutating func query() -> SimulatedWakuMessage {
        let stranger = plant("hash of a stranger's key", StatusLimits.hashBytes)
        plant(asker.point, "key of who asks")
        let query = PushNotificationQuery(publicKeys: [hash, stranger])
        return message("query", query.encoded(), .query, by: asker, asking: topics[0])
    }

    /// Another one each time.
    mutating func request() -> SimulatedWakuMessage {
        let sender = Secp256k1KeyPair.generate(.live)
        senders.append(sender)
        plant(sender.point, "key of who notifies")
        var entry = PushNotification()
        entry.accessToken = form.accessToken
        entry.installationID = form.installationID
        entry.publicKey = hash
        entry.type = .message
        entry.chatID = plant("chat id", StatusLimits.hashBytes)
        entry.author = plant("author", StatusLimits.hashBytes)
        entry.message = plant("message", 120)
        var other = entry
        other.publicKey = plant("hash of a stranger's key", StatusLimits.hashBytes)
        let request = PushNotificationRequest(
            requests: [entry, other], messageID: plant("id of the chat's message", 32))
        return message("request", request.encoded(), .request, by: sender)
    }

    // MARK: Garbage

    /// What is nothing, with a word in every place, on every topic that is followed for this person or server.
    ///
    /// - Parameter isInClear: the word stands also where the network can read it.
    func garbage(_ word: String, isInClear: Bool = true) -> [SimulatedWakuMessage] {
        let other = Secp256k1KeyPair.generate(.live)
        let long = Secret(Array(repeating: word, count: 12).joined(separator: " ").utf8)
        let box = StatusBox.seal(strange(word).encoded(), from: other, to: server, .live)
        var entry = PushNotification()
        entry.accessToken = Secret(word.utf8)
        (entry.installationID, entry.publicKey, entry.chatID) = (long, long, long)
        (entry.message, entry.author, entry.type) = (long, long, .message)
        let inside =
            [
                long, Wrapping.wrap(long, installationID: long),
                MetadataMessage.wrap(box, .registration, by: other),
                MetadataMessage.wrap(
                    PushNotificationQuery(publicKeys: [long, long]).encoded(), .query, by: other),
                MetadataMessage.wrap(
                    PushNotificationRequest(requests: [entry], messageID: long).encoded(), .request,
                    by: other)
            ]
            + [MessageType.registration, .query, .request, .response, .contactCodeAdvertisement].map {
                MetadataMessage.wrap(long, $0, by: other)
            }
        let meta = isInClear ? Array(word.utf8) : []
        let places = [WakuTopic.partitioned(of: server), .personal(of: server)] + topics
        let followed = places.flatMap { topic in
            let key = TopicKey.derive(from: topic)
            let sealed = inside.flatMap {
                [
                    WakuPayload.sealAsymmetric($0, to: server, signer: other, .live).bytes,
                    WakuPayload.sealSymmetric($0, key: key, signer: nil, .live).bytes
                ]
            }
            return ((isInClear ? [long.bytes] : []) + sealed + sealed.map { Array($0.dropLast(9)) }).map {
                Self.carried($0, on: topic, meta: meta)
            }
        }
        guard isInClear else { return followed }
        let foreign = SimulatedWakuMessage(
            payload: long.bytes, contentTopic: "/\(word)/1/\(word)/proto",
            timestamp: World.live.now().milliseconds * 1_000_000)
        return followed + [foreign]
    }

    /// A registration that opens and is refused.
    private func strange(_ word: String) -> PushNotificationRegistration {
        var form = self.form
        form.tokenType = .init(rawValue: 77)
        (form.deviceToken, form.installationID) = (Secret(word.utf8), Secret(word.utf8))
        (form.accessToken, form.apnTopic, form.grant) =
            (Secret(word.utf8), Secret(word.utf8), Secret(word.utf8))
        form.allowedKeyList = [Secret(word.utf8)]
        return form
    }

    /// Answers of a gateway, with a word in every place, and tokens.
    static func gatewayAnswers(_ word: String) -> [GorushDouble.Answer] {
        [
            .other(
                200,
                #"{"counts":1,"\#(word)":"\#(word)","logs":[{"token":"\#(word)","error":"\#(word)"}]}"#),
            .other(500, word), .other(200, #"{"\#(word)":"#), .failing([0], byToken: true), .taken
        ]
    }
}

extension Secret {
    /// A copy, for looking for it.
    fileprivate var bytes: [UInt8] { reveal { Array($0) } }
}
