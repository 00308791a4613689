import Primitives
import PushModel
import Secp256k1Keys
import StatusPush
import WireFormats

/// What the relay of Status reads: payloads, messages of every type, grants, topics, its own rows.
let statusTargets: [String: Body] = [
    "status-protobuf": { bytes in
        var reader = ProtobufReader(bytes, fieldLimit: 256)
        var (fields, writer) = ([(UInt32, Secret)](), ProtobufWriter())
        do throws(FormatError) {
            while let field = try reader.next() {
                guard let value = field.bytes else { continue }
                precondition(value.isEmpty || isWithin(value, bytes), "lent where it stands")
                fields.append((field.number, Secret(copying: value)))
                writer.element(field.number, value)
            }
        } catch { return }
        precondition(reader.position == bytes.count && fields.count <= 256)
        // What was lent, written anew, is lent again.
        withBytes(writer.bytes) { written in
            var again = ProtobufReader(written, fieldLimit: 256)
            for (number, value) in fields {
                guard let field = try? again.next(), field.number == number,
                    let read = field.bytes.map({ Secret(copying: $0) }), read == value
                else { preconditionFailure("what we write we can read") }
            }
            precondition(again.position == written.count)
        }
    },
    "status-metadata": { bytes in
        if let message = try? MetadataMessage(reading: bytes) { judge(message) }
        guard let first = bytes.first else { return }
        // And as what somebody signed.
        let type = MessageType(rawValue: Int32(first % 32))
        let payload = Secret(copying: UnsafeRawBufferPointer(rebasing: bytes.dropFirst()))
        let signed = MetadataMessage.wrap(payload, type, by: statusClient)
        guard let message = try? MetadataMessage(reading: signed) else {
            preconditionFailure("what a client signs is read")
        }
        precondition(message.signer == statusClient.point)
        precondition(message.type == type && message.payload == payload)
        judge(message)
    },
    "status-registration": { bytes in
        guard let registration = try? PushNotificationRegistration(reading: bytes) else { return }
        keepsForm(registration) { try PushNotificationRegistration(reading: $0) }
        let row = StatusRow(person: StatusHash.person(statusClient.point), registration)
        judge(row.body)
        // As it travels.
        let box = StatusBox.seal(Secret(copying: bytes), key: boxKey, nonce: boxNonce)
        let serversKey = statusServer.sharedX(with: statusClient.point)
        guard let opened = try? StatusBox.open(box, key: serversKey) else {
            preconditionFailure("what a client has sealed is opened")
        }
        precondition(opened == Secret(copying: bytes))
    },
    "status-box": { bytes in
        precondition((try? StatusBox.open(Secret(copying: bytes), key: boxKey)) == nil, "nobody sealed it")
    },
    "status-query": { bytes in
        guard let query = try? PushNotificationQuery(reading: bytes) else { return }
        keepsForm(query) { try PushNotificationQuery(reading: $0) }
    },
    "status-request": { bytes in
        guard let request = try? PushNotificationRequest(reading: bytes) else { return }
        precondition(request.requests.count <= StatusLimits.requestFields)
        keepsForm(request) { try PushNotificationRequest(reading: $0) }
    },
    "status-response": { bytes in
        guard let first = bytes.first else { return }
        let bytes = UnsafeRawBufferPointer(rebasing: bytes.dropFirst())
        switch first % 4 {
        case 0:
            guard let answer = try? PushNotificationRegistrationResponse(reading: bytes) else { return }
            keepsForm(answer) { try PushNotificationRegistrationResponse(reading: $0) }
        case 1:
            guard let answer = try? PushNotificationQueryResponse(reading: bytes) else { return }
            keepsForm(answer) { try PushNotificationQueryResponse(reading: $0) }
        case 2:
            guard let answer = try? PushNotificationResponse(reading: bytes) else { return }
            keepsForm(answer) { try PushNotificationResponse(reading: $0) }
        default:
            guard let code = try? ContactCodeAdvertisement(reading: bytes) else { return }
            keepsForm(code) { try ContactCodeAdvertisement(reading: $0) }
        }
    },
    "status-payload": { bytes in
        // As received; then as a body that somebody sealed, to a key and to a topic.
        let received = Secret(copying: bytes)
        precondition((try? WakuPayload.openSymmetric(received, key: boxKey)) == nil, "nobody sealed it")
        _ = try? WakuPayload.openAsymmetric(received, with: statusServer)
        let iv = [UInt8](repeating: 5, count: 16)
        let toKey = WakuPayload.sealAsymmetric(
            received, to: statusServer.point, ephemeral: statusClient, iv: iv)
        let toTopic = WakuPayload.sealSymmetric(received, key: boxKey, nonce: boxNonce)
        let first = try? WakuPayload.openAsymmetric(toKey, with: statusServer)
        let second = try? WakuPayload.openSymmetric(toTopic, key: boxKey)
        precondition((first == nil) == (second == nil), "one body, however it is sealed")
        guard let first, let second else { return }
        precondition(first.data == second.data && first.signer == second.signer)
        precondition(first.data.count < bytes.count && (first.signer == nil || bytes.count > 65))
        // Its data, in a body of ours.
        let padding = [UInt8](repeating: 0, count: WakuPayload.padding(first.data, isSigned: true))
        let body = WakuPayload.body(first.data, signer: statusClient, padding: padding)
        precondition(body.count % StatusLimits.paddingBytes == 0)
        let again = try? WakuPayload.openSymmetric(
            WakuPayload.sealSymmetric(body, key: boxKey, nonce: boxNonce), key: boxKey)
        precondition(again.map { $0.data == first.data && $0.signer == statusClient.point } ?? false)
    },
    "status-grant": { bytes in
        // A grant of any bytes, and a token of any text.
        let split = min(bytes.count, StatusLimits.signatureBytes)
        let grant = Secret(copying: UnsafeRawBufferPointer(rebasing: bytes[..<split]))
        let token = Secret(copying: UnsafeRawBufferPointer(rebasing: bytes[split...]))
        let (client, server) = (statusClient.point, statusServer.point)
        precondition(!Grant.holds(grant, client: client, server: server, accessToken: token))
        let own = Grant.sign(by: statusClient, server: server, accessToken: token)
        precondition(Grant.holds(own, client: client, server: server, accessToken: token))
        precondition(!Grant.holds(own, client: server, server: server, accessToken: token))
        if AccessToken.isUUID(token) {
            precondition([32, 36, 38, StatusLimits.tokenTextBytes].contains(token.count))
        }
    },
    "status-topic": { bytes in
        let text = String(decoding: bytes, as: UTF8.self)
        if let id = WakuTopic.id(ofContentTopic: text) {
            precondition(WakuTopic.contentTopic(of: id) == text.lowercased(), "one spelling but for case")
        }
        let topic = WakuTopic(name: Secret(copying: bytes))
        precondition(WakuTopic.id(ofContentTopic: topic.contentTopic) == topic.id)
    },
    "status-rows": { bytes in judge(Secret(copying: bytes)) },
    "status-answer": { bytes in playAnswer(bytes) },
    "status-reports": { bytes in playReports(bytes) }
]

