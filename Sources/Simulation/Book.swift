import Delivery
import PushModel
import Synchronization

/// What a relay did wrong.
package struct Violation: Sendable, Hashable, CustomStringConvertible {
    package enum Law: String, Sendable, CaseIterable {
        /// An accepted push ended without an outcome.
        case lost = "an accepted push was lost"
        /// It was sent by a process that had seen its last answer.
        case sentAfterAnswer = "a push was sent again by the process that had its answer"
        /// It was sent after the store had said that it was settled.
        case sentAfterSettling = "a push was sent after it was settled"
        /// It was processed while the store held it as another's, or not at all.
        case sentByStranger = "a push was sent by a process that did not own it any more"
        /// One notification, offered again within ten minutes, was delivered under two ids.
        case twoNames = "a repeat was delivered as another push"
        case registrationLost = "a registration was lost"
        case falseReply = "a reply named an outcome that no push service gave"
        case notDrained = "a healthy relay did not send what it owed"
        case stuck = "the relay stood still"
    }

    package let law: Law
    /// The push's or registration's number in the run.
    package let number: Int

    package var description: String { "\(law.rawValue) (number \(number))" }
}

/// Who did what to which push: kept by what stands outside the relay, judged by the law.
///
/// Every accepted push ends in exactly one outcome, is sent at most once unless its fate was unknown, and no
/// registration is lost.
final class Book: Sendable {
    /// One life of one process.
    struct Life: Hashable, Sendable, CustomStringConvertible {
        let process: Int
        let life: Int

        var description: String { "process \(process).\(life)" }
    }

    private struct Answered: Hashable {
        let life: Life
        let id: PushID
    }

    private struct Page {
        var custodyEnds = UnixTime.distantFuture
        /// The peer was told that it is owed.
        var isOwed = false
        var owedAt = UnixTime.distantPast
        /// Lives that had an answer after which nothing more is to be sent, and to which of its names.
        var answered: Set<Answered> = []
        var accepted: [(id: PushID, at: UnixTime)] = []
        var ended = false
        /// What happened to it, for whoever reads a failing seed.
        var story: [String] = []
    }

    private struct State {
        var pages: [Int: Page] = [:]
        var numbers: [PushID: Int] = [:]
        /// The ids whose settling the store confirmed, for good.
        var settled: Set<PushID> = []
        var registrations: [Int: UInt64] = [:]
        var dead: Set<Int> = []
        var violations: [Violation] = []
        var doubled = 0
        var marksMayGo = false
    }

    /// How long a repeat is one (DESIGN §2.7).
    private static let markSpan = Duration.seconds(600)
    /// Lines of one story: enough for the longest back-off of a run.
    private static let storyLines = 200

    private let state = Mutex(State())
    private let scheduler: Scheduler

    init(_ scheduler: Scheduler) { self.scheduler = scheduler }

    /// What happened to a push, line by line.
    func story(of number: Int) -> [String] { state.withLock { $0.pages[number]?.story ?? [] } }

    func tell(_ number: Int, _ line: @autoclosure () -> String) {
        let at = scheduler.elapsed
        let text = line()
        state.withLock { state in
            guard state.pages[number]?.story.count ?? 0 < Self.storyLines else { return }
            state.pages[number, default: Page()].story.append("\(at) \(text)")
        }
    }

    var violations: [Violation] { state.withLock(\.violations) }
    /// Pushes that devices saw twice, each by a fate that was unknown.
    var doubled: Int { state.withLock(\.doubled) }
    var owed: Int { state.withLock { $0.pages.values.count(where: \.isOwed) } }

    func record(_ law: Violation.Law, _ number: Int = 0) {
        state.withLock { $0.violations.append(Violation(law: law, number: number)) }
    }

    /// The clock by which marks age has jumped: repeats are not looked at any more.
    func marksMayGo() { state.withLock { $0.marksMayGo = true } }

