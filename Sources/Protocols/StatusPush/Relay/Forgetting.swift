package import PushModel

/// Topics that are followed for nobody any more.
extension StatusRelay {
    /// What is to go of a page of followed topics (``StatusKeys/followed``): those of people of whom no
    /// registration is left, because the push service refused their tokens, because an operator had them
    /// forgotten, or because their last two installations unregistered in one moment.
    ///
    /// Each change stands for itself: one that is refused has met a registration.
    package func unneeded(among page: [Record]) async throws(StatusError) -> [Change] {
        var changes: [Change] = []
        // Both topics of a person are written in one commit, and so stand beside each other.
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

    /// What ends the following of a person's topics; nothing while an installation is registered.
    ///
    /// - Parameter installation: one that does not count.
    func unfollowing(
        _ person: Secret, besides installation: Secret? = nil
    ) async throws(StatusError) -> [Change] {
        // Before the registrations: who registers in between writes the topics anew, and this is refused.
        let topics = [WakuTopic.query(of: person), WakuTopic.prefixedQuery(of: person)]
        let followed = try await find(topics.map { keys.topic($0) }).compactMap(\.self)
        guard !followed.isEmpty,
            try await !isRegistered(person, besides: installation)
        else { return [] }
        return followed.map { .delete($0.key, if: .revision($0.revision)) }
    }
}
