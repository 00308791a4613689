import NostrIngress
import PushModel
import Synchronization

/// Which inbox relays refuse an instance's relay list, read from what listening reports of relays.
final class ListRefusals: Sendable {
    /// Of a host that is too long for a name.
    private static let unnamed = ConfiguredName("unnamed")
    private static let accepted = RelayNote.listAccepted.code.text
    private static let rejected = RelayNote.listRejected(nil).code.text

    /// By their hosts, as logs name them; relays that share a host share a place. At most as many as the
    /// configuration names.
    private let places = Mutex<Set<ConfiguredName>>([])

    var refusing: [ConfiguredName] { places.withLock { Array($0) } }

    /// The journal to give to listening.
    func watching(_ journal: Journal) -> Journal {
        journal.watched { [self] _, fields in look(fields) }
    }

    private func look(_ fields: [(LogKey, any LogSafe)]) {
        let values = Dictionary(fields, uniquingKeysWith: { $1 })
        guard let word = (values[.note] as? NoteCode)?.text, word == Self.accepted || word == Self.rejected,
            let relay = values[.relay] as? ConfiguredName ?? Self.unnamed
        else { return }
        places.withLock { places in
            if word == Self.rejected { places.insert(relay) } else { places.remove(relay) }
        }
    }

    /// Only these are left: a relay that is no longer listened at has nothing to refuse.
    func keep(_ known: Set<ConfiguredName>) { places.withLock { $0.formIntersection(known) } }

    static func place(_ relay: NostrRelay) -> ConfiguredName? { relay.name ?? unnamed }
}
