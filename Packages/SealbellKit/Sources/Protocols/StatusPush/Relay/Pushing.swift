import Primitives
import PushModel

/// Requests, notification by notification.
extension StatusRelay {
    func push(
        _ request: PushNotificationRequest, _ inbound: StatusInbound
    ) async throws(StatusError) -> StatusVerdict {
        let now = world.now()
        let name = keys.request(inbound.messageID)
        // A repeat costs one look-up.
        let known = try await find([name])[0]
        guard let memory = RequestMemory(of: name, known, isStored: inbound.isStored, now: now) else {
            throw StatusError(.repeated)
        }
        let refusal: @Sendable (Int) -> StatusError = { _ in StatusError(.repeated) }
        let judged = try await judge(request)
        if policy.delivery == .gateway {
            return handOver(judged, of: request, to: inbound.signer, memory, refusal: refusal)
        }
        var pushes: [Push] = []
        let drafts = judged.map { judged in
            guard let device = judged.device else { return Draft(judged.report) }
            guard let push = push(judged.entry, to: device, of: request, now) else {
                return Draft(judged.failed)
            }
            pushes.append(push)
            return Draft(judged.report, push: pushes.count - 1)
        }
        let (recipient, messageID) = (inbound.signer, request.messageID)
        let reply: @Sendable ([FirstOutcome]) -> StatusReply? = { outcomes in
            let reports = drafts.map { $0.report(outcomes) }
            return StatusReply(
                to: recipient, .request(PushNotificationResponse(messageID: messageID, reports: reports)))
        }
        let hasFailed = drafts.contains { $0.report([]).error == .internalError }
        return Verdict(
            pushes: pushes, changes: [hasFailed ? memory.failed : memory.taken],
            reply: pushes.isEmpty
                ? .now(reply([]))
                : .withdrawingAfterFirstAttempt(
                    deadline: reportWithin, undoing: [memory.reopened], reply),
            refusal: refusal, notes: [NoteCode(pushes.isEmpty ? "status.request-unwanted" : "status.request")]
        )
    }

    /// Without a report. Deployed servers push a notification of an unassigned type as a mention.
    func isPassedOver(_ type: PushNotification.Kind) -> Bool {
        switch type {
        case .message, .mention, .requestToJoinCommunity: false
        case .unknown: true
        default: !policy.isStatusGo
        }
    }

    /// The report about a notification, and where the notification goes.
    struct JudgedEntry: Sendable {
        let entry: PushNotification
        var report: PushNotificationReport
        /// `nil`: nowhere.
        var device: Device?

        init(_ entry: PushNotification) {
            self.entry = entry
            report = PushNotificationReport(
                success: false, publicKey: entry.publicKey, installationID: entry.installationID)
        }

        /// A device that wants it, without its lists, which are needed only to find that out.
        struct Device: Sendable {
            let record: Record
            let row: StatusRow

            init(_ record: Record, _ row: StatusRow) {
                (self.record, self.row) = (record.withoutBody, row.withoutLists)
            }
        }

        /// The report if it could not be handed on.
        var failed: PushNotificationReport {
            var report = report
            report.success = false
            report.error = .internalError
            return report
        }
    }

    /// The notifications of a request that get a report, judged in order.
    ///
    /// A registration is read once, however often it is named. Only a few registrations at a time are held in
    /// full; of the others only the part that a push is made of.
    private func judge(_ request: PushNotificationRequest) async throws(StatusError) -> [JudgedEntry] {
        var judged = request.requests.filter { !isPassedOver($0.type) }.map { JudgedEntry($0) }
        let named = NamedEntries(judged.map(\.entry), keys)
        for start in stride(from: 0, to: named.names.count, by: StatusLimits.namesAtOnce) {
            let page = start..<min(start + StatusLimits.namesAtOnce, named.names.count)
            try await readers.taking { () throws(StatusError) in
                for (index, record) in zip(page, try await find(Array(named.names[page]))) {
                    let row = record.flatMap { StatusRow($0) }
                    for place in named.places[index] { judge(&judged[place], record, row) }
                }
            }
        }
        return judged
    }

    private func judge(_ judged: inout JudgedEntry, _ record: Record?, _ row: StatusRow?) {
        let entry = judged.entry
        guard let record, let row else {
            judged.report.error = .notRegistered
            return
        }
        guard row.registration.accessToken == entry.accessToken else {
            judged.report.error = .wrongToken
            return
        }
        judged.report.success = true
        // A blocked sender does not learn of it.
        guard row.registration.wants(entry, policy), row.registration.enabled || policy.isStatusGo else {
            return
        }
        judged.device = JudgedEntry.Device(record, row)
    }

    /// `nil` if the instance has no way to such a device.
    private func push(
        _ entry: PushNotification, to device: JudgedEntry.Device, of request: PushNotificationRequest,
        _ now: UnixTime
    ) -> Push? {
        let (record, row) = (device.record, device.row)
        return StatusPayload(entry).message(to: row.registration, policy).map { message in
            Push(
                message: message, pushClass: .normal, origin: row.person, record: record.key,
                touchedAt: record.touchedAt, registeredAddress: record.addressDigest,
                custodyEnds: now + StatusLimits.custody,
                repeatIdentity: Self.identity(entry, row.registration, request.messageID))
        }
    }

    private static func identity(
        _ entry: PushNotification, _ registration: PushNotificationRegistration, _ messageID: Secret
    ) -> Secret {
        registration.deviceToken.reveal { token in
            messageID.reveal { messageID in
                entry.chatID.reveal { chat in
                    withUnsafeBytes(of: entry.type.rawValue.bigEndian) { type in
                        withUnsafeBytes(of: (token.count.bigEndian, messageID.count.bigEndian)) { counts in
                            Blake2b.digest32([counts, token, messageID, type, chat])
                        }
                    }
                }
            }
        }
    }

    /// A report, and the push whose first outcome it waits for.
    private struct Draft: Sendable {
        let base: PushNotificationReport
        let push: Int?

        init(_ base: PushNotificationReport, push: Int? = nil) {
            self.base = base
            self.push = push
        }

        func report(_ outcomes: [FirstOutcome]) -> PushNotificationReport {
            guard let push, push < outcomes.count else { return base }
            var report = base
            switch outcomes[push] {
            // A push that is still owed is delivered later, so it must not be reported as failed.
            case .known(.accepted), .pending: break
            case .known(.unregistered):
                report.success = false
                report.error = .notRegistered
            // Withdrawn: the sender asks again, here or at another server.
            case .known(.retry), .known(.rejected), .known(.misconfigured), .dropped:
                report.success = false
                report.error = .internalError
            }
            return report
        }
    }
}

extension PushNotificationRegistration {
    /// Whether the lists let a notification through (docs/conformance/status.md).
    func wants(_ entry: PushNotification, _ policy: StatusPolicy) -> Bool {
        let isBlockedAuthor = blockedChatList.contains { $0 == entry.author }
        if isBlockedAuthor, entry.type.rawValue <= PushNotification.Kind.requestToJoinCommunity.rawValue {
            return false
        }
        let isBlockedChat = blockedChatList.contains { $0 == entry.chatID }
        // The specification says that no chat of that list triggers a notification of any kind. Deployed
        // servers apply it to messages only.
        if isBlockedChat, entry.type == .message || !policy.isStatusGo { return false }
        switch entry.type {
        case .message: return !mutedChatList.contains { $0 == entry.chatID }
        case .mention: return !blockMentions && allowedMentionsChatList.contains { $0 == entry.chatID }
        default: return true
        }
    }
}
