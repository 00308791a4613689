import PushModel

/// Queries.
extension StatusRelay {
    func answer(
        _ query: PushNotificationQuery, _ inbound: StatusInbound
    ) async throws(StatusError) -> StatusVerdict {
        guard query.publicKeys.count <= StatusLimits.queriedKeys else {
            return Verdict(reply: .now(nil), notes: [NoteCode("status.query-too-long")])
        }
        var info: [PushNotificationQueryInfo] = []
        for person in query.publicKeys where person.count == StatusLimits.hashBytes {
            info += try await registrations(of: person, atMost: StatusLimits.installations)
                .map { Self.info($0) }
        }
        // Whether somebody is registered here is nobody's business who does not know already.
        guard !info.isEmpty || policy.isStatusGo else {
            // Clients ask for one person at a time.
            let isOne = query.publicKeys.count == 1
            return Verdict(
                changes: isOne ? try await unfollowing(query.publicKeys[0]) : [], reply: .now(nil),
                refusal: { _ in StatusError(.overloaded) }, notes: [NoteCode("status.query-silent")])
        }
        let response = PushNotificationQueryResponse(
            info: info, messageID: inbound.messageID, success: !query.publicKeys.isEmpty)
        return Verdict(
            reply: .now(StatusReply(to: inbound.signer, .query(response))), notes: [NoteCode("status.query")])
    }

    /// The flag decides, not the list: never both, and no token for contacts alone.
    private static func info(_ row: StatusRow) -> PushNotificationQueryInfo {
        var info = PushNotificationQueryInfo()
        info.publicKey = row.person
        info.installationID = row.registration.installationID
        info.grant = row.registration.grant
        info.version = row.registration.version
        if row.registration.allowFromContactsOnly {
            info.allowedKeyList = row.registration.allowedKeyList
        } else {
            info.accessToken = row.registration.accessToken
        }
        return info
    }
}
