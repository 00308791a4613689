import PushModel

/// Queries.
extension StatusRelay {
    func answer(
        _ query: PushNotificationQuery, _ inbound: StatusInbound
    ) async throws(StatusError) -> StatusVerdict {
        let people = query.people
        let answer = try await readers.taking { () throws(StatusError) in try await tell(of: people) }
        // The relay does not tell a stranger whether somebody is registered here.
        guard !answer.info.isEmpty || policy.isStatusGo else {
            // Clients ask for one person at a time.
            let isOne = query.publicKeys.count == 1 && people.count == 1
            return Verdict(
                changes: isOne ? try await unfollowing(people[0]) : [], reply: .now(nil),
                refusal: { _ in StatusError(.overloaded) }, notes: [NoteCode("status.query-silent")])
        }
        let response = PushNotificationQueryResponse(
            info: answer.info, messageID: inbound.messageID, success: !query.publicKeys.isEmpty)
        return Verdict(
            reply: .now(StatusReply(to: inbound.signer, .query(response))), notes: [NoteCode("status.query")])
    }

    /// The latest registrations come first: if there is no room for all, these are the ones in use.
    private func tell(of people: [Secret]) async throws(StatusError) -> QueryAnswer {
        var answer = QueryAnswer()
        var bytes = StatusLimits.readBytes
        for person in people {
            let rows = try await registrations(
                of: person, atMost: StatusLimits.rowsOfPerson, within: &bytes)
            for row in rows.suffix(StatusLimits.installations).reversed() { answer.add(row, policy) }
            if bytes <= 0 || answer.isFull { break }
        }
        return answer
    }
}
