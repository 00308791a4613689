import AdminIngress
import OriginServer
import PushModel
import Synchronization
import ZulipPush

/// What the relay's answers, or their absence, mean for administrators: for an hour behind the last of each,
/// by realm.
final class OriginTroubles: Sendable {
    private struct Known {
        /// Registrations that ended unanswered.
        var expired: [UnixTime] = []
        var refused: (fault: RelayFault, at: UnixTime)?
        var staleList: (fault: RelayFault, at: UnixTime)?

        var isOver: Bool { expired.isEmpty && refused == nil && staleList == nil }
    }

    private let world: World
    /// By the realm's UUID: as many as there are realms.
    private let known = Mutex<[String: Known]>([:])

    private static let life = Duration.seconds(3_600)
    /// A list comes once a day.
    private static let staleLife = Duration.seconds(86_400 + 3_600)
    /// Ends of registrations that are counted; more are told as so many.
    private static let counted = 10_000

    init(_ world: World) { self.world = world }

    func note(_ alert: ZulipAlert, of realm: String) {
        let now = world.now()
        known.withLock { known in
            switch alert {
            case .registrationExpired:
                guard known[realm]?.expired.count ?? 0 < Self.counted else { return }
                known[realm, default: Known()].expired.append(now)
            case .registrationRefused(let fault): known[realm, default: Known()].refused = (fault, now)
            case .staleList(let fault): known[realm, default: Known()].staleList = (fault, now)
            }
        }
    }

    func alerts(of instance: ConfiguredName, _ people: OriginPeople) -> [Alert] {
        let now = world.now()
        let all = known.withLock { known in
            known = known.compactMapValues { one in
                var one = one
                one.expired.removeAll { now.since($0) > Self.life }
                if let at = one.refused?.at, now.since(at) > Self.life { one.refused = nil }
                if let at = one.staleList?.at, now.since(at) > Self.staleLife { one.staleList = nil }
                return one.isOver ? nil : one
            }
            return known
        }
        return all.sorted { $0.key < $1.key }.flatMap { uuid, known in
            // A realm that was removed has no phones.
            people.realm(uuid).map { Self.alerts(known, instance, $0.name) } ?? []
        }
    }

    private static func alerts(_ known: Known, _ instance: ConfiguredName, _ realm: String) -> [Alert] {
        var alerts: [Alert] = []
        if let since = known.expired.min() {
            alerts.append(
                .registrationExpired(
                    instance, realm: realm, known.expired.count, since: timestamp(since)))
        }
        if let fault = known.refused?.fault {
            alerts.append(.registrationRefused(instance, realm: realm, RelayWord(fault)))
        }
        if let fault = known.staleList?.fault {
            alerts.append(.originStaleList(instance, realm: realm, RelayWord(fault)))
        }
        return alerts
    }
}

extension RelayWord {
    fileprivate init(_ fault: RelayFault) { self.init(word: fault.rawValue, cure: fault.sentence) }
}
