import AtRest
import PushModel

/// The life of a registration in the log at `info`, by its short id: registered, what its pushes met that was
/// no delivery, ended (``AlertWiring``), removed.
enum RegistrationLife {
    /// A record was written or deleted; one that is no registration is passed over.
    static func note(
        _ kind: RegistrationNews.Kind, _ space: Space, _ digest: () -> Digest16,
        among instances: [any HostedInstance], in events: EventLog
    ) {
        guard let instance = instances.first(where: { $0.registrationSpaces.contains(space) }) else { return }
        let fields: [(LogKey, any LogSafe)] = [
            (.instance, instance.name), (.registration, RegistrationID(digest()))
        ]
        switch kind {
        case .made: events.note("device registered", fields)
        case .removed: events.note("registration removed", fields)
        }
    }

    /// What pushes met, once a minute. Deliveries, and tries that go on, are in the history alone.
    static func note(_ count: RegistrationCount, in events: EventLog) {
        let fields: [(LogKey, any LogSafe)] = [
            (.registration, RegistrationID(count.registration)), (.count, Int(count.count)),
            (.reason, ServiceWord(logText: count.reason))
        ]
        switch count.event {
        case .delivered, .delayed: break
        case .refused: events.note("pushes were refused", fields)
        case .expired: events.note("pushes grew too old", fields)
        case .dropped: events.note("pushes were given up and may have arrived", fields)
        case .replaced: events.note("pushes ended with a former address", fields)
        }
    }

    /// One of the words that ``Reason`` is made of: static text.
    private struct ServiceWord: LogSafe { let logText: String }
}
