@testable import Delivery
import PushModel
import PushTesting
import Testing

@Suite("Pieces that stand in for one another", .timeLimit(.minutes(30)))
struct PartingTests {
    private static let start = ContinuousClock.now
    private typealias Parting = [Digest16: OwnerID]

    /// Members and pieces, drawn anew for each trial.
    private struct Draw {
        var random: SeededRandom

        mutating func digest() -> Digest16 { Digest16(high: random.next(), low: random.next()) }
        mutating func digests(_ count: Int) -> [Digest16] { (0..<count).map { _ in digest() } }
        mutating func owners(_ count: Int) -> [OwnerID] { digests(count).map { OwnerID($0) } }
        mutating func count(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }
    }

    /// What one of these members reads.
    private static func roster(_ owners: [OwnerID], of reader: OwnerID?) -> Roster {
        let group = GroupName(unchecked: "session-main")
        let members = owners.map { owner in
            Member(
                owner: owner, group: group, isUs: owner == reader, joinedAgo: .seconds(100),
                aliveFor: .seconds(18), hasLeft: false)
        }
        return Roster(members, asked: start, answered: start, lease: .seconds(20))
    }

    private static func parted(_ pieces: [Digest16], among owners: [OwnerID]) -> Parting {
        let workers = roster(owners, of: owners.first).workers(of: pieces, at: start)
        return Dictionary(uniqueKeysWithValues: zip(pieces, workers.map(\.owner)))
    }

    /// Of how many pieces the worker is another one in `after`, among those that have one in both.
    private static func moved(_ before: Parting, _ after: Parting) -> Int {
        before.count { piece, owner in after[piece].map { $0 != owner } ?? false }
    }

    @Test("Each piece has one worker, whoever asks in whatever order; no member has two more than another")
    func even() {
        var draw = Draw(random: SeededRandom(seed: 1))
        for _ in 0..<400 {
            let (owners, pieces) = (draw.owners(draw.count(1...7)), draw.digests(draw.count(0...16)))
            let expected = Self.parted(pieces, among: owners)
            for owner in owners {
                let roster = Self.roster(owners.shuffled(using: &draw.random), of: owner)
                let shuffled = pieces.shuffled(using: &draw.random)
                let workers = roster.workers(of: shuffled, at: Self.start)
                #expect(Dictionary(uniqueKeysWithValues: zip(shuffled, workers.map(\.owner))) == expected)
                #expect(workers.allSatisfy { $0.isUs == ($0.owner == owner) })
            }
            let counts = owners.map { owner in expected.values.count { $0 == owner } }
            let (least, most) = (counts.min() ?? 0, counts.max() ?? 0)
            #expect(counts.reduce(0, +) == pieces.count && most - least <= 1)
            #expect(counts.count { $0 > 0 } == min(pieces.count, owners.count))
        }
    }

    @Test("A piece that nothing stands in for goes where it would go by itself; nobody known takes nothing")
    func alone() {
        var draw = Draw(random: SeededRandom(seed: 2))
        for _ in 0..<400 {
            let (owners, piece) = (draw.owners(draw.count(1...7)), draw.digest())
            let roster = Self.roster(owners, of: owners.last)
            let (parted, worker) = (
                roster.workers(of: [piece], at: Self.start), roster.worker(of: piece, at: Self.start)
            )
            #expect(parted.map(\.owner) == [worker?.owner] && parted.map(\.isUs) == [worker?.isUs])
        }
        #expect(Self.roster([], of: nil).workers(of: draw.digests(3), at: Self.start).isEmpty)
    }

    @Test("Each member has about as much of many networks as another", arguments: 2...6)
    func load(_ members: Int) {
        var draw = Draw(random: SeededRandom(seed: UInt64(members)))
        let owners = draw.owners(members)
        var counts: [OwnerID: Int] = [:]
        var pieces = 0
        for _ in 0..<300 {
            let swarm = draw.digests(draw.count(5...10))
            pieces += swarm.count
            for owner in Self.parted(swarm, among: owners).values { counts[owner, default: 0] += 1 }
        }
        // By chance alone: whether a member has one more of a swarm. Four standard deviations of 300 times.
        for owner in owners { #expect(abs(counts[owner, default: 0] - pieces / members) <= 35) }
    }

    @Test(
        "A piece that comes or goes moves fewer others than there are members, on average less than one",
        arguments: 2...6)
    func pieceChurn(_ members: Int) {
        var draw = Draw(random: SeededRandom(seed: 10 + UInt64(members)))
        var moved = 0
        for _ in 0..<1_000 {
            let (owners, pieces) = (draw.owners(members), draw.digests(draw.count(1...14)))
            let more = Self.parted(pieces, among: owners)
            let fewer = Self.parted(pieces.dropLast(), among: owners)
            let count = Self.moved(fewer, more)
            #expect(count < members)
            moved += count
        }
        #expect(moved < 1_000, "fewer than one for each change")
    }

    @Test(
        "With a member that comes or goes, fewer others move for each of its pieces than it has peers",
        arguments: 1...5)
    func memberChurn(_ others: Int) {
        var draw = Draw(random: SeededRandom(seed: 20 + UInt64(others)))
        var (moved, own) = (0, 0)
        for _ in 0..<1_000 {
            let (owners, pieces) = (draw.owners(others + 1), draw.digests(draw.count(1...14)))
            let with = Self.parted(pieces, among: owners)
            let without = Self.parted(pieces, among: owners.dropLast())
            let necessary = with.values.count { $0 == owners[others] }
            let count = Self.moved(with, without) - necessary
            #expect(count <= necessary * (others - 1))
            moved += count
            own += necessary
        }
        #expect(moved < own, "fewer than its own")
    }

    @Test("Whatever others know of the pieces, each member has its part of what it knows")
    func differing() {
        var draw = Draw(random: SeededRandom(seed: 30))
        for _ in 0..<400 {
            let (owners, all) = (draw.owners(draw.count(2...5)), draw.digests(12))
            var heard: Set<Digest16> = []
            for owner in owners {
                let known = Array(all.shuffled(using: &draw.random).prefix(draw.count(0...12)))
                let workers = Self.roster(owners, of: owner).workers(of: known, at: Self.start)
                let ours = zip(known, workers).filter { $0.1.isUs }.map(\.0)
                #expect(ours.count >= known.count / owners.count)
                heard.formUnion(ours)
                if known.count >= owners.count { #expect(!heard.isEmpty, "nobody works any") }
            }
        }
    }
}
