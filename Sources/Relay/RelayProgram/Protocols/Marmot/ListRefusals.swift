import MarmotPublishing
import NostrIngress
import PushModel
import Synchronization

/// Which inbox relays refuse an instance's relay list, read from what listening reports of relays.
final class ListRefusals: Sendable {
    /// Of a host that is too long for a name.
    private static let unnamed = ConfiguredName("unnamed")
    private static let accepted = RelayNote.listAccepted.code.text
    private static let rejected = RelayNote.listRejected(nil).code.text

    /// Whether the last list was refused. By their hosts, as logs name them; relays that share a host share a
    /// place. At most as many as the configuration names.
    private let places = Mutex<[ConfiguredName: Bool]>([:])

    var refusing: [ConfiguredName] { places.withLock { $0.filter(\.value).map(\.key) } }

    /// Whether the relay's last word was that it takes the list.
    func hasTaken(_ relay: ConfiguredName) -> Bool { places.withLock { $0[relay] == false } }

    /// The journal to give to listening.
    func watching(_ journal: Journal) -> Journal {
        journal.watched { [self] _, fields in look(fields) }
    }

    private func look(_ fields: [(LogKey, any LogSafe)]) {
        let values = Dictionary(fields, uniquingKeysWith: { $1 })
        guard let word = (values[.note] as? NoteCode)?.text, word == Self.accepted || word == Self.rejected,
            let relay = values[.relay] as? ConfiguredName ?? Self.unnamed
        else { return }
        places.withLock { $0[relay] = word == Self.rejected }
    }

    /// Only these are left: a relay that is no longer listened at has nothing to refuse.
    func keep(_ known: Set<ConfiguredName>) { places.withLock { $0 = $0.filter { known.contains($0.key) } } }

    static func place(_ relay: NostrRelay) -> ConfiguredName? { relay.name ?? unnamed }
}
