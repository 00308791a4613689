import Primitives
import PushModel
import Secp256k1Keys
import StatusPush
import WireFormats

/// What phone and sender of Status read: contact codes, servers' answers, pushes, what they have kept.
let statusEndTargets: [String: Body] = [
    "status-contact-code": { bytes in
        let received = Secret(copying: bytes)
        _ = try? Wrapping.unwrap(received)
        judge(EndMessages.contactCode(received))
        // And as what the owner of a key has signed, bare and wrapped.
        let bare = MetadataMessage.wrap(received, .contactCodeAdvertisement, by: statusClient)
        let wrapped = Wrapping.wrap(bare, installationID: Secret("other".utf8))
        let (first, second) = (EndMessages.contactCode(bare), EndMessages.contactCode(wrapped))
        precondition((first == nil) == (second == nil), "one code, however it is wrapped")
        judge(first)
        judge(second)
        if let second { precondition(second.installationID.map { $0 == Secret("other".utf8) } ?? false) }
    },
    "status-device-answer": { bytes in
        // As what a server has signed, and sealed to the phone.
        guard let first = bytes.first else { return }
        var device = first & 1 == 0 ? waitingPhone : leavingPhone
        let answer = UnsafeRawBufferPointer(rebasing: bytes.dropFirst())
        let type: MessageType = first & 2 == 0 ? .registrationResponse : MessageType(rawValue: Int32(first))
        let before = KeptRows.write(device.rows)
        let signer = first & 4 == 0 ? statusServer : statusClient
        let message = sealed(type, Secret(copying: answer), by: signer, to: device.key.point)
        guard let event = device.receive(message, now: noon) else {
            precondition(KeptRows.write(device.rows) == before, "nothing has changed")
            return
        }
        precondition(signer.point == statusServer.point && type == .registrationResponse)
        if case .otherInstallation = event { preconditionFailure("that stands in a contact code") }
        keeps(device)
    },
    "status-origin-answer": { bytes in
        // As the answer to a query, and as the reports of a request, by the server and by somebody else.
        guard let first = bytes.first else { return }
        let answer = Secret(copying: UnsafeRawBufferPointer(rebasing: bytes.dropFirst()))
        let sender = first & 1 == 0 ? asking : requesting
        let signer = first & 2 == 0 ? statusServer : statusClient
        let type: MessageType = first & 1 == 0 ? .queryResponse : .response
        var origin = sender.origin
        let isTaken = origin.receive(sealed(type, answer, by: signer, to: sender.asked.signer), now: noon)
        precondition(!isTaken || first & 1 == 0 || signer.point == statusServer.point)
        settle(&origin)
    },
    "status-delivered": { bytes in
        if let data = try? DeliveredData(delivered: Secret(copying: bytes)) { judge(data) }
        // And as a message in either form of gorush's data, as each service delivers it.
        let message = Hex.encode(Array(bytes.prefix(1_024)))
        let hash = Hex.encode(StatusHash.person(waitingPhone.key.point).reveal { Array($0) })
        let deployed = #""encryptedMessage":"0x\#(message)","chatId":"0x\#(hash)","publicKey":"0x\#(hash)""#
        let id = waitingPhone.installationID
        let seed = #""message":"0x\#(message)","chat_id":"0x\#(hash)","installation_ids":["\#(id)"]"#
        for form in [deployed, seed] {
            for json in [#"{"aps":{"alert":"text"},\#(form)}"#, #"{"data":{\#(form)}}"#] {
                guard let data = try? DeliveredData(delivered: Secret(json.utf8)) else {
                    preconditionFailure("both forms are read")
                }
                guard case .fetch(let found) = judge(data) else {
                    preconditionFailure("it is for this phone, and nobody has sealed it")
                }
                precondition(found.installationID == id && found.author == nil && found.id == nil)
            }
        }
    },
    "status-note": { bytes in
        let plain = Secret(copying: bytes)
        var random = SystemRandomNumberGenerator()
        precondition(MessagePreview.open(plain, with: waitingPhone.key) == nil, "nobody has sealed it")
        let note = MessagePreview.seal(
            plain, messageID: Secret([1]), author: statusServer, to: waitingPhone.key.point, using: &random)
        guard let note else { return }
        let opened = MessagePreview.open(note, with: waitingPhone.key)
        precondition(opened.map { $0.content == plain && $0.author == statusServer.point } ?? false)
    },
    "status-kept": { bytes in
        guard let first = bytes.first else { return }
        let kept = Secret(copying: UnsafeRawBufferPointer(rebasing: bytes.dropFirst()))
        if first & 1 == 0 {
            if let device = try? StatusDevice(keptSetup, keeping: kept) { keeps(device) }
            // Whoever writes the head anew writes any rows.
            guard let rows = KeptRows.read(kept, atMost: StatusLimits.deviceRowBytes) else { return }
            if let device = try? StatusInstallation(rows: rows, key: statusClient) { keeps(device) }
            guard let row = rows.first, let inbox = try? StatusInbox(row: row) else { return }
            guard let again = try? StatusInbox(row: inbox.row) else {
                preconditionFailure("we can read what we write")
            }
            precondition(KeptRows.write([again.row]) == KeptRows.write([inbox.row]))
        } else {
            if let origin = try? StatusOrigin(key: statusClient.secret, keeping: kept) {
                let again = try? StatusOrigin(key: statusClient.secret, keeping: origin.kept)
                precondition(again.map { $0.kept == origin.kept } ?? false, "we can read what we write")
            }
            // Whoever writes the head anew writes any rows.
            guard let rows = KeptRows.read(kept, atMost: StatusLimits.originRowBytes),
                let sender = try? StatusOriginRoutine(rows: rows, key: statusClient)
            else { return }
            let written = sender.rows
            guard let again = try? StatusOriginRoutine(rows: written, key: statusClient) else {
                preconditionFailure("we can read what we write")
            }
            precondition(KeptRows.write(again.rows) == KeptRows.write(written) && again.nextDeadline == nil)
        }
    }
]