let statusServer = statusPair(1)
let statusClient = statusPair(2)
private let boxKey = statusClient.sharedX(with: statusServer.point)
private let boxNonce = [UInt8](repeating: 3, count: StatusLimits.nonceBytes)

func statusPair(_ byte: UInt8) -> Secp256k1KeyPair {
    guard let pair = try? Secp256k1KeyPair(secret: Secret([UInt8](repeating: byte, count: 32))) else {
        preconditionFailure("a scalar of such bytes is one of the curve's")
    }
    return pair
}

private func isWithin(_ part: UnsafeRawBufferPointer, _ whole: UnsafeRawBufferPointer) -> Bool {
    guard let part = part.baseAddress.map({ ($0, $0 + part.count) }), let start = whole.baseAddress else {
        return false
    }
    return start <= part.0 && part.1 <= start + whole.count
}

/// What was read is written so that it is read again, and has one form from then on.
private func keepsForm<Message: StatusMessage>(_ message: Message, _ read: (Secret) throws -> Message) {
    let written = message.encoded()
    precondition(written.count <= message.room, "no buffer grows")
    guard let again = try? read(written) else { preconditionFailure("what we write we can read") }
    precondition(again.encoded() == written)
}

private func judge(_ message: MetadataMessage) {
    precondition(message.messageID.count == 32)
    guard let inbound = try? StatusInbound(message) else { return }
    precondition(inbound.signer == message.signer && inbound.messageID == message.messageID)
}

/// Three bytes for each registration: how many entries its list has, how long they are, and whether contacts
/// alone may send; up to what a message carries, and as many as a key may have. Whatever it is, a node
/// carries each response, and the answer keeps to its budget. (A megabyte is signed four times a second here,
/// so most inputs play at a sixteenth of the size.)
private func playAnswer(_ bytes: UnsafeRawBufferPointer) {
    let scale = playScale(bytes)
    var answer = QueryAnswer(bytes: StatusLimits.answerBytes / scale)
    var number = 0
    for start in stride(from: 0, to: min(bytes.count, 3 * StatusLimits.installations) - 2, by: 3) {
        var registration = PushNotificationRegistration()
        registration.installationID = Secret(
            [UInt8](repeating: 0x61, count: Int(bytes[start]) % StatusLimits.installationBytes + 1))
        registration.accessToken = Secret([UInt8](repeating: 0x62, count: 36))
        registration.grant = Secret([UInt8](repeating: 3, count: StatusLimits.signatureBytes))
        registration.version = .max
        registration.allowFromContactsOnly = bytes[start + 2] & 1 == 0
        let (count, length) = (10 * Int(bytes[start]) / scale, Int(bytes[start + 1]) % 80)
        registration.allowedKeyList = Array(
            repeating: Secret([UInt8](repeating: 4, count: length)), count: count)
        answer.add(
            StatusRow(person: StatusHash.person(statusClient.point), registration), StatusPolicy())
        number += 1
    }
    let told = answer.info.reduce(0) { $0 + $1.encoded().count }
    precondition(told <= StatusLimits.answerBytes / scale)
    precondition(answer.isFull || number == 0 || !answer.info.isEmpty)
    let response = PushNotificationQueryResponse(
        info: answer.info, messageID: Secret([UInt8](repeating: 5, count: 32)), success: true)
    let messages = StatusReply(to: statusClient.point, .query(response)).messages(by: statusServer)
    precondition(messages.allSatisfy { $0.count <= StatusLimits.carriedData }, "a node carries it")
    let read = messages.reduce(0) { sum, message in
        let metadata = try? MetadataMessage(reading: message)
        let part = metadata.flatMap { try? PushNotificationQueryResponse(reading: $0.payload) }
        return sum + (part?.info.count ?? 0)
    }
    precondition(read == answer.info.count, "nothing is lost between the parts")
}

