import Delivery
import PushModel
import Synchronization

// MARK: Pace

extension PushLedger {
    func isOwed(_ number: Int) -> Bool {
        state.withLock { state in state.pages[number].map { $0.isOwed && $0.isWritten } ?? false }
    }

    /// Whether a push was tried.
    func isTried(_ number: Int) -> Bool { state.withLock { $0.pages[number]?.isTried ?? false } }

    /// A provider was asked to send it.
    func tries(_ number: Int, _ id: PushID, in lane: LaneName, by life: Life) {
        let at = scheduler.elapsed
        state.withLock { state in
            state.pages[number, default: Page()].isTried = true
            state.pages[number, default: Page()].triedAt = at
            state.paces.leaves(id)
            if state.paces.tries(number, in: Paces.Way(lane: lane, life: life), at: at) {
                state.broke(.tooManyAttempts, number)
            }
        }
    }

    /// A push service answered this lane.
    func heard(_ outcome: Outcome, in lane: LaneName, by life: Life) {
        state.withLock { state in
            let way = Paces.Way(lane: lane, life: life)
            state.paces.unheard[way] = []
            if outcome == .misconfigured(.credential) { state.paces.refusals[way, default: 0] += 1 }
        }
    }

    /// An urgent push stands in the store and is due.
    func waits(_ push: OwedPush) {
        // A lane that is halted and let go in turns has an order of its own.
        guard push.pushClass == .urgent, traits.poisoned == nil, traits.phoneQuota == nil else { return }
        let at = scheduler.elapsed
        state.withLock { state in
            let number = state.numbers[push.id] ?? 0
            // A store that hangs may say so only when another process has tried it.
            guard state.pages[number]?.triedAt ?? .zero == .zero else { return }
            state.paces.urgent[push.id] = Paces.Urgent(
                number: number, row: push.row, lane: push.lane, custodyEnds: push.custodyEnds, due: at,
                dueInStore: at)
        }
    }

    /// Anyone who asks this store is not answered in time.
    ///
    /// - Parameter end: when it will be; `nil`: now.
    func troubled(_ process: Int, until end: Duration? = nil) {
        let at = end ?? scheduler.elapsed
        state.withLock { state in
            state.paces.troubles[process] = max(at, state.paces.troubles[process] ?? .zero)
        }
    }

    /// What the relay made of an answer, in the order of its breaker.
    func judged(_ attempt: Attempt, by life: Life) {
        let way = Paces.Way(lane: attempt.lane, life: life)
        let at = scheduler.elapsed
        state.withLock { state in
            let page = state.numbers[attempt.id].flatMap { state.pages[$0] }
            note(attempt, of: page?.device, by: life, at: at, in: &state)
            // A refusal that another environment may yet take back is nobody's word.
            guard let page, !page.isRefusedByUs, attempt.next != .elsewhere else { return }
            switch attempt.reason {
            case .notReached, .connectionLost, .deadlineExceeded, .leaseRanOut, .credentialUnavailable,
                .foreignAnswer, .unreadable:
                return
            case .badDeviceToken, .senderIdMismatch: state.paces.blamed[way, default: []].insert(page.origin)
            default: break
            }
            // The lane that a reload put in the place of the one that sent it has not heard of it.
            guard page.triedAt > state.paces.renewed[life.process] ?? .zero else { return }
            state.paces.known[way, default: []].insert(page.origin)
            if attempt.outcome == .accepted { state.paces.blamed[way] = [] }
        }
    }

    /// A lane stops for the sake of its credential: its own service has said so, and several times.
    func refused(_ lane: LaneName, by life: Life) {
        state.withLock { state in
            guard !state.paces.isRefused(Paces.Way(lane: lane, life: life)) else { return }
            state.broke(.haltedByStray)
        }
    }

    /// A lane stops for the sake of its targets.
    func halted(_ lane: LaneName, by life: Life) {
        state.withLock { state in
            let way = Paces.Way(lane: lane, life: life)
            let isAlone = state.paces.blamed[way]?.count ?? 0 < 2
            // An app of one origin has no other witness.
            guard isAlone, state.paces.known[way]?.count ?? 0 > 1 else { return }
            state.broke(.haltedByOne)
        }
    }

    /// Lanes of a process are new, and know of nobody.
    func renewed(_ process: Int) {
        let at = scheduler.elapsed
        state.withLock { state in
            state.paces.renewed[process] = at
            state.words.lanes = state.words.lanes.filter { $0.key.life.process != process }
            state.paces.known = state.paces.known.filter { $0.key.life.process != process }
            state.paces.blamed = state.paces.blamed.filter { $0.key.life.process != process }
        }
    }
}
