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
        guard let memory = RequestMemory(of: name, try await find([name])[0], now: now) else {
            throw StatusError(.repeated)
        }
        let refusal: @Sendable (Int) -> StatusError = { _ in StatusError(.repeated) }
        guard request.messageID.count > 0, request.requests.count <= StatusLimits.notifications else {
            return Verdict(
                changes: [memory.taken], reply: .now(nil), refusal: refusal,
                notes: [NoteCode("status.request-refused")])
        }
        let entries = request.requests.filter { !isPassedOver($0.type) }
        let records = try await find(
            entries.map { keys.registration(of: $0.publicKey, installation: $0.installationID) })
        var pushes: [Push] = []
        let drafts = zip(entries, records).map { entry, record in
            let draft = judge(entry, record, of: request, now)
            guard let push = draft.push else { return Draft(draft.report) }
            pushes.append(push)
            return Draft(draft.report, push: pushes.count - 1)
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
                    deadline: StatusLimits.reportWithin, undoing: [memory.reopened], reply),
            refusal: refusal, notes: [NoteCode(pushes.isEmpty ? "status.request-unwanted" : "status.request")]
        )
    }

    /// Without a report. Deployed servers push what has an unassigned type as a mention.
    func isPassedOver(_ type: PushNotification.Kind) -> Bool {
        switch type {
        case .message, .mention, .requestToJoinCommunity: false
        case .unknown: true
        default: !policy.isStatusGo
        }
    }

    private func judge(
        _ entry: PushNotification, _ record: Record?, of request: PushNotificationRequest, _ now: UnixTime
    ) -> (report: PushNotificationReport, push: Push?) {
        var report = PushNotificationReport(
            success: false, publicKey: entry.publicKey, installationID: entry.installationID)
        guard let record, let row = StatusRow(record) else {
            report.error = .notRegistered
            return (report, nil)
        }
        guard row.registration.accessToken == entry.accessToken else {
            report.error = .wrongToken
            return (report, nil)
        }
        report.success = true
        // Who is blocked does not learn of it.
        guard row.registration.wants(entry), row.registration.enabled || policy.isStatusGo else {
            return (report, nil)
        }
        guard let message = StatusPayload(entry).message(to: row.registration, policy) else {
            report.success = false
            report.error = .internalError
            return (report, nil)
        }
        let push = Push(
            message: message, pushClass: .normal, origin: row.person, record: record.key,
            touchedAt: record.touchedAt, custodyEnds: now + StatusLimits.custody,
            repeatIdentity: Self.identity(entry, row.registration, request.messageID))
        return (report, push)
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

    /// A report, and the push on whose first outcome it waits.
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
            // What is still owed is delivered later, so it must not be reported as failed.
            case .known(.accepted), .pending: break
            case .known(.unregistered):
                report.success = false
                report.error = .notRegistered
            // Withdrawn: the sender asks again, here or elsewhere.
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
    func wants(_ entry: PushNotification) -> Bool {
        let isBlockedAuthor = blockedChatList.contains { $0 == entry.author }
        if isBlockedAuthor, entry.type.rawValue <= PushNotification.Kind.requestToJoinCommunity.rawValue {
            return false
        }
        switch entry.type {
        case .message: return !(blockedChatList + mutedChatList).contains { $0 == entry.chatID }
        case .mention: return !blockMentions && allowedMentionsChatList.contains { $0 == entry.chatID }
        default: return true
        }
    }
}