private let noon = UnixTime(seconds: 1_700_000_000)

// MARK: one phone

/// It has told its server of itself, and waits.
private let waitingPhone: StatusInstallation = {
    var (random, device) = (SystemRandomNumberGenerator(), emptyPhone())
    _ = device.due(now: noon, using: &random)
    return device
}()

/// It has told its server to forget it, and waits.
private let leavingPhone: StatusInstallation = {
    var (random, device) = (SystemRandomNumberGenerator(), waitingPhone)
    device.switchOff()
    _ = device.due(now: noon, using: &random)
    return device
}()

private func emptyPhone() -> StatusInstallation {
    var random = SystemRandomNumberGenerator()
    var device = StatusInstallation(key: statusPair(4), using: &random)
    do throws(StatusError) {
        device.use(try StatusDeviceToken.fcm(Secret("token".utf8)))
        try device.apply(StatusSettings())
        try device.use(servers: [statusServer.point])
    } catch { preconditionFailure("these are in order") }
    device.switchOn()
    return device
}

private func sealed(
    _ type: MessageType, _ payload: Secret, by signer: Secp256k1KeyPair, to reader: PublicPoint
) -> WakuMessage {
    var random = SystemRandomNumberGenerator()
    return EndMessages.seal(
        type, payload, signedBy: signer, to: reader, on: .partitioned(of: reader), noon, &random)
}

private let keptSetup: StatusSetup = {
    do { return try StatusSetup(key: statusClient.secret, bundleID: "im", servers: []) } catch {
        preconditionFailure("these are in order")
    }
}()

private func keeps(_ device: StatusDevice) {
    let written = device.kept
    guard let again = try? StatusDevice(keptSetup, keeping: written) else {
        preconditionFailure("we can read what we write")
    }
    precondition(again.kept == written && again.servers == device.servers)
}

