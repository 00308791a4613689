import PushModel
import PushTesting

/// What push services and devices do beside failing outright. A seed has a few of these, or none.
package struct Misbehaviour: OptionSet, Sendable, Hashable {
    package let rawValue: Int
    package init(rawValue: Int) { self.rawValue = rawValue }

    /// A push is taken at once, and the answer comes twelve seconds after it, or fifty.
    package static let late = Misbehaviour(rawValue: 1)
    /// Every request takes seconds.
    package static let slow = Misbehaviour(rawValue: 1 << 1)
    /// Among acceptances some answer refuses the credential.
    package static let strayFaults = Misbehaviour(rawValue: 1 << 2)
    /// The key is good for one environment, and the other one says so.
    package static let environmentKey = Misbehaviour(rawValue: 1 << 3)
    /// Something before the service answers in its place, with a page.
    package static let pages = Misbehaviour(rawValue: 1 << 4)
    /// A device gets another token and registers anew, while pushes to the old one wait.
    package static let newTokens = Misbehaviour(rawValue: 1 << 5)
    /// Connections go on, and no request on them is heard any more.
    package static let deafness = Misbehaviour(rawValue: 1 << 6)
    /// One device has had enough for a while.
    package static let quotas = Misbehaviour(rawValue: 1 << 7)
    /// A registration is deleted while pushes to it wait.
    package static let departures = Misbehaviour(rawValue: 1 << 8)

    /// Most requests are dealt with, and their connection ends with them.
    package static let cuts = Misbehaviour(rawValue: 1 << 9)

    /// By the words that the tool knows them by.
    package static let byName: [String: Misbehaviour] = [
        "late": .late, "slow": .slow, "stray-faults": .strayFaults, "environment-key": .environmentKey,
        "pages": .pages, "new-tokens": .newTokens, "deafness": .deafness, "quotas": .quotas,
        "departures": .departures, "cuts": .cuts
    ]

    package static let all = Misbehaviour(byName.values.map(\.self))

    /// Told by the seed itself and not by a draw of its run, so that seeds that were kept run as they did.
    init(seed: UInt64) {
        var random = SeededRandom(seed: ~seed)
        self = []
        guard Int.random(in: 1...100, using: &random) <= 45 else { return }
        let each = Self.byName.values.sorted { $0.rawValue < $1.rawValue }
        for _ in 0..<Int.random(in: 1...2, using: &random) {
            insert(each[Int.random(in: each.indices, using: &random)])
        }
    }

    /// In a few words, for anyone who reads a failing seed.
    var words: [String] { Self.byName.filter { contains($0.value) }.keys.sorted() }

    /// Its parts, in order.
    var each: [Misbehaviour] {
        Self.byName.values.filter { contains($0) }.sorted { $0.rawValue < $1.rawValue }
    }
}

/// How the push services misbehave at the moment, beside their mood.
struct Habits: Sendable {
    /// Percent of requests that are answered late.
    var late = 0
    /// Percent whose connection ends in the place of an answer.
    var cut = 0
    /// Percent that are answered with a fault of the credential.
    var stray = 0
    /// Percent that are answered with a page, and never reach the service.
    var pages = 0
    /// The device that has had enough.
    var limited: Int?
    /// The environment that the key is good for; `nil`: both.
    var key: Environment?

    /// How late: beyond what any client waited for in the field, and within what one can.
    static let lateness = Duration.seconds(12) ... .seconds(50)
    /// Statuses of such pages.
    static let statuses = [404, 404, 502, 403]
}
