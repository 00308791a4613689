package import PushModel

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
    /// - Parameter client: who called; `nil`: somebody in this process.
    /// - Parameter stay: the call's, where it began before.
    /// - Returns: the reply that the verdict plans, once its commit stands on stable storage.
    package func admit<Reply, Failure>(
        _ verdict: Verdict<Reply, Failure>, instance: ConfiguredName, from client: ClientKey? = nil,
        perMinute: Int = 0, stay: Stay? = nil
    ) async throws(IntakeRefusal<Failure>) -> Reply {
        // What its origin's pace has promised to the call.
        var promise = Pacer.Promise()
        do throws(IntakeRefusal<Failure>) {
            try charge(verdict, instance, perMinute, &promise)
            if !verdict.pages.isEmpty { try await make(verdict.pages, verdict) }
            guard !verdict.pushes.isEmpty || !verdict.changes.isEmpty else {
                return await reply(verdict.reply, .nothing, until: nil)
            }
            let stay = stay ?? self.stay(bytes: verdict.pushes.reduce(0) { $0 + $1.message.bytes })
            var call = Call(instance: instance, pushes: verdict.pushes, changes: verdict.changes)
            call.origins = origins(of: verdict.pushes, at: instance)
            call.holders = holders(of: call, verdict.turns, client)
            var timing = verdict.reply
            if perMinute > 0, !verdict.pushes.isEmpty {
                switch pace(&call, perMinute, orRefuse: verdict.withheld == nil, &promise) {
                case .taken: break
                case .withheld(let places): if let reply = verdict.withheld { timing = reply(places) }
                case .refused(let retryAfter): throw .tooFarAhead(retryAfter: retryAfter)
                }
            }
            let asked: Asked?
            do throws(StoreError) { asked = try await ask(call) } catch {
                asked = await askAgain(call, stay, after: error)
            }
            switch asked {
            case nil: throw .overloaded(retryAfter: core.limits.overloadedRetryAfter)
            case .taken(let taken)?:
                verdict.references?.note(references(of: taken))
                return await reply(timing, taken, until: stay.until)
            case .refused(let index)?:
                guard let refusal = verdict.refusal else {
                    throw .overloaded(retryAfter: core.limits.overloadedRetryAfter)
                }
                throw .refused(refusal(index))
            }
        } catch {
            // However long it was held, and whatever it was refused for: nothing of it is owed.
            core.pacer.giveBack(&promise)
            throw error
        }
    }

    private func references(of taken: Taken) -> [PushID?] {
        var ids: [PushID?] = []
        taken.forEach { _, _, admission in
            switch admission {
            case .owed(let push)?: ids.append(push.sentAs)
            case .repeated(let id, _)?: ids.append(custody.reference(of: id))
            case .gone?, nil: ids.append(nil)
            }
        }
        return ids
    }

    private func charge<Reply, Failure>(
        _ verdict: Verdict<Reply, Failure>, _ instance: ConfiguredName, _ perMinute: Int,
        _ promise: inout Pacer.Promise
    ) throws(IntakeRefusal<Failure>) {
        guard perMinute > 0, let charge = verdict.charge, charge.units > 0 else { return }
        let among = core.membership.relays
        let wait = core.pacer.charge(
            charge.units, of: custody.digest(ofOrigin: charge.origin, at: instance),
            perMinute: (perMinute + among - 1) / among, now: core.world.instant(), &promise)
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

    /// What the store is asked for. Apart from the verdict, whose types are its protocol's: what depends on
    /// them is looked up at every step (decision 0073).
    struct Call {
        let instance: ConfiguredName
        var pushes: [Push]
        let changes: [Change]
        /// Of each push; worked out once, however often the store is asked.
        var origins: [Digest16] = []
        /// Whose turns they take.
        var holders: [Digest16] = []
        /// Until when each push is put off; `nil`: not at all. None where origins have no pace.
        var slots: [UnixTime?] = []

        /// Whether the same may be asked for once more after that fault.
        ///
        /// When an answer was lost, the first asking may stand: then the marks must name it, and no change
        /// may be judged by what it has made itself.
        func canBeAskedAgain(after error: StoreError) -> Bool {
            guard error.retry == .later, !pushes.isEmpty else { return false }
            return error.code != .uncertain
                || changes.isEmpty && pushes.allSatisfy { $0.repeatIdentity != nil }
        }
    }

    private enum Asked {
        case taken(Taken)
        /// A change did not meet its condition.
        case refused(index: Int)
    }

    /// - Returns: `nil` when the store is out or full for as long as the call may stay.
    private func askAgain(_ call: Call, _ stay: Stay, after error: StoreError) async -> Asked? {
        do throws(StoreError) {
            return try await hold(stay, after: error, while: { call.canBeAskedAgain(after: $0) }) {
                () throws(StoreError) in
                try await ask(call)
            }
        } catch {
            return nil
        }
    }

    /// Asks the store once.
    private func ask(_ call: Call) async throws(StoreError) -> Asked {
        let held = core.reclaim.begin()
        let term = core.lease.term
        do throws(StoreError) {
            var (places, learning) = route(call)
            if !learning.isEmpty { try await learn(&places, learning, call.pushes) }
            decide(&places, call, inMemory: held)
            let accepted = try await custody.accept(
                Acceptance(
                    instance: call.instance, items: Self.items(call, places), changes: call.changes))
            switch accepted {
            case .committed(let admissions):
                return .taken(Taken(places: places, admissions: admissions, term: term, isHeld: held))
            case .refused(let index):
                if held { core.reclaim.end() }
                return .refused(index: index)
            }
        } catch {
            if held { core.reclaim.end() }
            core.reclaim.note(error)
            core.lease.note(error)
            core.observer.refused(error)
            throw error
        }
    }

    private static func items(_ call: Call, _ places: [Place]) -> [Acceptance.Item] {
        var items: [Acceptance.Item] = []
        items.reserveCapacity(places.count)
        for (index, place) in places.enumerated() {
            guard let lane = place.lane else { continue }
            items.append(
                Acceptance.Item(
                    push: call.pushes[index], origin: call.origins[index],
                    holder: call.holders[index], lane: lane.name,
                    parked: place.parked, notBefore: place.notBefore))
        }
        return items
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

    /// Nobody's address is in it: a client is a number that this process alone can make of one, and a phone
    /// the digest under which its registration is found.
    private func holders(of call: Call, _ turns: Turns, _ client: ClientKey?) -> [Digest16] {
        switch (turns, client) {
        case (.byOrigin, _): return call.origins
        case (.byCredential(let credential), _):
            let digest = custody.digest(ofOrigin: credential, at: call.instance)
            return [Digest16](repeating: digest, count: call.pushes.count)
        case (.byClient, let client?) where client != .nobody:
            let number = number(of: client, at: call.instance)
            return [Digest16](repeating: Digest16(high: number, low: 0), count: call.pushes.count)
        case (.byClient, _), (.byAddress, _):
            return call.pushes.map {
                $0.registeredAddress ?? custody.digest(ofOrigin: $0.message.address, at: call.instance)
            }
        }
    }

    /// Another at each instance, so that rows do not tell who calls at two of them. By the process's own
    /// seeded hash, for a keyed digest of each call would cost more than its turns.
    private func number(of client: ClientKey, at instance: ConfiguredName) -> UInt64 {
        var hasher = Hasher()
        hasher.combine(instance)
        hasher.combine(client)
        return UInt64(bitPattern: Int64(hasher.finalize()))
    }

    private enum Paced {
        case taken
        /// The pushes at those places, in ascending order, have left the call.
        case withheld([Int])
        case refused(retryAfter: Duration)
    }

    /// Puts the pushes off by their origins' pace.
    ///
    /// - Parameter refuses: a push that is too far ahead refuses the call. Otherwise such pushes leave it.
    private func pace(
        _ call: inout Call, _ perMinute: Int, orRefuse refuses: Bool, _ promise: inout Pacer.Promise
    ) -> Paced {
        let among = core.membership.relays
        let now = core.world.now()
        let decision = core.pacer.take(
            call.pushes.map { ($0.pushClass, $0.custodyEnds.since(now)) }, of: call.origins,
            perMinute: (perMinute + among - 1) / among, now: core.world.instant(),
            excess: refuses ? .refusesCall : .isWithheld, &promise)
        switch decision {
        case .slots(let slots, let withheld):
            call.slots = slots.map { $0 == .zero ? nil : now + $0 }
            guard !withheld.isEmpty else { return .taken }
            core.observer.withheld(call.instance, withheld.count)
            call.pushes = call.pushes.without(withheld)
            call.origins = call.origins.without(withheld)
            call.holders = call.holders.without(withheld)
            return .withheld(withheld)
        case .refused(let retryAfter): return .refused(retryAfter: retryAfter)
        }
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
        let now = core.world.instant()
        // What the call was held for is gone from what its reply may wait.
        let wait = until.map { core.limits.hold > .zero ? min(deadline, $0 - now) : deadline } ?? deadline
        let group =
            taken.places.isEmpty
            ? nil
            : core.firstAttempts.group(count: taken.places.count, deadline: now + wait, undoing: undoing)
        guard let group else {
            // Before the lane has them: for a repeat that waits they must not be withdrawn.
            let outcomes = unwaited(taken, withdraws: undoing != nil)
            handOver(taken)
            return (outcomes, nil)
        }
        // Watched before the lane has the push, so that no answer can come too early.
        taken.forEach { index, place, admission in
            watch(admission, at: index, of: place, in: group, deadline: wait)
        }
        handOver(taken)
        return (await group.wait(), group)
    }

    /// What a reply says that waits for nothing.
    private func unwaited(_ taken: Taken, withdraws: Bool) -> [FirstOutcome] {
        var outcomes: [FirstOutcome] = []
        taken.forEach { _, place, admission in
            let id: PushID? =
                switch admission {
                case .owed(let push)?: push.id
                case .repeated(let id, nil)?: id
                case .repeated?, .gone?, nil: nil
                }
            if withdraws, let id, !core.firstAttempts.promise(id) {
                outcomes.append(.known(.retry))
            } else {
                outcomes.append(place.lane == nil ? .dropped : .pending)
            }
        }
        return outcomes
    }

    /// Nobody waits for a push that is put off, nor for the repeat of one that would be.
    private func watch(
        _ admission: Admission?, at index: Int, of place: Place, in group: FirstAttempts.Group,
        deadline: Duration
    ) {
        let wait = place.notBefore == nil ? place.lane?.expectedWait() : nil
        switch admission {
        case nil: group.note(.dropped, at: index)
        case .gone?: group.note(.known(.rejected), at: index)
        case .repeated(_, let first?)?: group.note(.known(first), at: index)
        case .repeated(let id, nil)?:
            if !core.firstAttempts.tell(id, to: group, at: index) {
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
        if wait.map({ $0 < deadline }) ?? false || group.withdraws && !core.firstAttempts.promise(id) {
            core.firstAttempts.watch(id, for: group, at: index)
        } else {
            group.note(.pending, at: index)
        }
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