private func keeps(_ device: StatusInstallation) {
    guard let again = try? StatusInstallation(rows: device.rows, key: device.key) else {
        preconditionFailure("we can read what we write")
    }
    precondition(KeptRows.write(again.rows) == KeptRows.write(device.rows))
    precondition(again.servers == device.servers && again.version == device.version)
}

@discardableResult
private func judge(_ data: DeliveredData) -> StatusInbox.Action {
    var random = SystemRandomNumberGenerator()
    let action = StatusInbox(using: &random).open(data, accounts: [waitingPhone])
    switch action {
    case .show(let message): precondition(message.content != nil && message.author != nil)
    case .fetch(let message): precondition(message.content == nil && message.author == nil)
    case .ignore(let reason): precondition(reason == .foreignAccount, "nothing was remembered")
    }
    return action
}

private func judge(_ code: EndMessages.ContactCode?) {
    guard let code else { return }
    let written = code.advertisement.encoded()
    let again = try? ContactCodeAdvertisement(reading: written)
    precondition(again.map { $0.encoded() == written } ?? false, "what we write we can read")
}

// MARK: one sender

/// It has asked servers about the phone's owner; the query as they read it.
private let asking: (origin: StatusOriginRoutine, asked: MetadataMessage) = {
    var (random, origin) = (SystemRandomNumberGenerator(), StatusOriginRoutine(key: statusClient))
    origin.isSending = true
    let (person, note) = (waitingPhone.key.point, StatusNotification(messageID: Secret([9]), .direct))
    guard (try? origin.notify(note, to: [person], now: noon)) != nil else {
        preconditionFailure("there is room")
    }
    for topic in origin.due(now: noon, using: &random).histories { origin.readHistory(of: topic) }
    let topic = WakuTopic.query(of: StatusHash.person(person))
    let key = TopicKey.derive(from: topic)
    let messages = origin.due(now: noon, using: &random).messages
    guard let asked = messages.lazy.compactMap({ EndMessages.open($0, topicKey: key) }).first else {
        preconditionFailure("servers are asked on a topic of the person")
    }
    return (origin, asked)
}()

/// It has been told of an installation, and has asked for a push; the request as the server reads it.
private let requesting: (origin: StatusOriginRoutine, asked: MetadataMessage) = {
    var (random, origin) = (SystemRandomNumberGenerator(), asking.origin)
    let owner = waitingPhone.key
    var info = PushNotificationQueryInfo()
    info.accessToken = Secret("a6712c96-9eb0-4df5-bc7c-041602a28ea7".utf8)
    info.installationID = Secret(waitingPhone.installationID.utf8)
    info.publicKey = StatusHash.person(owner.point)
    info.grant = Grant.sign(by: owner, server: statusServer.point, accessToken: info.accessToken)
    info.version = 1
    let response = PushNotificationQueryResponse(
        info: [info], messageID: asking.asked.messageID, success: true)
    let answer = sealed(
        .queryResponse, response.encoded(), by: statusServer, to: asking.asked.signer)
    precondition(origin.receive(answer, now: noon), "that is what was asked for")
    let messages = origin.due(now: noon + StatusLimits.answerWait, using: &random).messages
    guard let asked = messages.lazy.compactMap({ EndMessages.open($0, with: statusServer) }).first else {
        preconditionFailure("the server is asked for a push")
    }
    return (origin, asked)
}()

/// Nobody answers any more: what is under way ends once.
private func settle(_ origin: inout StatusOriginRoutine) {
    var (random, now, settled) = (SystemRandomNumberGenerator(), noon + StatusLimits.answerWait, 0)
    for _ in 0..<200 {
        settled += origin.due(now: now, using: &random).settled.count
        guard let next = origin.nextDeadline else { break }
        now = max(now, next)
    }
    precondition(settled == 1 && origin.nextDeadline == nil)
}
