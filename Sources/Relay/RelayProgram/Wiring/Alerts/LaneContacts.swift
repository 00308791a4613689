import AdminIngress
import Delivery
import PushModel

/// The push services to which no connection can be made, whether or not there is something to send. A value:
/// looks in, lanes out.
struct LaneContacts: Sendable {
    /// Names of what every provider counts of its connections.
    fileprivate static let open = "sealbell_push_connections"
    fileprivate static let opened = "sealbell_push_connections_opened_total"
    fileprivate static let failed = "sealbell_push_connections_failed_total"

    private struct Contact: Sendable {
        /// How many connections had failed when one was open last.
        var failed: Int
        /// Since when more have, and none is open.
        var since: ContinuousClock.Instant?
    }

    /// As many as the configuration has lanes.
    private var contacts: [LaneName: Contact] = [:]

    /// - Returns: lanes without a connection for that span, during which some failed. One that nobody has
    ///   wanted, or that the service has ended, is no failure.
    mutating func look(
        _ lanes: [LaneSnapshot], after span: Duration, at now: ContinuousClock.Instant
    ) -> [LaneName] {
        var seen: [LaneName: Contact] = [:]
        for lane in lanes {
            guard let open = lane.figure(Self.open), let failed = lane.figure(Self.failed) else { continue }
            var contact = contacts[lane.lane] ?? Contact(failed: 0)
            // A lane that replaced another at a reload counts from zero.
            if open > 0 || failed < contact.failed { contact = Contact(failed: failed) }
            if failed > contact.failed { contact.since = contact.since ?? now }
            seen[lane.lane] = contact
        }
        contacts = seen
        return seen.compactMap { name, contact in
            contact.since.map { now - $0 >= span } ?? false ? name : nil
        }
    }
}

extension LaneContacts {
    /// Whether there is a connection.
    func isOpen(_ lane: LaneSnapshot) -> Bool { (lane.figure(Self.open) ?? 0) > 0 }
}

extension LaneSnapshot {
    /// Open connections to the push service; `nil` where the provider counts none.
    var connections: Int? { figure(LaneContacts.open) }

    /// What its connections say of a lane that nothing holds up.
    var contact: LaneReport.State {
        guard let open = connections else { return .ready }
        if open > 0 { return .open }
        if (figure(LaneContacts.opened) ?? 0) > 0 { return .idle }
        return (figure(LaneContacts.failed) ?? 0) > 0 ? .unreachable : .untried
    }

    /// One of the provider's counts; `nil` when it has none of that name.
    fileprivate func figure(_ name: String) -> Int? {
        figures.first { "\($0.name)" == name }?.value
    }
}
