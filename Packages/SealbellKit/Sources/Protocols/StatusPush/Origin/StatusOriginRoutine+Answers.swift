package import PushModel
import Secp256k1Keys

/// What arrives: contact codes, answers to queries, and reports (§12).
extension StatusOriginRoutine {
    /// Takes a message of one of ``topics``, or of a history.
    ///
    /// - Returns: whether it told something: what is for somebody else, of another protocol, from a server
    ///   that was not asked, or not authorised by the person it speaks of, is passed over.
    @discardableResult
    package mutating func receive(_ message: WakuMessage, now: UnixTime) -> Bool {
        for person in targets.keys {
            guard let pushKey = targets[person]?.pushKey,
                message.contentTopic == WakuTopic.contactCode(of: pushKey).contentTopic
            else { continue }
            if receiveCode(message, of: person) { return true }
        }
        for place in queries.indices
        where message.contentTopic == WakuTopic.partitioned(of: queries[place].key.point).contentTopic {
            if let metadata = EndMessages.open(message, with: queries[place].key) {
                return receiveInfo(metadata, queries[place])
            }
        }
        for place in requests.indices
        where message.contentTopic == WakuTopic.partitioned(of: requests[place].key.point).contentTopic {
            if let metadata = EndMessages.open(message, with: requests[place].key) {
                return receiveReports(metadata, requests[place], now)
            }
        }
        return false
    }

    private mutating func receiveCode(_ message: WakuMessage, of person: PublicPoint) -> Bool {
        guard var target = targets[person] else { return false }
        let topicKey =
            target.contactTopicKey ?? TopicKey.derive(from: WakuTopic.contactCode(of: target.pushKey))
        target.contactTopicKey = topicKey
        targets[person] = target
        guard let code = EndMessages.openContactCode(message, topicKey: topicKey),
            code.signer == target.pushKey
        else { return false }
        return learn(code.advertisement.pushNotificationInfo, of: person, from: nil)
    }

    private mutating func receiveInfo(_ metadata: MetadataMessage, _ query: Query) -> Bool {
        guard metadata.type == .queryResponse,
            // Whatever does not parse is no answer.
            let answer = metadata.payload.reveal({ try? PushNotificationQueryResponse(reading: $0) }),
            answer.success, answer.messageID == query.messageID
        else { return false }
        return learn(answer.info, of: query.person, from: metadata.signer)
    }

    private mutating func learn(
        _ info: [PushNotificationQueryInfo], of person: PublicPoint, from server: PublicPoint?
    ) -> Bool {
        guard let pushKey = targets[person]?.pushKey else { return false }
        var isNew = false
        for one in info.prefix(StatusLimits.targetCoordinates) {
            switch Coordinates.judge(one, reader: key, target: pushKey, server: server) {
            case .token(let found):
                targets[person]?.learn(found)
                isNew = true
            case .withheld(let installation, let version):
                // Of a server it means nothing: a person signs contact codes, and any server may lag or lie.
                guard server == nil else { continue }
                if targets[person]?.withhold(installation, since: version) == true { isNew = true }
            case nil: continue
            }
        }
        return isNew
    }

    private mutating func receiveReports(
        _ metadata: MetadataMessage, _ request: Request, _ now: UnixTime
    ) -> Bool {
        guard metadata.type == .response, metadata.signer == request.server,
            // Whatever does not parse is no answer.
            let answer = metadata.payload.reveal({ try? PushNotificationResponse(reading: $0) }),
            answer.messageID == request.messageID
        else { return false }
        for sent in request.parts {
            let report = answer.reports.first {
                $0.publicKey == sent.hash && $0.installationID == sent.installation
            }
            if let report { take(report, sent.job, sent.installation, sent.token, request, now) }
        }
        for id in Set(request.parts.map(\.job)) { closeIfOver(id) }
        if !request.isLate { requests.removeAll { $0.id == request.id } }
        return true
    }

    private mutating func take(
        _ report: PushNotificationReport, _ job: UInt64, _ installation: Secret, _ token: Secret,
        _ request: Request, _ now: UnixTime
    ) {
        guard let place = jobs[job]?.parts.firstIndex(where: { $0.installation == installation }),
            let part = jobs[job]?.parts[place], let person = jobs[job]?.person, !part.isOver
        else { return }
        if report.success {
            jobs[job]?.parts[place].state = .taken
            return
        }
        let fault: StatusDispatch.Fault
        switch report.error {
        case .wrongToken:
            fault = .wrongToken
            targets[person]?.forget(installation, at: request.server, token: token)
            // Two servers that say so are one reason to ask.
            let isAsked = targets[person]?.lastQuery.map { now.since($0) < StatusLimits.answerWait } ?? false
            if !isAsked { targets[person]?.mustQuery = true }
        case .notRegistered:
            fault = .notRegistered
            targets[person]?.forget(installation, at: request.server, token: token)
        default: fault = .serverFailed
        }
        again(job, installation, after: request.id, fault, now)
    }
}
