import PushModel
import PushTesting
import Secp256k1Keys
import StatusPush
import Testing
import WireFormats

/// A push notification server that keeps to the text, and fails where a test tells it to.
struct ServerDouble {
    let key: Secp256k1KeyPair
    var random: SeededRandom
    var isDown = false
    /// What it says next of registrations, instead of judging them.
    var registrationFaults: [PushNotificationRegistrationResponse.Fault] = []
    /// What it says next of notifications, instead of judging them.
    var reportFaults: [PushNotificationReport.Fault] = []
    /// It says of every registration that it is of this version, and leaves out its token.
    var withholdsFrom: UInt64?
    /// It says of every registration that it is of this version.
    var claimedVersion: UInt64?
    /// It tells of so many installations beside those that it has.
    var madeUp = 0
    private(set) var records: [Record] = []
    /// What it has handed to push services.
    private(set) var pushes: [PushNotification] = []
    private(set) var queriesHeard = 0
    private(set) var requestBytes: [Secret] = []

    struct Record {
        let owner: PublicPoint
        var registration: PushNotificationRegistration
        let queryTopic: WakuTopic
        let topicKey: Secret
    }

    init(seed: UInt64) {
        random = SeededRandom(seed: seed)
        key = Draw.keyPair(&random)
    }

    var live: [Record] { records.filter { !$0.registration.unregister } }

    mutating func receive(_ message: WakuMessage, now: UnixTime) throws -> [WakuMessage] {
        guard !isDown else { return [] }
        if message.contentTopic == WakuTopic.partitioned(of: key.point).contentTopic
            || message.contentTopic == WakuTopic.personal(of: key.point).contentTopic
        {
            guard let metadata = EndMessages.open(message, with: key) else { return [] }
            switch metadata.type {
            case .registration: return try register(metadata, now)
            case .request: return try push(metadata, message, now)
            default: return []
            }
        }
        let record = live.first { $0.queryTopic.contentTopic == message.contentTopic }
        guard let record, let metadata = EndMessages.open(message, topicKey: record.topicKey),
            metadata.type == .query
        else { return [] }
        return try answer(metadata, now)
    }

    private mutating func register(_ metadata: MetadataMessage, _ now: UnixTime) throws -> [WakuMessage] {
        let shared = key.sharedX(with: metadata.signer)
        let plain = try StatusBox.open(metadata.payload, key: shared)
        let registration = try PushNotificationRegistration(reading: plain)
        var fault: PushNotificationRegistrationResponse.Fault?
        let place = records.firstIndex {
            $0.owner == metadata.signer && $0.registration.installationID == registration.installationID
        }
        if !registrationFaults.isEmpty {
            fault = registrationFaults.removeFirst()
        } else if registration.version == 0 {
            fault = .malformedMessage
        } else if let place, records[place].registration.version >= registration.version {
            fault = .versionMismatch
        } else if !registration.unregister,
            !Grant.holds(
                registration.grant, client: metadata.signer, server: key.point,
                accessToken: registration.accessToken)
                || registration.deviceToken.count == 0
        {
            fault = .malformedMessage
        }
        if fault == nil {
            let topic = WakuTopic.query(of: StatusHash.person(metadata.signer))
            let record = Record(
                owner: metadata.signer, registration: registration, queryTopic: topic,
                topicKey: TopicKey.derive(from: topic))
            if let place { records[place] = record } else { records.append(record) }
        }
        let response = PushNotificationRegistrationResponse(
            success: fault == nil, error: fault ?? .unknown,
            requestID: EndMessages.requestID(metadata.payload))
        return [
            EndMessages.seal(
                .registrationResponse, response.encoded(), signedBy: key,
                to: metadata.signer, on: WakuTopic.partitioned(of: metadata.signer), now, &random)
        ]
    }

    private mutating func answer(_ metadata: MetadataMessage, _ now: UnixTime) throws -> [WakuMessage] {
        queriesHeard += 1
        let query = try PushNotificationQuery(reading: metadata.payload)
        var info: [PushNotificationQueryInfo] = []
        for record in live {
            let hash = StatusHash.person(record.owner)
            guard query.publicKeys.contains(where: { $0 == hash }) else { continue }
            var one = PushNotificationQueryInfo()
            one.installationID = record.registration.installationID
            one.publicKey = hash
            one.grant = record.registration.grant
            one.version = withholdsFrom ?? claimedVersion ?? record.registration.version
            if withholdsFrom != nil {
                // Neither token nor list.
            } else if record.registration.allowFromContactsOnly {
                one.allowedKeyList = record.registration.allowedKeyList
            } else {
                one.accessToken = record.registration.accessToken
            }
            for number in 0..<madeUp {
                var other = one
                other.installationID = Secret("made up \(number)".utf8)
                info.append(other)
            }
            info.append(one)
        }
        guard !info.isEmpty else { return [] }
        let response = PushNotificationQueryResponse(
            info: info, messageID: metadata.messageID, success: true)
        return [
            EndMessages.seal(
                .queryResponse, response.encoded(), signedBy: key, to: metadata.signer,
                on: WakuTopic.partitioned(of: metadata.signer), now, &random)
        ]
    }

