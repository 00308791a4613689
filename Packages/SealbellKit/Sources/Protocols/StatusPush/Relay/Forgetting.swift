package import PushModel

/// Followed topics that nobody needs any more.
extension StatusRelay {
    /// The entries to delete from a page of followed topics (``StatusRecordNames/followed``): topics of
    /// people who have no registration left, because the push service refused their tokens, because an
    /// operator had them forgotten, or because their last two installations unregistered at the same moment.
    ///
    /// The changes are independent: one is refused if somebody registered in the meantime.
    package func unneeded(among page: [Record]) async throws(StatusError) -> [Change] {
        var changes: [Change] = []
        // Both topics of a person are written in one commit, so they are next to each other.
        var last: (person: Secret, isRegistered: Bool)?
        for record in page {
            guard let person = FollowedTopic(record)?.person else { continue }
            if last.map({ !($0.person == person) }) ?? true {
                last = (person, try await isRegistered(person))
            }
            if last?.isRegistered == false {
                changes.append(.delete(record.key, if: .revision(record.revision)))
            }
        }
        return changes
    }

    /// The changes that stop following a person's topics; none while an installation is registered.
    ///
    /// - Parameter installation: one that is not counted.
    func unfollowing(
        _ person: Secret, besides installation: Secret? = nil
    ) async throws(StatusError) -> [Change] {
        // Read before the registrations: a person who registers in the meantime writes the topics again, and
        // this change is then refused.
        let topics = [WakuTopic.query(of: person), WakuTopic.prefixedQuery(of: person)]
        let followed = try await find(topics.map { keys.topic($0) }).compactMap(\.self)
        guard !followed.isEmpty,
            try await !isRegistered(person, besides: installation)
        else { return [] }
        return followed.map { .delete($0.key, if: .revision($0.revision)) }
    }
}
