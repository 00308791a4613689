package import PushModel
import Synchronization

/// A volatile push on its way into a lane. Only this file can see its content.
struct VolatileEntry: Sendable {
    fileprivate var entry: LaneQueue.Entry

    fileprivate init(_ push: OwedPush, environmentKnown: Bool) {
        // No reply waits for the first attempt of a push whose sender gets none.
        entry = LaneQueue.Entry(push: push, isFirst: false, environmentKnown: environmentKnown)
    }
}

/// The way in for volatile pushes. Lanes of direct providers have it, and no others (decision 0018).
protocol VolatileLane: AnyObject, Sendable {
    var name: LaneName { get }
    func admit(_ entries: [VolatileEntry])
}

extension Lane: VolatileLane where P: DirectProvider {
    func admit(_ entries: [VolatileEntry]) { admit(entries.map(\.entry), parked: []) }
}

extension VolatileLane {
    /// The push goes on in this lane, as part of the same attempt.
    func take(over entry: LaneQueue.Entry) {
        var moved = VolatileEntry(entry.push, environmentKnown: entry.environmentKnown)
        moved.entry.push.lane = name
        moved.entry.firstWord = entry.firstWord
        admit([moved])
    }
}

/// A lane by its listeners.
struct LaneHandles {
    let lane: any LaneHandle
    /// `nil` unless its provider is direct.
    let volatile: (any VolatileLane)?

    init(_ lane: Lane<some Provider>) {
        self.lane = lane
        volatile = nil
    }

    init(_ lane: Lane<some DirectProvider>) {
        self.lane = lane
        volatile = lane
    }
}

/// What became of a volatile verdict's pushes.
package struct VolatileAdmission: Sendable, Hashable {
    /// In the lanes' memory.
    package var owed = 0
    /// No app of the instance serves them, or no direct lane.
    package var withoutLane = 0
    /// Dropped: the relay owes as many as it may.
    package var withoutRoom = 0

    /// There was no room for any: the same verdict may be taken when it comes again.
    package var isUntaken: Bool { owed == 0 && withoutRoom > 0 }
}

/// Takes a role's volatile verdict in: straight into the lanes' memory (docs/architecture.md).
package struct VolatileIntake: Sendable {
    private let core: DeliveryCore

    init(core: DeliveryCore) { self.core = core }

    /// Nothing waits here and nothing is written.
    @discardableResult
    package func admit(_ verdict: VolatileVerdict<some Sendable>, instance: ConfiguredName)
        -> VolatileAdmission
    {
        var admission = VolatileAdmission()
        var routed: [(push: VolatilePush, lane: any VolatileLane, environmentKnown: Bool)] = []
        routed.reserveCapacity(verdict.pushes.count)
        for push in verdict.pushes {
            if let (lane, isKnown) = place(push, of: instance) {
                routed.append((push, lane, isKnown))
            } else {
                admission.withoutLane += 1
                core.observer.noApp(instance)
            }
        }
        guard !routed.isEmpty else { return admission }
        admission.owed = core.volatile.take(routed.count)
        admission.withoutRoom = routed.count - admission.owed
        for dropped in routed[admission.owed...] { core.observer.volatileDropped(dropped.lane.name, 1) }
        guard admission.owed > 0 else { return admission }
        let now = core.world.now()
        let origin = core.volatile.origin(of: instance)
        var entries: [LaneName: (lane: any VolatileLane, entries: [VolatileEntry])] = [:]
        for (push, lane, isKnown) in routed[..<admission.owed] {
            let owed = OwedPush(
                volatile: push, id: core.volatile.id(at: now), lane: lane.name, origin: origin,
                notBefore: push.notBefore ?? now, instance: instance)
            entries[lane.name, default: (lane, [])].entries.append(
                VolatileEntry(owed, environmentKnown: isKnown))
        }
        for (lane, entries) in entries.values { lane.admit(entries) }
        return admission
    }

    private func place(
        _ push: VolatilePush, of instance: ConfiguredName
    ) -> (lane: any VolatileLane, environmentKnown: Bool)? {
        core.table.withLock { table in
            switch table.apps.choice(push.message, of: instance) {
            case nil: return nil
            case .lane(let name)?: return table.volatileLanes[name].map { ($0, true) }
            case .either(let pair)?:
                let known = core.volatile.side(app: pair.first.app, address: push.message.address)
                return table.volatileLanes[pair[known ?? .first]].map { ($0, known != nil) }
            }
        }
    }
}
