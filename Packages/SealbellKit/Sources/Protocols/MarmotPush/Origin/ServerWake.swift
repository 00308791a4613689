import PushModel
import SealbellKit
import Secp256k1Keys

/// A wake that is under way.
struct OpenWake: Sendable {
    let id: UInt64
    /// Of its tokens.
    let bytes: Int
    var servers: [ServerWake]
    /// Servers beyond ``MarmotLimits/serversOfWake``.
    let left: [WakeReport]
}

/// One wake's phones of one notification server, from its relay list to its relays' answers.
struct ServerWake: Sendable {
    enum Stage: Sendable {
        case waiting
        /// Its list is looked up. `isDoubted`: what is known of it has led nowhere.
        case listing(isDoubted: Bool)
        /// Documents of its relays are fetched.
        case documents(isDoubted: Bool)
        case sending
        case over
    }

    let server: XOnlyKey
    let tokens: [GossipToken]
    /// Relays that owners of tokens name for it.
    let hints: [String]
    var stage = Stage.waiting
    /// Calls for documents that it waits for.
    var documents: Set<UInt64> = []
    var sendings: [Sending] = []
    /// Whether there was a relay for the tokens of every format.
    var isWhole = true

    init(_ server: XOnlyKey, _ tokens: [GossipToken]) {
        (self.server, self.tokens) = (server, tokens)
        hints = RelayList.usable(tokens.lazy.compactMap(\.relayHint))
    }

    /// The texts differ (docs/conformance/marmot.md): by `push-v1` owners say where their server listens, and
    /// its own list counts where none has.
    var needsList: Bool { tokens.contains { GossipProfile($0.format) != .pushV1 || $0.relayHint == nil } }

    var isUnderWay: Bool {
        switch stage {
        case .waiting, .over: false
        case .listing, .documents, .sending: true
        }
    }

    /// What has come of it.
    func report(hasList: Bool) -> WakeReport {
        var report = WakeReport(server: server, tokens: tokens.count)
        report.hasList = hasList
        report.triggers = sendings.count
        report.isWhole = isWhole
        for sending in sendings {
            if sending.isAccepted { report.accepted += 1 }
            for (url, answer) in sending.answers { report.note(url, answer) }
        }
        return report
    }
}

/// A trigger on its way to all its relays. If none takes it, it goes once more, after a pause, to those that
/// have not been asked, and to those that may think better of it.
struct Sending: Sendable {
    enum Step: Sendable {
        case queued
        case under(call: UInt64, isAgain: Bool)
        case pausing(until: UnixTime)
        /// The server's list is looked up again.
        case listing
        case over
    }

    let trigger: MarmotOriginRoutine.Trigger
    var step = Step.queued
    /// The last answer of each relay, in the order in which they were asked.
    var answers: [(url: String, answer: RelayAnswer)] = []

    var isAccepted: Bool { answers.contains { $0.answer == .accepted } }

    var isOver: Bool { if case .over = step { true } else { false } }

    var isUnderWay: Bool {
        switch step {
        case .queued, .over: false
        case .under, .pausing, .listing: true
        }
    }

    /// Whom to ask once more.
    ///
    /// - Parameter relays: where its server listens as far as is known now.
    func again(_ relays: [String]) -> [String] {
        let asked = Dictionary(answers.map { ($0.url, $0.answer) }, uniquingKeysWith: { $1 })
        return (relays + trigger.relays).unique.filter { asked[$0]?.isOfAMoment ?? true }
    }

    mutating func note(_ more: [(url: String, answer: RelayAnswer)]) {
        for (url, answer) in more {
            if let at = answers.firstIndex(where: { $0.url == url }) {
                answers[at].answer = answer
            } else {
                answers.append((url, answer))
            }
        }
    }
}

extension [String] {
    /// Each once, in the order in which they came first.
    var unique: [String] {
        var seen: Set<String> = []
        return filter { seen.insert($0).inserted }
    }
}
