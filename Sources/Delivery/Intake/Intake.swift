package import PushModel

/// Why a request was not taken in.
package enum IntakeRefusal<Failure: PushError>: Error {
    /// The role's own refusal: a change did not meet its condition.
    case refused(Failure)
    /// The outbox is full or the store is out, and was for as long as the call could be held. Nothing was
    /// written, or nothing is known of it.
    case overloaded(retryAfter: Duration)
    /// As many pushes of this origin as allowed already wait for its pace. Nothing was written.
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
    /// - Returns: what the reply tells, once the verdict's commit stands on stable storage.
    func admit(
        _ verdict: PlainVerdict, instance: ConfiguredName, from client: ClientKey?, perMinute: Int,
        stay: Stay?
    ) async throws(Untaken) -> Told {
        // What its origin's pace has promised to the call.
        var promise = Pacer.Promise()
        do throws(Untaken) {
            try charge(verdict.charge, instance, perMinute, &promise)
            if !verdict.pages.isEmpty { try await make(verdict.pages) }
            guard !verdict.pushes.isEmpty || !verdict.changes.isEmpty else {
                return Told(outcomes: try await outcomes(verdict.wait, .nothing, in: nil))
            }
            let stay = stay ?? self.stay(bytes: verdict.pushes.reduce(0) { $0 + $1.message.bytes })
            let (call, withheld) = try call(of: verdict, instance, client, perMinute, &promise)
            let asked: Asked?
            do throws(StoreError) { asked = try await ask(call) } catch {
                asked = await askAgain(call, stay, after: error)
            }
            let taken = try taken(asked, verdict.references)
            let wait = withheld.flatMap { verdict.withheld?($0) } ?? verdict.wait
            return Told(outcomes: try await outcomes(wait, taken, in: stay), withheld: withheld)
        } catch {
            // Whatever the call was refused for, nothing of it is owed.
            core.pacer.giveBack(&promise)
            throw error
        }
    }

    // Steps that need not wait are separate functions: in a function that waits, each value whose size is
    // known only at run time (an instant) takes a block of the task's memory.

    /// What the store is to be asked for.
    ///
    /// - Returns: also the places of pushes that their pace has withheld, if any were.
    private func call(
        of verdict: PlainVerdict, _ instance: ConfiguredName, _ client: ClientKey?, _ perMinute: Int,
        _ promise: inout Pacer.Promise
    ) throws(Untaken) -> (Call, withheld: [Int]?) {
        var call = Call(instance: instance, pushes: verdict.pushes, changes: verdict.changes)
        call.origins = origins(of: verdict.pushes, at: instance)
        call.holders = holders(of: call, verdict.turns, client)
        guard perMinute > 0, !verdict.pushes.isEmpty else { return (call, nil) }
        switch pace(&call, perMinute, orRefuse: verdict.withheld == nil, &promise) {
        case .taken: return (call, nil)
        case .withheld(let places): return (call, places)
        case .refused(let retryAfter): throw .tooFarAhead(retryAfter: retryAfter)
        }
    }

    private func taken(_ asked: Asked?, _ listener: PushReferences?) throws(Untaken) -> Taken {
        switch asked {
        case nil: throw .overloaded
        case .taken(let taken)?:
            listener?.note(references(of: taken))
            return taken
        case .refused(let index)?: throw .refused(index: index)
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

    private func charge(
        _ charge: OriginCharge?, _ instance: ConfiguredName, _ perMinute: Int,
        _ promise: inout Pacer.Promise
    ) throws(Untaken) {
        guard perMinute > 0, let charge, charge.units > 0 else { return }
        let among = core.membership.relays
        let wait = core.pacer.charge(
            charge.units, of: custody.digest(ofOrigin: charge.origin, at: instance),
            perMinute: (perMinute + among - 1) / among, now: core.world.instant(), &promise)
        if let wait { throw .tooFarAhead(retryAfter: wait) }
    }

    /// Makes changes that need not be made together, a page at a time.
    private func make(_ pages: [[Change]]) async throws(Untaken) {
        for page in pages {
            let applied: Applied
            do throws(StoreError) { applied = try await core.registry.apply(page) } catch {
                core.observer.refused(error)
                throw .overloaded
            }
            if case .refused(let index) = applied { throw .refused(index: index) }
        }
    }

    /// What the store is asked for.
    struct Call {
        let instance: ConfiguredName
        var pushes: [Push]
        let changes: [Change]
        /// Of each push; worked out once, however often the store is asked.
        var origins: [Digest16] = []
        /// Whose turns they take.
        var holders = Holders.each([])
        /// Until when each push is put off; `nil`: not at all. None where origins have no pace.
        var slots: [UnixTime?] = []

        /// Whether the call may be asked again after that fault.
        ///
        /// If an answer was lost, the first asking may have been committed. Then the marks must be able to
        /// name it, and no change may be judged by its own effect.
        func canBeAskedAgain(after error: StoreError) -> Bool {
            guard error.retry == .later, !pushes.isEmpty else { return false }
            return error.code != .uncertain
                || changes.isEmpty && pushes.allSatisfy { $0.repeatIdentity != nil }
        }
    }

    /// The pushes of most calls take the turns of one holder.
    enum Holders {
        case one(Digest16)
        /// Of each push.
        case each([Digest16])

        subscript(index: Int) -> Digest16 {
            switch self {
            case .one(let holder): holder
            case .each(let holders): holders[index]
            }
        }

        fileprivate func without(_ dropped: [Int]) -> Holders {
            switch self {
            case .one: self
            case .each(let holders): .each(holders.without(dropped))
            }
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
        var origins: [Digest16] = []
        origins.reserveCapacity(pushes.count)
        for index in pushes.indices {
            if let last = origins.last, pushes[index - 1].origin == pushes[index].origin {
                origins.append(last)
            } else {
                origins.append(custody.digest(ofOrigin: pushes[index].origin, at: instance))
            }
        }
        return origins
    }

    /// It contains no address: a client is a number that only this process can derive, and a phone is the
    /// digest under which its registration is found.
    private func holders(of call: Call, _ turns: Turns, _ client: ClientKey?) -> Holders {
        switch (turns, client) {
        case (.byOrigin, _): return .each(call.origins)
        case (.byCredential(let credential), _):
            return .one(custody.digest(ofOrigin: credential, at: call.instance))
        case (.byClient, let client?) where client != .nobody:
            return .one(Digest16(high: number(of: client, at: call.instance), low: 0))
        case (.byClient, _), (.byAddress, _):
            return .each(
                call.pushes.map {
                    $0.registeredAddress ?? custody.digest(ofOrigin: $0.message.address, at: call.instance)
                })
        }
    }

    /// It differs by instance, so that rows do not show who calls at two of them. It is the process's own
    /// seeded hash, because a keyed digest for each call would cost more than its turns.
    private func number(of client: ClientKey, at instance: ConfiguredName) -> UInt64 {
        var hasher = Hasher()
        hasher.combine(instance.text)
        hasher.combine(client.value)
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
