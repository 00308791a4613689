import Delivery
import PushModel
import Synchronization

/// Who did what to which push: kept by what stands outside the relay, judged by the law.
///
/// Every accepted push ends in exactly one outcome, is sent at most once unless its fate was unknown, and no
/// registration is lost.
final class PushLedger: Sendable {
    /// One life of one process.
    struct Life: Hashable, Sendable, CustomStringConvertible {
        let process: Int
        let life: Int

        var description: String { "process \(process).\(life)" }
    }

    struct Answered: Hashable {
        let life: Life
        let id: PushID
    }

    struct Page {
        var device = 0
        /// How often its device's registration had ended or changed when it was offered.
        var leaving = 0
        var custodyEnds = UnixTime.distantFuture
        var origin = ""
        /// Its address is made up, and the provider itself sees that.
        var isRefusedByUs = false
        var isPoisoned = false
        /// The store has it, as far as the relay has heard.
        var isWritten = false
        var isTried = false
        var triedAt = Duration.zero
        /// The peer was told that it is owed.
        var isOwed = false
        var owedAt = UnixTime.distantPast
        /// Lives that had an answer after which nothing more is to be sent, and to which of its names.
        var answered: Set<Answered> = []
        /// Requests that have left and have not come back.
        var underWay: Set<Answered> = []
        var accepted: [(id: PushID, at: UnixTime)] = []
        var ended = false
        /// What happened to it, for anyone who reads a failing seed.
        var story: [String] = []
    }

    struct State {
        var pages: [Int: Page] = [:]
        var paces = Paces()
        var words = Words()
        var leavings = Leavings()
        /// Rows that do not open: nobody can send them.
        var spoilt: Set<PushID> = []
        var numbers: [PushID: Int] = [:]
        /// The ids whose settling the store confirmed, for good.
        var settled: Set<PushID> = []
        var registrations: [Int: UInt64] = [:]
        var dead: Set<Int> = []
        var violations: [Violation] = []
        var doubled = 0
        var standing: [String] = []
        var chronicle: [String] = []
        var marksMayGo = false
        var clocksAreWrong = false

        mutating func broke(_ law: Violation.Law, _ number: Int = 0) {
            violations.append(Violation(law: law, number: number))
        }

        /// What is owed, can be sent, and has not come to an end.
        func open(at now: UnixTime) -> [Int: Page] {
            let spoilt = Set(spoilt.compactMap { numbers[$0] })
            return pages.filter { number, page in
                page.isOwed && page.isWritten && !page.ended && page.custodyEnds > now && !mayGo(page)
                    && !spoilt.contains(number)
            }
        }
    }

    /// The origin that makes addresses up: a lane that knows of no other may halt by its word, at its cost.
    static let hostile = "hostile"
    /// How long a repeat is one (decision 0003).
    private static let markSpan = Duration.seconds(600)
    /// Lines of one story: enough for the longest back-off of a run.
    private static let storyLines = 200

    let failures = Failures()
    let state = Mutex(State())
    let scheduler: Scheduler
    let traits: Traits
    /// Whether anybody will read what happened.
    let isTold: Bool

    init(_ scheduler: Scheduler, _ traits: Traits, isTold: Bool) {
        self.isTold = isTold
        self.scheduler = scheduler
        self.traits = traits
    }

    /// What happened to a push, line by line.
    func story(of number: Int) -> [String] { state.withLock { $0.pages[number]?.story ?? [] } }

    /// What happened to a device's registration.
    func story(ofDevice device: Int) -> [String] { story(of: -1 - device) }
    func tell(device: Int, _ line: @autoclosure () -> String) { tell(-1 - device, line()) }

    func tell(_ number: Int, _ line: @autoclosure () -> String) {
        guard isTold else { return }
        let at = scheduler.elapsed
        let text = line()
        state.withLock { state in
            guard state.pages[number]?.story.count ?? 0 < Self.storyLines else { return }
            state.pages[number, default: Page()].story.append("\(at) \(text)")
        }
    }

    var violations: [Violation] { state.withLock(\.violations) }
    /// What happened to the relay, in order: for anyone who reads a failing seed.
    var chronicle: [String] { state.withLock(\.chronicle) }

    func happened(_ what: @autoclosure () -> String) {
        guard isTold else { return }
        let at = scheduler.elapsed
        let text = what()
        state.withLock { $0.chronicle.append("\(at) \(text)") }
    }

    /// What is still owed at the end, a line for each, and by whom.
    var standing: [String] {
        get { state.withLock(\.standing) }
        set { state.withLock { $0.standing = newValue } }
    }
    /// Pushes that devices saw twice, each by a fate that was unknown.
    var doubled: Int { state.withLock(\.doubled) }
    var owed: Int { state.withLock { $0.pages.values.count(where: \.isOwed) } }

    func record(_ law: Violation.Law, _ number: Int = 0) {
        state.withLock { $0.broke(law, number) }
    }