/// An input that ends with this byte is played at its full size.
private func playScale(_ bytes: UnsafeRawBufferPointer) -> Int { bytes.last == 0xFF ? 1 : 16 }

/// Four bytes for each notification: how long the installation's and the person's names are, up to what a
/// message carries altogether, and what is reported; the first is the length of the request's id. As many
/// notifications as a request may have: a node carries each response, in their order, and leaves out none but
/// those whose name alone is too long.
private func playReports(_ bytes: UnsafeRawBufferPointer) {
    guard let first = bytes.first else { return }
    let id = Secret([UInt8](repeating: 5, count: (4 * Int(first) + 1) % (StatusLimits.messageIDBytes + 1)))
    var reports: [PushNotificationReport] = []
    let scale = playScale(bytes)
    var room = StatusLimits.payloadBytes / scale
    for start in stride(from: 1, to: bytes.count - 3, by: 4) where reports.count < StatusLimits.notifications
    {
        let length = (Int(bytes[start]) << 8 | Int(bytes[start + 1])) * 3
        let person = Int(bytes[start + 2])
        guard length + person <= room else { continue }
        room -= length + person
        reports.append(
            PushNotificationReport(
                success: bytes[start + 3] & 1 == 0,
                error: PushNotificationReport.Fault(rawValue: Int32(bytes[start + 3] >> 1)),
                publicKey: Secret([UInt8](repeating: 6, count: person)),
                installationID: Secret([UInt8](repeating: 0x61, count: length))))
    }
    let response = PushNotificationResponse(messageID: id, reports: reports)
    let messages = StatusReply(to: statusClient.point, .request(response)).messages(by: statusServer)
    precondition(messages.allSatisfy { $0.count <= StatusLimits.carriedData }, "a node carries it")
    let told = messages.flatMap { message -> [PushNotificationReport] in
        let metadata = try? MetadataMessage(reading: message)
        let part = metadata.flatMap { try? PushNotificationResponse(reading: $0.payload) }
        precondition(part.map { $0.messageID == id } ?? false, "each part names what it answers")
        return part?.reports ?? []
    }
    // What room an element takes is estimated, by somewhat more than it is.
    let fitting = StatusLimits.responseBytes - 256
    let (all, kept) = (told.map { $0.encoded() }, reports.map { $0.encoded() }.filter { $0.count <= fitting })
    let found = all.filter { $0.count <= fitting }
    precondition(found.elementsEqual(kept) { $0 == $1 }, "in their order, each once")
}

/// A body of each kind of the relay's rows, whoever wrote it.
private func judge(_ body: Secret) {
    let key = StatusRecordNames(statusName).request(Secret([]))
    let record = Record(key: key, touchedAt: noon, body: body)
    if let row = StatusRow(record) {
        let written = Record(key: key, touchedAt: noon, body: row.body)
        precondition(StatusRow(written).map { $0.body == row.body } ?? false, "one form for one row")
    }
    if let topic = FollowedTopic(record) { precondition(topic.key.count == StatusLimits.keyBytes) }
    func memory(_ known: Record, isStored: Bool = false) -> RequestMemory? {
        RequestMemory(of: key, known, isStored: isStored, now: noon)
    }
    precondition(memory(record, isStored: true) == nil, "what is remembered is not taken from a store")
    if let found = memory(record) {
        guard case .put(let again, _) = found.reopened, case .put(let taken, _) = found.taken else {
            preconditionFailure("a request is put")
        }
        precondition(again.body == body && memory(again) != nil && memory(taken) == nil)
    }
}

private let noon = UnixTime(seconds: 1_700_000_000)
private let statusName: ConfiguredName = {
    guard let name = ConfiguredName("status") else { preconditionFailure("a word is a name") }
    return name
}()
