package import PushModel
import Synchronization

/// Why a request was not taken in.
package enum IntakeRefusal<Failure: PushError>: Error {
    /// The role's own refusal: a change did not meet its condition.
    case refused(Failure)
    /// The outbox is full or the store is out, and was for as long as the call could be held. Nothing was
    /// written, or nothing is known of it.
    case overloaded(retryAfter: Duration)
    /// As much as may waits for this origin's pace already. Nothing was written.
    case tooFarAhead(retryAfter: Duration)
}

/// Takes a role's verdict in: one commit, then the lanes, then the reply (docs/architecture.md).
package struct Intake: Sendable {
    let core: DeliveryCore
    private let custody: any CustodyTaking

    init(core: DeliveryCore, custody: any CustodyTaking) {
        self.core = core
        self.custody = custody
    }

    /// - Parameter perMinute: pushes a minute at which those of each origin leave; 0: at once. Divided among
    ///   the relays on one store.
    /// - Parameter stay: the call's, where it began before.
    /// - Returns: the reply that the verdict plans, once its commit stands on stable storage.
    package func admit<Reply, Failure>(
        _ verdict: Verdict<Reply, Failure>, instance: ConfiguredName, perMinute: Int = 0, stay: Stay? = nil
    ) async throws(IntakeRefusal<Failure>) -> Reply {
        try charge(verdict, instance, perMinute)
        try await make(verdict.pages, verdict)
        guard !verdict.pushes.isEmpty || !verdict.changes.isEmpty else {
            let taken = Taken(pushes: [], term: 0, isHeld: false)
            return await reply(verdict.reply, taken, until: nil)
        }
        let stay = stay ?? self.stay(bytes: verdict.pushes.reduce(0) { $0 + $1.message.bytes })
        var verdict = verdict
        let paced = try pace(&verdict, of: instance, perMinute)
        let asked: Asked
        do throws(StoreError) { asked = try await ask(verdict, of: instance, paced) } catch {
            asked = try await askAgain(verdict, of: instance, paced, stay, after: error)
        }
        switch asked.accepted {
        case .committed(let admissions):
            let taken = Taken(
                pushes: Array(zipped(asked.places, admissions)), term: asked.term, isHeld: asked.isHeld)
            return await reply(verdict.reply, taken, until: stay.until)
        case .refused(let index):
            if asked.isHeld { core.reclaim.end() }
            guard let refusal = verdict.refusal else {
                throw .overloaded(retryAfter: core.limits.overloadedRetryAfter)
            }
            throw .refused(refusal(index))
        }
    }

    private func charge<Reply, Failure>(
        _ verdict: Verdict<Reply, Failure>, _ instance: ConfiguredName, _ perMinute: Int
    ) throws(IntakeRefusal<Failure>) {
        guard perMinute > 0, let charge = verdict.charge, charge.units > 0 else { return }
        let among = core.membership.relays
        let wait = core.pacer.charge(
            charge.units, of: custody.digest(ofOrigin: charge.origin, at: instance),
            perMinute: (perMinute + among - 1) / among, now: core.world.instant())
        if let wait { throw .tooFarAhead(retryAfter: wait) }
    }

    /// Makes changes that need not be made together, a page at a time.
    private func make<Reply, Failure>(
        _ pages: [[Change]], _ verdict: Verdict<Reply, Failure>
    ) async throws(IntakeRefusal<Failure>) {
        for page in pages {
            let applied: Applied
            do throws(StoreError) { applied = try await core.registry.apply(page) } catch {
                core.observer.refused(error)
                throw .overloaded(retryAfter: core.limits.overloadedRetryAfter)
            }
            guard case .refused(let index) = applied else { continue }
            guard let refusal = verdict.refusal else {
                throw .overloaded(retryAfter: core.limits.overloadedRetryAfter)
            }
            throw .refused(refusal(index))
        }
    }

    private typealias Asked = (accepted: Accepted, places: [Place], term: Int, isHeld: Bool)

    private func askAgain<Reply, Failure>(
        _ verdict: Verdict<Reply, Failure>, of instance: ConfiguredName, _ paced: Paced, _ stay: Stay,
        after error: StoreError
    ) async throws(IntakeRefusal<Failure>) -> Asked {
        do throws(StoreError) {
            return try await hold(stay, after: error, while: { verdict.canBeAskedAgain(after: $0) }) {
                () throws(StoreError) in
                try await ask(verdict, of: instance, paced)
            }
        } catch {
            throw .overloaded(retryAfter: core.limits.overloadedRetryAfter)
        }
    }

    /// Asks the store once.
    private func ask<Reply, Failure>(
        _ verdict: Verdict<Reply, Failure>, of instance: ConfiguredName, _ paced: Paced
    ) async throws(StoreError) -> Asked {
        let held = core.reclaim.begin()
        let term = core.lease.term
        do throws(StoreError) {
            let places = try await place(verdict.pushes, paced, of: instance, inMemory: held)
            let items = zip(verdict.pushes, places).compactMap { push, place -> Acceptance.Item? in
                place.lane.map {
                    Acceptance.Item(
                        push: push, lane: $0.name, parked: place.parked, notBefore: place.notBefore)
                }
            }
            let accepted = try await custody.accept(
                Acceptance(instance: instance, items: items, changes: verdict.changes))
            return (accepted, places, term, held)
        } catch {
            if held { core.reclaim.end() }
            core.reclaim.note(error)
            core.lease.note(error)
            core.observer.refused(error)
            throw error
        }
    }

    /// What was worked out once for a call, however often the store is asked.
    private struct Paced {
        /// Of each push.
        let origins: [Digest16]
        /// Until when each push is put off; `nil`: not at all. None where origins have no pace.
        let slots: [UnixTime?]
    }

    /// Most calls' pushes have one origin, so the last is compared first.
    private func origins(of pushes: [Push], at instance: ConfiguredName) -> [Digest16] {
        var last: (name: Secret, digest: Digest16)?
        return pushes.map { push in
            if let last, last.name == push.origin { return last.digest }
            let digest = custody.digest(ofOrigin: push.origin, at: instance)
            last = (push.origin, digest)
            return digest
        }
    }

    /// Puts the pushes off by their origins' pace. Those that it withholds leave the verdict, and the reply
    /// is as the role plans it then.
    private func pace<Reply, Failure>(
        _ verdict: inout Verdict<Reply, Failure>, of instance: ConfiguredName, _ perMinute: Int
    ) throws(IntakeRefusal<Failure>) -> Paced {
        let origins = origins(of: verdict.pushes, at: instance)
        guard perMinute > 0, !verdict.pushes.isEmpty else { return Paced(origins: origins, slots: []) }
        let among = core.membership.relays
        let now = core.world.now()
        let decision = core.pacer.take(
            verdict.pushes.map { ($0.pushClass, $0.custodyEnds.since(now)) }, of: origins,
            perMinute: (perMinute + among - 1) / among, now: core.world.instant(),
            excess: verdict.withheld == nil ? .refusesCall : .isWithheld)
        switch decision {
        case .slots(let slots, let withheld):
            let times = slots.map { $0 == .zero ? nil : now + $0 }
            guard !withheld.isEmpty, let reply = verdict.withheld else {
                return Paced(origins: origins, slots: times)
            }
            core.observer.withheld(instance, withheld.count)
            verdict.pushes = verdict.pushes.without(withheld)
            verdict.reply = reply(withheld)
            return Paced(origins: origins.without(withheld), slots: times)
        case .refused(let retryAfter): throw .tooFarAhead(retryAfter: retryAfter)
        }
    }

    /// Where one push goes. No lane: no app serves its target.
    private struct Place {
        var lane: (any LaneHandle)?
        var parked = false
        var environmentKnown = true
        /// Its origin's pace puts it off until then.
        var notBefore: UnixTime?
    }

    /// What one commit brought.
    private struct Taken {
        let pushes: [(place: Place, admission: Admission?)]
        /// The lease's term when the store was asked.
        let term: Int
        /// The store's rows stand as in memory, and ``Reclaim`` waits until they are.
        let isHeld: Bool
    }

    /// - Parameter inMemory: false: all are written as parked.
    private func place(
        _ pushes: [Push], _ paced: Paced, of instance: ConfiguredName, inMemory: Bool
    ) async throws(StoreError) -> [Place] {
        var places: [Place] = []
        places.reserveCapacity(pushes.count)
        var learning: [(index: Int, pair: LanePair)] = []
        core.table.withLock { table in
            for push in pushes {
                switch table.apps.choice(push.message, of: instance) {
                case nil: places.append(Place())
                case .lane(let name)?: places.append(Place(lane: table.lanes[name]))
                case .either(let pair)?:
                    learning.append((places.count, pair))
                    places.append(Place())
                }
            }
        }
        if !learning.isEmpty { try await learnPlaces(&places, learning, pushes) }
        for (index, slot) in paced.slots.enumerated() { places[index].notBefore = slot }
        decidePlaces(&places, pushes, paced.origins, instance, inMemory)
        return places
    }

    /// Which pushes the lanes' memory has room for; the others are written as parked.
    private func decidePlaces(
        _ places: inout [Place], _ pushes: [Push], _ origins: [Digest16], _ instance: ConfiguredName,
        _ inMemory: Bool
    ) {
        for index in places.indices {
            guard let lane = places[index].lane else {
                core.observer.noApp(instance)
                continue
            }
            places[index].parked =
                !inMemory || places[index].notBefore != nil
                || !lane.wouldHold(pushes[index].pushClass, origin: origins[index])
        }
    }

    /// Looks up what is known of the addresses; the first lane of the pair where nothing is.
    private func learnPlaces(
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

    /// Admissions stand for routed pushes only; the others have none.
    private func zipped(_ places: [Place], _ admissions: [Admission]) -> [(Place, Admission?)] {
        var next = admissions.makeIterator()
        return places.map { ($0, $0.lane == nil ? nil : next.next()) }
    }

    /// - Parameter until: when the call's stay ends; `nil`: it has waited for nothing.
    private func reply<Reply>(
        _ timing: ReplyTiming<Reply>, _ taken: Taken, until: ContinuousClock.Instant?
    ) async -> Reply {
        switch timing {
        case .now(let reply):
            handOver(taken)
            return reply
        case .afterFirstAttempt(let deadline, let compose):
            return compose(await firstOutcomes(taken, by: deadline, until: until).outcomes)
        case .withdrawingAfterFirstAttempt(let deadline, let undoing, let compose):
            let (outcomes, group) = await firstOutcomes(taken, by: deadline, until: until, undoing: undoing)
            if outcomes.contains(where: \.isFailure) { await undo(group?.takeUndoing() ?? undoing) }
            return compose(outcomes)
        }
    }

    /// What was not undone with a withdrawal: there was none, but a push that no app serves, or the repeat of
    /// one that has failed already.
    private func undo(_ changes: [Change]) async {
        guard !changes.isEmpty else { return }
        // The peer hears of the failure in any case; a call with other bytes is taken without this.
        do throws(StoreError) { _ = try await core.registry.apply(changes) } catch {
            core.observer.refused(error)
        }
    }

    private func firstOutcomes(
        _ taken: Taken, by deadline: Duration, until: ContinuousClock.Instant?, undoing: [Change]? = nil
    ) async -> (outcomes: [FirstOutcome], group: FirstAttempts.Group?) {
        let pushes = taken.pushes
        let now = core.world.instant()
        // What the call was held for is gone from what its reply may wait.
        let wait = until.map { core.limits.hold > .zero ? min(deadline, $0 - now) : deadline } ?? deadline
        let group =
            pushes.isEmpty
            ? nil
            : core.firstAttempts.group(count: pushes.count, deadline: now + wait, undoing: undoing)
        guard let group else {
            handOver(taken)
            return (pushes.map { $0.admission == nil ? .dropped : .pending }, nil)
        }
        // Watched before the lane has the push, so that no answer can come too early.
        for (index, (place, admission)) in pushes.enumerated() {
            watch(admission, at: index, of: place, in: group, deadline: wait)
        }
        handOver(taken)
        return (await group.wait(), group)
    }

    /// Nobody waits for a push that is put off, nor for the repeat of one that would be.
    private func watch(
        _ admission: Admission?, at index: Int, of place: Place, in group: FirstAttempts.Group,
        deadline: Duration
    ) {
        let wait = place.notBefore == nil ? place.lane?.expectedWait() : nil
        switch admission {
        case nil: group.note(.dropped, at: index)
        case .repeated(_, let first?)?: group.note(.known(first), at: index)
        case .repeated(let id, nil)?:
            if let known = core.firstAttempts.known(id) {
                group.note(known, at: index)
            } else {
                watch(id, in: wait, at: index, group, deadline)
            }
        case .owed(let push)?:
            watch(push.id, in: place.parked ? nil : wait, at: index, group, deadline)
        }
    }

    /// Nobody waits for a lane that is halted or too far behind.
    private func watch(
        _ id: PushID, in wait: Duration?, at index: Int, _ group: FirstAttempts.Group, _ deadline: Duration
    ) {
        if let wait, wait < deadline {
            core.firstAttempts.watch(id, for: group, at: index)
        } else {
            group.note(.pending, at: index)
        }
    }

    /// What one commit gives to one lane.
    private struct Handed {
        let lane: any LaneHandle
        var held: [LaneQueue.Entry] = []
        var parked: [PushClass] = []
        var putOff: [(pushClass: PushClass, due: UnixTime)] = []
    }

    private func handOver(_ taken: Taken) {
        defer { if taken.isHeld { core.reclaim.end() } }
        var entries: [LaneName: Handed] = [:]
        for (place, admission) in taken.pushes {
            guard let routed = place.lane, let admission else { continue }
            // A reload may have replaced the lane while the commit was made.
            let lane = core.lane(routed.name) ?? routed
            switch admission {
            case .repeated: core.observer.repeated(lane.name)
            case .owed(let push):
                if let due = place.notBefore {
                    core.observer.paced(lane.name)
                    entries[lane.name, default: Handed(lane: lane)].putOff.append((push.pushClass, due))
                } else if place.parked {
                    entries[lane.name, default: Handed(lane: lane)].parked.append(push.pushClass)
                } else {
                    let entry = LaneQueue.Entry(
                        push: push, isFirst: true, environmentKnown: place.environmentKnown, term: taken.term)
                    // In place: a copy that is put back would copy all entries for each of them.
                    entries[lane.name, default: Handed(lane: lane)].held.append(entry)
                }
            }
        }
        for handed in entries.values {
            handed.lane.putOff(handed.putOff)
            handed.lane.admit(handed.held, parked: handed.parked)
        }
    }
}

extension Verdict {
    /// Whether the same verdict may be asked for once more after that fault.
    ///
    /// When an answer was lost, the first asking may stand: then the marks must name it, and no change may be
    /// judged by what it has made itself.
    fileprivate func canBeAskedAgain(after error: StoreError) -> Bool {
        guard error.retry == .later, !pushes.isEmpty else { return false }
        return error.code != .uncertain
            || changes.isEmpty && pushes.allSatisfy { $0.repeatIdentity != nil }
    }
}

extension Array {
    /// - Parameter dropped: ascending.
    fileprivate func without(_ dropped: [Int]) -> [Element] {
        var kept: [Element] = []
        kept.reserveCapacity(count - dropped.count)
        var next = 0
        for index in dropped {
            kept += self[next..<index]
            next = index + 1
        }
        kept += self[next...]
        return kept
    }
}