    /// The clock by which marks age has jumped: repeats are not looked at any more.
    func marksMayGo() { state.withLock { $0.marksMayGo = true } }

    /// A clock was wrong: what waits for a moment may have to wait for long, from now on.
    func noteWrongClock() { state.withLock { $0.clocksAreWrong = true } }
    var clocksWereWrong: Bool { state.withLock(\.clocksAreWrong) }

    // MARK: Peers

    func offered(_ number: Int, to device: Int, by origin: String, custodyEnds: UnixTime) {
        tell(number, "offered by \(origin) for device \(device)")
        state.withLock { state in
            var page = Page()
            (page.device, page.custodyEnds) = (device, custodyEnds)
            page.leaving = state.leavings.counts[device] ?? 0
            page.origin = origin
            page.isRefusedByUs = device >= Traits.MadeUp.byUs
            page.isPoisoned = device == traits.poisoned
            page.story = state.pages[number]?.story ?? []
            state.pages[number] = page
        }
    }

    /// By the clock of the process that was asked, custody ends then: it may be behind.
    func promised(_ number: Int, custodyEnds: UnixTime) {
        state.withLock { state in
            let standing = state.pages[number]?.custodyEnds ?? .distantFuture
            state.pages[number]?.custodyEnds = min(standing, custodyEnds)
        }
    }

    /// The relay heard that the store has it under that name.
    func wrote(_ number: Int, _ id: PushID) {
        state.withLock { state in
            state.numbers[id] = number
            state.pages[number, default: Page()].isWritten = true
        }
    }

    /// A row does not open any more.
    func spoil(_ id: PushID) {
        state.withLock { state in
            state.spoilt.insert(id)
            state.paces.urgent[id] = nil
        }
    }

    /// Its row did not open for want of a key: it is set aside for a while.
    func lock(_ id: PushID) { state.withLock { $0.paces.urgent[id] = nil } }

    func isSpoilt(_ id: PushID) -> Bool { state.withLock { $0.spoilt.contains(id) } }

    /// The peer heard that the relay owes it.
    func owes(_ number: Int, now: UnixTime) {
        tell(number, "the peer hears that it is owed")
        state.withLock { state in
            state.pages[number, default: Page()].isOwed = true
            state.pages[number, default: Page()].owedAt = now
        }
    }

    /// The peer heard that it failed.
    ///
    /// - Parameter everywhere: and that nothing of it is left.
    func failed(_ number: Int, everywhere: Bool) {
        tell(number, "the peer hears that it failed\(everywhere ? "" : ", where no app serves it")")
        if everywhere { failures.heard(number) }
        state.withLock { $0.pages[number, default: Page()].isOwed = false }
    }

    /// The peer heard that a push service accepted it.
    func replied(accepted number: Int) {
        state.withLock { state in
            if state.pages[number]?.accepted.isEmpty ?? true {
                state.broke(.falseReply, number)
            }
        }
    }

    func registered(_ number: Int, version: UInt64, token: Int) {
        tell(device: number, "the device hears of version \(version)")
        state.withLock { state in
            state.registrations[number] = max(state.registrations[number] ?? 0, version)
            state.leavings.tokens[number] = token
            state.leavings.asked[number] = [token]
            if state.leavings.adrift.remove(number) != nil {
                state.leavings.counts[number, default: 0] += 1
                state.letGo(of: number)
            }
        }
    }

    /// A push service said that the device is gone: its registration may go.
    func unregistered(_ number: Int) { state.withLock { _ = $0.dead.insert(number) } }

    /// What must be found at the end: number and lowest version.
    var registrations: [(number: Int, version: UInt64)] {
        state.withLock { state in
            state.registrations.filter { !state.dead.contains($0.key) && !state.isCutOff($0.key) }
                .map { (number: $0.key, version: $0.value) }.sorted { $0.number < $1.number }
        }
    }

    // MARK: The way out

    /// The bytes leave.
    ///
    /// - Parameter isOwn: whether the sender owns a row.
    func sending(_ push: OwedPush, _ target: Peers.Read, by life: Life, isOwn: (Int64) -> Bool) {
        let number = target.number
        tell(
            number,
            "sent by \(life) in \(push.lane.environment) as row \(push.row) epoch \(push.epoch)"
                + " attempt \(push.attempts.made), \(push.attempts.unknown) of unknown fate")
        let at = scheduler.elapsed
        state.withLock { state in
            state.numbers[push.id] = number
            state.leavings.addressed[push.id] = target.token
            let overtaken =
                state.clocksAreWrong
                ? []
                : state.paces.left(
                    push, by: life, at: at, scheduler.now, traits.limits,
                    mayWait: state.waitingForPhones(push.lane, life, at: at), isOwn)
            for row in overtaken {
                state.broke(.urgentOvertaken, row)
            }
            if failures.isDead(push.id) {
                state.broke(.failedAndSent, number)
            }
            if state.settled.contains(push.id) {
                state.broke(.sentAfterSettling, number)
            }
            check(push, number, by: life, at: at, in: &state)
            let name = Answered(life: life, id: push.id)
            if !state.pages[number, default: Page()].underWay.insert(name).inserted {
                state.broke(.sentAtOnce, number)
            }
            if state.pages[number]?.answered.contains(name) ?? false {
                state.broke(.sentAfterAnswer, number)
            }
        }
    }

