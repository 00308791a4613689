import PushModel
import Synchronization

/// Where a call's pushes go: before the commit into which lane, and after it into that lane's memory.
extension Intake {
    /// Where one push goes. No lane: no app serves its target.
    struct Place {
        var lane: (any LaneHandle)?
        var parked = false
        var environmentKnown = true
        /// Its origin's pace puts it off until then.
        var notBefore: UnixTime?
    }

    /// What one commit brought.
    struct Taken {
        /// Of each push.
        let places: [Place]
        /// Of those pushes that have a lane, in order.
        let admissions: [Admission]
        /// The lease's term when the store was asked.
        let term: Int
        /// The store's rows stand as in memory, and ``Reclaim`` waits until they are.
        let isHeld: Bool

        static let nothing = Taken(places: [], admissions: [], term: 0, isHeld: false)

        /// Each push's index, its place and what became of it; `nil` when no app serves its target.
        func forEach(_ body: (Int, Place, Admission?) -> Void) {
            var next = 0
            for (index, place) in places.enumerated() {
                guard place.lane != nil, next < admissions.count else {
                    body(index, place, nil)
                    continue
                }
                body(index, place, admissions[next])
                next += 1
            }
        }
    }

    /// - Returns: the places, and of those that may be one of two lanes which.
    func route(_ call: Call) -> (places: [Place], learning: [(index: Int, pair: LanePair)]) {
        var places: [Place] = []
        places.reserveCapacity(call.pushes.count)
        var learning: [(index: Int, pair: LanePair)] = []
        core.table.withLock { table in
            let choices = table.choices(of: call.instance)
            // In their places here and below: a push is large.
            for index in call.pushes.indices {
                switch choices.choice(call.pushes[index].message) {
                case nil: places.append(Place())
                case .lane(let name)?:
                    // Nearly always the lane of the push before.
                    if let lane = places.last?.lane, lane.name == name {
                        places.append(Place(lane: lane))
                    } else {
                        places.append(Place(lane: table.lane(name)))
                    }
                case .either(let pair)?:
                    learning.append((places.count, pair))
                    places.append(Place())
                }
            }
        }
        return (places, learning)
    }

    /// Which pushes the lanes' memory has room for; the others are written as parked.
    ///
    /// - Parameter inMemory: false: all are.
    func decide(_ places: inout [Place], _ call: Call, inMemory: Bool) {
        for index in places.indices {
            if !call.slots.isEmpty { places[index].notBefore = call.slots[index] }
            guard let lane = places[index].lane else {
                core.observer.noApp(call.instance)
                continue
            }
            places[index].parked =
                !inMemory || places[index].notBefore != nil
                || !lane.wouldHold(call.pushes[index].pushClass, origin: call.holders[index]) {
                    call.pushes[index].message.addressNumber
                }
        }
    }

    /// Looks up what is known of the addresses; the first lane of the pair where nothing is.
    func learn(
        _ places: inout [Place], _ learning: [(index: Int, pair: LanePair)], _ pushes: [Push]
    ) async throws(StoreError) {
        let found = try await core.registry.find(
            learning.map {
                Environments.key(app: $0.pair.first.app, address: pushes[$0.index].message.address)
            })
        let now = core.world.now()
        for ((index, pair), record) in zip(learning, found) {
            let known = record.flatMap(Environments.read)
            let isKnown = record.map { known != nil && !Environments.isOld($0, now: now) } ?? false
            places[index] = Place(lane: core.lane(pair[known ?? .first]), environmentKnown: isKnown)
        }
    }

    /// What one commit gives to one lane.
    private struct Handed {
        /// As it stood before the commit.
        let routed: any LaneHandle
        /// A reload may have replaced it meanwhile.
        let lane: any LaneHandle
        var held: [LaneQueue.Entry] = []
        var parked: [PushClass] = []
        var putOff: [(pushClass: PushClass, due: UnixTime)] = []
    }

    func handOver(_ taken: Taken) {
        defer { if taken.isHeld { core.reclaim.end() } }
        // Nearly always one lane or two.
        var all: [Handed] = []
        taken.forEach { _, place, admission in
            guard let routed = place.lane, let admission else { return }
            // Asked once: an admission is large, and each question copies it.
            let push: OwedPush
            switch admission {
            case .owed(let owed): push = owed
            case .repeated: return core.observer.repeated(routed.name)
            case .gone: return
            }
            let at = all.lastIndex { $0.routed === routed } ?? all.count
            if at == all.count {
                all.append(Handed(routed: routed, lane: core.lane(routed.name) ?? routed))
                // Nearly always all of them.
                if !place.parked { all[at].held.reserveCapacity(taken.places.count) }
            }
            if let due = place.notBefore {
                core.observer.paced(routed.name)
                all[at].putOff.append((push.pushClass, due))
            } else if place.parked {
                all[at].parked.append(push.pushClass)
            } else {
                let isKnown = place.environmentKnown
                // In place: a copy that is put back would copy all entries for each of them.
                all[at].held.append(
                    LaneQueue.Entry(push: push, isFirst: true, environmentKnown: isKnown, term: taken.term))
            }
        }
        for handed in all {
            if !handed.putOff.isEmpty { handed.lane.putOff(handed.putOff) }
            handed.lane.admit(handed.held, parked: handed.parked)
        }
    }
}