    // MARK: Peers

    func offered(_ number: Int, custodyEnds: UnixTime) {
        tell(number, "offered")
        state.withLock { $0.pages[number, default: Page()].custodyEnds = custodyEnds }
    }

    /// The peer heard that the relay owes it.
    func owes(_ number: Int, now: UnixTime) {
        tell(number, "the peer hears that it is owed")
        state.withLock { state in
            state.pages[number, default: Page()].isOwed = true
            state.pages[number, default: Page()].owedAt = now
        }
    }

    /// The peer heard that a push service accepted it.
    func replied(accepted number: Int) {
        state.withLock { state in
            if state.pages[number]?.accepted.isEmpty ?? true {
                state.violations.append(Violation(law: .falseReply, number: number))
            }
        }
    }

    func registered(_ number: Int, version: UInt64) {
        state.withLock { $0.registrations[number] = max($0.registrations[number] ?? 0, version) }
    }

    /// A push service said that the device is gone: its registration may go.
    func unregistered(_ number: Int) { state.withLock { _ = $0.dead.insert(number) } }

    /// What must be found at the end: number and lowest version.
    var registrations: [(number: Int, version: UInt64)] {
        state.withLock { state in
            state.registrations.filter { !state.dead.contains($0.key) }
                .map { (number: $0.key, version: $0.value) }.sorted { $0.number < $1.number }
        }
    }

    // MARK: The way out

    /// The bytes leave.
    func sending(_ push: OwedPush, _ number: Int, by life: Life) {
        tell(
            number, "sent by \(life) as row \(push.row) epoch \(push.epoch) attempt \(push.attempt)")
        state.withLock { state in
            state.numbers[push.id] = number
            if state.settled.contains(push.id) {
                state.violations.append(Violation(law: .sentAfterSettling, number: number))
            }
            if state.pages[number]?.answered.contains(Answered(life: life, id: push.id)) ?? false {
                state.violations.append(Violation(law: .sentAfterAnswer, number: number))
            }
        }
    }

    /// The push service took it.
    func accepted(_ number: Int, _ id: PushID, at now: UnixTime) {
        tell(number, "accepted by the push service")
        state.withLock { state in
            var page = state.pages[number] ?? Page()
            if !page.accepted.isEmpty { state.doubled += 1 }
            if !state.marksMayGo,
                page.accepted.contains(where: { $0.id != id && $0.at + Self.markSpan > now })
            {
                state.violations.append(Violation(law: .twoNames, number: number))
            }
            page.accepted.append((id, now))
            page.ended = true
            state.pages[number] = page
        }
    }

    /// The push service refused it for good.
    func refused(_ number: Int) { state.withLock { $0.pages[number]?.ended = true } }

    /// A live process has an answer after which nothing more is to be sent.
    func answered(_ number: Int, _ id: PushID, to life: Life) {
        tell(number, "\(life) has the answer")
        state.withLock { _ = $0.pages[number]?.answered.insert(Answered(life: life, id: id)) }
    }

    /// The store confirmed a step.
    func settled(_ step: StoredSettlement) {
        if let number = state.withLock({ $0.numbers[step.id] }) {
            tell(number, "row \(step.row) epoch \(step.epoch): \(step.step)")
        }
        guard step.step == .settle || step.step == .withdraw else { return }
        state.withLock { _ = $0.settled.insert(step.id) }
    }

    // MARK: The end

    /// Judges what is owed, when the store owes nothing any more.
    ///
    /// - Parameter skew: how far a machine's clock was ahead at most: by such a clock custody ended earlier.
    func close(at now: UnixTime, skew: Duration) {
        state.withLock { state in
            for (number, page) in state.pages.sorted(by: { $0.key < $1.key })
            where page.isOwed && !page.ended && page.custodyEnds > now + skew {
                state.violations.append(Violation(law: .lost, number: number))
            }
        }
    }
}
