package import PushModel
import Synchronization

/// Why a request was not taken in.
package enum IntakeRefusal<Failure: PushError>: Error {
    /// The role's own refusal: a change did not meet its condition.
    case refused(Failure)
    /// The outbox is full or the store is out: try again later. Nothing was written.
    case overloaded(retryAfter: Duration)
}

/// Takes a role's verdict in: one commit, then the lanes, then the reply (DESIGN §2.3, §2.6).
package struct Intake: Sendable {
    private let core: DeliveryCore

    init(core: DeliveryCore) { self.core = core }

    /// - Returns: the reply that the verdict plans, once its commit stands on stable storage.
    package func admit<Reply, Failure>(
        _ verdict: Verdict<Reply, Failure>, instance: ConfiguredName
    ) async throws(IntakeRefusal<Failure>) -> Reply {
        guard !verdict.pushes.isEmpty || !verdict.changes.isEmpty else {
            return await reply(verdict.reply, Taken(pushes: [], term: 0, isHeld: false))
        }
        let routes: [Route]
        let accepted: Accepted
        let held = core.reclaim.begin()
        let term = core.lease.term
        do throws(StoreError) {
            routes = try await route(verdict.pushes, of: instance, inMemory: held)
            let items = zip(verdict.pushes, routes).compactMap { push, route -> Acceptance.Item? in
                route.lane.map { Acceptance.Item(push: push, lane: $0.name, parked: route.parked) }
            }
            accepted = try await core.outbox.accept(
                Acceptance(instance: instance, items: items, changes: verdict.changes))
        } catch {
            if held { core.reclaim.end() }
            core.reclaim.note(error)
            core.lease.note(error)
            core.observer.refused(error)
            throw .overloaded(retryAfter: core.limits.overloadedRetryAfter)
        }
        switch accepted {
        case .committed(let admissions):
            let taken = Taken(pushes: Array(zipped(routes, admissions)), term: term, isHeld: held)
            return await reply(verdict.reply, taken)
        case .refused(let index):
            if held { core.reclaim.end() }
            guard let refusal = verdict.refusal else {
                throw .overloaded(retryAfter: core.limits.overloadedRetryAfter)
            }
            throw .refused(refusal(index))
        }
    }

    /// Where one push goes. No lane: no app serves its target.
    private struct Route {
        var lane: (any LaneDoor)?
        var parked = false
        var environmentKnown = true
    }

    /// What one commit brought.
    private struct Taken {
        let pushes: [(route: Route, admission: Admission?)]
        /// The lease's term when the store was asked.
        let term: Int
        /// The store's rows stand as in memory, and ``Reclaim`` waits until they are.
        let isHeld: Bool
    }

    /// - Parameter inMemory: false: all are written as parked.
    private func route(
        _ pushes: [Push], of instance: ConfiguredName, inMemory: Bool
    ) async throws(StoreError) -> [Route] {
        var routes: [Route] = []
        routes.reserveCapacity(pushes.count)
        var learning: [(index: Int, app: ConfiguredName)] = []
        core.table.withLock { table in
            for push in pushes {
                switch table.apps.route(push.message, of: instance) {
                case nil: routes.append(Route())
                case .lane(let name)?: routes.append(Route(lane: table.lanes[name]))
                case .learn(let app)?:
                    learning.append((routes.count, app))
                    routes.append(Route())
                }
            }
        }
        if !learning.isEmpty { try await learnRoutes(&routes, learning, pushes) }
        decidePlaces(&routes, pushes, instance, inMemory)
        return routes
    }

    /// Which pushes the lanes' memory has room for; the others are written as parked.
    private func decidePlaces(
        _ routes: inout [Route], _ pushes: [Push], _ instance: ConfiguredName, _ inMemory: Bool
    ) {
        // Nearly always all pushes of one call have one origin.
        var last: (name: Secret, digest: Digest16)?
        for index in routes.indices {
            guard let lane = routes[index].lane else {
                core.observer.noApp(instance)
                continue
            }
            let push = pushes[index]
            let origin: Digest16
            if let last, last.name == push.origin {
                origin = last.digest
            } else {
                origin = core.outbox.digest(ofOrigin: push.origin, at: instance)
                last = (push.origin, origin)
            }
            routes[index].parked = !inMemory || !lane.wouldHold(push.pushClass, origin: origin)
        }
    }

    /// Looks up what is known of the addresses' environments; production where nothing is.
    private func learnRoutes(
        _ routes: inout [Route], _ learning: [(index: Int, app: ConfiguredName)], _ pushes: [Push]
    ) async throws(StoreError) {
        let found = try await core.registry.find(
            learning.map { Environments.key(app: $0.app, address: pushes[$0.index].message.address) })
        let now = core.world.now()
        for ((index, app), record) in zip(learning, found) {
            let known = record.flatMap(Environments.read)
            let name = LaneName(app: app, service: .apns, environment: known ?? .production)
            let isKnown = record.map { known != nil && !Environments.isOld($0, now: now) } ?? false
            routes[index] = Route(lane: core.lane(name), environmentKnown: isKnown)
        }
    }

    /// Admissions stand for routed pushes only; the others have none.
    private func zipped(_ routes: [Route], _ admissions: [Admission]) -> [(Route, Admission?)] {
        var next = admissions.makeIterator()
        return routes.map { ($0, $0.lane == nil ? nil : next.next()) }
    }

    private func reply<Reply>(_ plan: ReplyPlan<Reply>, _ taken: Taken) async -> Reply {
        switch plan {
        case .now(let reply):
            handOver(taken)
            return reply
        case .afterFirstAttempt(let deadline, let compose):
            let pushes = taken.pushes
            let group =
                pushes.isEmpty
                ? nil
                : core.firstAttempts.group(
                    count: pushes.count, deadline: core.world.instant() + deadline)
            guard let group else {
                handOver(taken)
                return compose(pushes.map { $0.admission == nil ? .dropped : .pending })
            }
            // Watched before the lane has the push, so that no answer can come too early.
            for (index, (route, admission)) in pushes.enumerated() {
                watch(admission, at: index, of: route, in: group, deadline: deadline)
            }
            handOver(taken)
            return compose(await group.wait())
        }
    }

    private func watch(
        _ admission: Admission?, at index: Int, of route: Route, in group: FirstAttempts.Group,
        deadline: Duration
    ) {
        switch admission {
        case nil: group.note(.dropped, at: index)
        case .repeated(_, let first?)?: group.note(.known(first), at: index)
        case .repeated(let id, nil)?:
            if let known = core.firstAttempts.known(id) {
                group.note(known, at: index)
            } else {
                watch(id, in: route.lane?.expectedWait(), at: index, group, deadline)
            }
        case .owed(let push)?:
            let wait = route.parked ? nil : route.lane?.expectedWait()
            watch(push.id, in: wait, at: index, group, deadline)
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

    private func handOver(_ taken: Taken) {
        defer { if taken.isHeld { core.reclaim.end() } }
        var entries: [LaneName: (lane: any LaneDoor, held: [LaneQueue.Entry], parked: Int)] = [:]
        for (route, admission) in taken.pushes {
            guard let routed = route.lane, let admission else { continue }
            // A reload may have replaced the lane while the commit was made.
            let lane = core.lane(routed.name) ?? routed
            switch admission {
            case .repeated: core.observer.repeated(lane.name)
            case .owed(let push):
                var here = entries[lane.name] ?? (lane, [], 0)
                if route.parked {
                    here.parked += 1
                } else {
                    here.held.append(
                        LaneQueue.Entry(
                            push: push, isFirst: true, environmentKnown: route.environmentKnown,
                            term: taken.term))
                }
                entries[lane.name] = here
            }
        }
        for (lane, held, parked) in entries.values { lane.admit(held, parked: parked) }
    }
}
