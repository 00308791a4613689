import OriginServer

/// Answers polls that have waited long enough.
final class PollClock: InstanceService {
    private let polls: EventPolls

    init(_ polls: EventPolls) { self.polls = polls }

    func run() async throws { await polls.run() }

    func stop() { polls.end() }
}