    private mutating func push(
        _ metadata: MetadataMessage, _ message: WakuMessage, _ now: UnixTime
    ) throws -> [WakuMessage] {
        let request = try PushNotificationRequest(reading: metadata.payload)
        guard !requestBytes.contains(where: { $0 == message.payload }) else { return [] }
        requestBytes.append(message.payload)
        let reports = request.requests.map { entry in
            var fault: PushNotificationReport.Fault?
            let record = live.first {
                StatusHash.person($0.owner) == entry.publicKey
                    && $0.registration.installationID == entry.installationID
            }
            if !reportFaults.isEmpty {
                fault = reportFaults.removeFirst()
            } else if let record {
                if !(record.registration.accessToken == entry.accessToken) { fault = .wrongToken }
            } else {
                fault = .notRegistered
            }
            if fault == nil { pushes.append(entry) }
            return PushNotificationReport(
                success: fault == nil, error: fault ?? .unknown, publicKey: entry.publicKey,
                installationID: entry.installationID)
        }
        let response = PushNotificationResponse(messageID: request.messageID, reports: reports)
        return [
            EndMessages.seal(
                .response, response.encoded(), signedBy: key, to: metadata.signer,
                on: WakuTopic.partitioned(of: metadata.signer), now, &random)
        ]
    }
}

/// A network with two servers, on which everybody hears what is published on the topics they follow.
struct StatusWorld {
    static let start = UnixTime(seconds: 1_800_000_000)

    var now = StatusWorld.start
    var random = SeededRandom(seed: 59)
    var servers = [ServerDouble(seed: 1), ServerDouble(seed: 2)]
    /// All that was published, as a store has it.
    private(set) var history: [WakuMessage] = []
    var events: [StatusInstallation.Event] = []
    var settled: [StatusDispatch] = []

    mutating func keyPair() -> Secp256k1KeyPair { Draw.keyPair(&random) }

    /// A phone with its token, registering at both servers.
    mutating func phone(_ key: Secp256k1KeyPair? = nil) throws -> StatusInstallation {
        var device = StatusInstallation(key: key ?? keyPair(), using: &random)
        device.use(try StatusDeviceToken.apns(Secret(String(repeating: "a5", count: 32).utf8), topic: "im"))
        try device.apply(StatusSettings())
        try device.use(servers: servers.map(\.key.point))
        device.switchOn()
        return device
    }

    /// A world with a phone that is registered at both servers.
    static func settled() throws -> (world: StatusWorld, phone: StatusInstallation) {
        var world = StatusWorld()
        var phone = try world.phone()
        try world.settle(&phone)
        return (world, phone)
    }

    mutating func sender(_ key: Secp256k1KeyPair? = nil) -> StatusOriginRoutine {
        var origin = StatusOriginRoutine(key: key ?? keyPair())
        origin.isSending = true
        return origin
    }

    mutating func publish(_ messages: [WakuMessage]) throws -> [WakuMessage] {
        history += messages
        var answers: [WakuMessage] = []
        for message in messages {
            for place in servers.indices { answers += try servers[place].receive(message, now: now) }
        }
        return answers
    }

    /// Does what is due at a phone, answers included, until nothing is due at this moment.
    mutating func settle(_ device: inout StatusInstallation) throws {
        for _ in 0..<20 {
            let messages = device.due(now: now, using: &random)
            if messages.isEmpty { return }
            for answer in try publish(messages) where device.topics.contains(answer.contentTopic) {
                if let event = device.receive(answer, now: now) { events.append(event) }
            }
        }
        Issue.record("the phone does not come to rest")
    }

    /// Does what is due at a sender, until nothing is due at this moment.
    mutating func settle(_ origin: inout StatusOriginRoutine) throws {
        for _ in 0..<20 {
            let work = origin.due(now: now, using: &random)
            settled += work.settled
            if work.messages.isEmpty, work.histories.isEmpty, origin.nextDeadline.map({ $0 > now }) ?? true {
                return
            }
            for topic in work.histories {
                for message in history where message.contentTopic == topic {
                    origin.receive(message, now: now)
                }
                origin.readHistory(of: topic)
            }
            for answer in try publish(work.messages) where origin.topics.contains(answer.contentTopic) {
                origin.receive(answer, now: now)
            }
        }
        Issue.record("the sender does not come to rest")
    }

    /// The same over some time: everything happens when it is due.
    mutating func settle(_ origin: inout StatusOriginRoutine, for span: Duration) throws {
        let end = now + span
        try settle(&origin)
        while let next = origin.nextDeadline, next <= end {
            now = max(now, next)
            try settle(&origin)
        }
        now = end
        try settle(&origin)
    }

    mutating func settle(_ device: inout StatusInstallation, for span: Duration) throws {
        let end = now + span
        try settle(&device)
        while let next = device.nextDeadline, next <= end {
            now = max(now, next)
            try settle(&device)
        }
        now = end
        try settle(&device)
    }

    /// A sender notifies, and does what is due: at this moment, or over some time.
    mutating func send(
        _ message: StatusNotification, to people: [PublicPoint], by origin: inout StatusOriginRoutine,
        for span: Duration? = nil
    ) throws {
        _ = try origin.notify(message, to: people, now: now)
        if let span { try settle(&origin, for: span) } else { try settle(&origin) }
    }

    mutating func forgetHistory() { history = [] }

    var pushes: [PushNotification] { servers.flatMap(\.pushes) }
}