    /// Something came back, if only that there was no answer.
    func returned(
        _ push: OwedPush, _ target: Peers.Read, _ fate: SimulatedPushService.Fate, to life: Life
    ) {
        failures.returned(target.number, push.id)
        let at = scheduler.elapsed
        state.withLock { state in
            _ = state.pages[target.number]?.underWay.remove(Answered(life: life, id: push.id))
            note(fate, of: push, target, to: life, at: at, in: &state)
        }
    }

    /// The push service took it.
    func accepted(_ number: Int, _ id: PushID, at now: UnixTime) {
        tell(number, "accepted by the push service")
        state.withLock { state in
            var page = state.pages[number] ?? Page()
            if !page.accepted.isEmpty { state.doubled += 1 }
            if !state.marksMayGo,
                page.accepted.contains(where: {
                    // What goes with its registration takes its mark along (decision 0081).
                    $0.id != id && $0.at + Self.markSpan > now && state.leavings.gone($0.id) == nil
                })
            {
                state.broke(.twoNames, number)
            }
            page.accepted.append((id, now))
            page.ended = true
            state.pages[number] = page
        }
    }

    /// A call that may have rung already need not be sent again.
    func givenUp(_ number: Int) { state.withLock { $0.pages[number]?.ended = true } }

    /// The push service refused it for good.
    func refused(_ number: Int) { state.withLock { $0.pages[number]?.ended = true } }

    /// A live process has an answer after which nothing more is to be sent.
    func answered(_ number: Int, _ id: PushID, to life: Life) {
        tell(number, "\(life) has the answer")
        state.withLock { _ = $0.pages[number]?.answered.insert(Answered(life: life, id: id)) }
    }

    /// The store confirmed a step.
    ///
    /// - Parameter now: by the clock of the process.
    func settled(_ step: StoredSettlement, now: UnixTime) {
        let number = state.withLock { $0.numbers[step.id] }
        if let number { tell(number, "row \(step.row) epoch \(step.epoch): \(step.step)") }
        let (trueNow, at) = (scheduler.now, scheduler.elapsed)
        state.withLock { state in
            switch step.step {
            case .retry(let notBefore, _, let lane, let isParked):
                let due = at + notBefore.since(now)
                state.paces.isPutOff(step.id, to: lane, until: due, isParked: isParked)
            case .park: state.paces.isParked(step.id, at: at)
            case .settle, .withdraw:
                state.settled.insert(step.id)
                state.paces.urgent[step.id] = nil
                guard let number, let page = state.pages[number], !page.ended, !state.mayGo(page),
                    page.custodyEnds > trueNow + Self.skew, !state.spoilt.contains(step.id),
                    step.step != .withdraw || !failures.mayBeWithdrawn(number)
                else { return }
                state.broke(.custodyEndedEarly, number)
            }
        }
    }

    /// How far ahead a clock may be that ends custody: it does so by so much too early.
    static let skew = Duration.seconds(3_600)

    // MARK: The end

    /// Judges what is owed, when the store owes nothing any more.
    ///
    /// - Parameter left: what it owes all the same, of the origin that makes addresses up.
    func close(at now: UnixTime, left: Int) {
        state.withLock { state in
            let open = state.open(at: now + Self.skew).filter { left == 0 || $0.value.origin != Self.hostile }
            for number in open.keys.sorted() {
                state.broke(.lost, number)
            }
        }
    }

    /// How many pushes the origin that makes addresses up may still be owed. A lane that it has halted lets
    /// one of them go in a minute, and nobody else waits for that.
    var leftOfHostile: Int {
        state.withLock { state in
            let settled = Set(state.settled.compactMap { state.numbers[$0] })
            return state.pages.count { $0.value.origin == Self.hostile && !settled.contains($0.key) }
        }
    }

    /// Whether anybody else is owed something that may yet come to an end.
    func owesOthers(at now: UnixTime) -> Bool {
        state.withLock { $0.open(at: now).contains { $0.value.origin != Self.hostile } }
    }

    /// Pushes owed to a device that halts the lane at each probe.
    func poisonedOwed(at now: UnixTime) -> Int {
        state.withLock { $0.open(at: now).count { $0.value.isPoisoned } }
    }

    /// What is owed and nobody has tried to send.
    func untried(at now: UnixTime) -> [Int] {
        state.withLock { state in
            state.open(at: now).filter { _, page in
                !page.isTried && !page.isPoisoned && page.origin != Self.hostile
            }.keys.sorted()
        }
    }
}
