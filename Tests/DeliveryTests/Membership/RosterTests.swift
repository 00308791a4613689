import AtRest
@testable import Delivery
import MemoryStore
import PushModel
import PushTesting
import Testing

@Suite("Who works what", .timeLimit(.minutes(30)))
struct RosterTests {
    private static let group = GroupName(unchecked: "marmot-main")
    private static let start = ContinuousClock.now
    private static let lease = Duration.seconds(20)

    /// A row of the store as one member reads it.
    private struct Row {
        var number: UInt64
        var joinedAgo = Duration.seconds(100)
        var aliveFor = Duration.seconds(18)
        var hasLeft = false
    }

    private static func owner(_ number: UInt64) -> OwnerID {
        var random = SeededRandom(seed: number)
        return OwnerID(Digest16(high: random.next(), low: random.next()))
    }

    /// What `reader` makes of the rows, read at `start`.
    private static func roster(_ rows: [Row], of reader: UInt64) -> Roster {
        let members = rows.map { row in
            Member(
                owner: owner(row.number), group: group, isUs: row.number == reader, joinedAgo: row.joinedAgo,
                aliveFor: row.aliveFor, hasLeft: row.hasLeft)
        }
        return Roster(members, asked: start, answered: start, lease: lease)
    }

    private static let keys: [Digest16] = {
        var random = SeededRandom(seed: 99)
        return (0..<3_000).map { _ in Digest16(high: random.next(), low: random.next()) }
    }()

    /// How many of the readers take each key.
    private static func takers(_ rows: [Row], at moment: Duration) -> [Int] {
        let rosters = rows.map { roster(rows, of: $0.number) }
        return keys.map { key in
            rosters.count { $0.worker(of: key, at: start + moment)?.isUs == true }
        }
    }

    @Test("Every member draws the same conclusion, and the work is spread evenly")
    func even() {
        let rows = (1...3).map { Row(number: $0) }
        #expect(Self.takers(rows, at: .zero).allSatisfy { $0 == 1 })
        let roster = Self.roster(rows, of: 1)
        for number in 1...3 as ClosedRange<UInt64> {
            let own = Self.keys.count {
                roster.worker(of: $0, at: Self.start)?.owner == Self.owner(number)
            }
            // Four standard deviations of a fair share of a third.
            #expect((897...1_103).contains(own), "member \(number) has \(own) of 3,000")
        }
    }

    @Test("When one goes, only its own share moves")
    func minimal() {
        let all = Self.roster((1...4).map { Row(number: $0) }, of: 1)
        let fewer = Self.roster((1...3).map { Row(number: $0) }, of: 1)
        for key in Self.keys {
            guard let before = all.worker(of: key, at: Self.start)?.owner, before != Self.owner(4) else {
                continue
            }
            #expect(fewer.worker(of: key, at: Self.start)?.owner == before)
        }
    }

    @Test("Who has just joined takes nothing, then its share, and in between nothing is left out")
    func joining() {
        let rows = [Row(number: 1), Row(number: 2), Row(number: 3, joinedAgo: .seconds(2))]
        let newcomer = Self.roster(rows, of: 3)
        func share(_ moment: Duration) -> Int {
            Self.keys.count { newcomer.worker(of: $0, at: Self.start + moment)?.isUs == true }
        }
        #expect(share(.seconds(7)) == 0)
        #expect(Self.takers(rows, at: .seconds(7)).allSatisfy { $0 == 1 })
        let amidst = Self.takers(rows, at: .seconds(8))
        #expect(amidst.allSatisfy { $0 >= 1 } && amidst.contains(2), "the change-over overlaps")
        #expect(Self.takers(rows, at: .seconds(9)).allSatisfy { $0 == 1 })
        #expect(share(.seconds(9)) > 800)
    }

    @Test("When all have come just now, the first of them works for all")
    func fresh() {
        let rows = [
            Row(number: 1, joinedAgo: .seconds(1)), Row(number: 2, joinedAgo: .seconds(3)),
            Row(number: 3, joinedAgo: .zero)
        ]
        #expect(Self.takers(rows, at: .zero).allSatisfy { $0 == 1 })
        let first = Self.roster(rows, of: 2)
        #expect(Self.keys.allSatisfy { first.worker(of: $0, at: Self.start)?.isUs == true })
    }

    @Test("A member that renews no more loses its share when its lease ends, and is told as ended")
    func death() {
        let rows = [Row(number: 1), Row(number: 2, aliveFor: .seconds(3))]
        let roster = Self.roster(rows, of: 1)
        #expect(roster.count(at: Self.start) == 2)
        #expect(roster.ended(at: Self.start).isEmpty)
        let later = Self.start + .seconds(4)
        #expect(Self.keys.allSatisfy { roster.worker(of: $0, at: later)?.isUs == true })
        // It may have worked until its last renewal, 17 seconds before the reading, and perhaps no longer.
        let expected = Roster.Ended(
            owner: Self.owner(2), workedUntil: Self.start - .seconds(17) - Roster.overlap)
        #expect(roster.ended(at: later) == [expected])
    }

    @Test("Who left worked until then")
    func leaving() {
        let rows = [Row(number: 1), Row(number: 2, aliveFor: .seconds(-2), hasLeft: true)]
        let roster = Self.roster(rows, of: 1)
        #expect(roster.count(at: Self.start) == 1)
        #expect(
            roster.ended(at: Self.start) == [
                Roster.Ended(owner: Self.owner(2), workedUntil: Self.start - .seconds(2) - Roster.overlap)
            ])
    }

    @Test("While the store is out, nobody works for those who were well when it was last read")
    func storeOut() {
        let rows = (1...3).map { Row(number: $0) }
        #expect(Self.takers(rows, at: .seconds(3_600)).allSatisfy { $0 == 1 })
    }

    @Test("A process that was suspended works nothing until it has heard from the store again")
    func suspended() async throws {
        let depot = Depot()
        let clocks = [ManualClock(), ManualClock()]
        var members: [Membership] = []
        for clock in clocks {
            let store = try await depot.open(clock.world(seed: depot.world.random()))
            let member = Membership(
                store: store, limits: DeliveryLimits(), world: clock.world(seed: 1), journal: .silent)
            member.enter(Self.group)
            members.append(member)
        }
        for member in members { await member.renew() }
        await members[0].renew()
        #expect(members.allSatisfy { $0.roster(of: Self.group)?.isLone == false })
        clocks[0].advance(by: .seconds(60))
        #expect(members[0].roster(of: Self.group) == nil)
        await members[0].renew()
        #expect(members[0].roster(of: Self.group) != nil)
        members[1].leave(Self.group)
        #expect(members[1].roster(of: Self.group) == nil)
    }

    @Test("A store that fails leaves what was known, and who is alone stays so")
    func faults() async throws {
        let depot = Depot()
        let store = try await depot.open(depot.world)
        let outbox = GatedOutbox(store, trace: Trace())
        let member = Membership(
            store: outbox, limits: DeliveryLimits(), world: depot.world, journal: .silent)
        member.enter(Self.group)
        await member.renew()
        outbox.set { $0.renew = .unavailable }
        // A laptop that slept: there is nobody who could have its share.
        depot.clock.advance(by: .seconds(3_600))
        await member.renew()
        let roster = try #require(member.roster(of: Self.group))
        #expect(roster.isLone && member.relays == 1)
        #expect(roster.worker(of: Digest16(high: 1, low: 2), at: depot.clock.instant)?.isUs == true)
    }

    @Test("An answer that was long on its way does not take the place of a later one")
    func lateAnswer() async throws {
        let clock = ManualClock()
        let shared = MemoryStore.Shared()
        let keys = AtRestKeys.generate(.live)
        let (asked, isToCome) = (AwaitedCount(), AwaitedCount())
        func member(_ number: UInt64, isLate: Bool) async throws -> Membership {
            let base = MemoryStore(
                owner: OwnerID(Digest16(high: number, low: 1)), sharing: shared, clock: { clock.now })
            let store = try await SealedStore(engine: base, keys: keys, world: clock.world(seed: number))
            let late = LateEnrolment(base: store, asked: asked, isToCome: isToCome)
            let enrolment: any Enrolment = isLate ? late : store
            let member = Membership(
                store: enrolment, limits: DeliveryLimits(), world: clock.world(seed: number), journal: .silent
            )
            member.enter(Self.group)
            return member
        }
        let (late, other) = (try await member(1, isLate: true), try await member(2, isLate: false))
        async let first: Void = late.renew()
        await asked.wait(for: 1)
        await other.renew()
        clock.advance(by: .seconds(1))
        await late.renew()
        #expect(late.roster(of: Self.group)?.isLone == false)
        isToCome.add()
        await first
        #expect(late.roster(of: Self.group)?.isLone == false)
    }
}

/// The answer to its first enrolment comes when it is told to.
private struct LateEnrolment: Enrolment {
    let base: any Enrolment
    let asked: AwaitedCount
    let isToCome: AwaitedCount

    func enrol(in groups: [GroupName], for span: Duration) async throws(StoreError) -> [Member] {
        let members = try await base.enrol(in: groups, for: span)
        let isFirst = asked.count == 0
        asked.add()
        if isFirst { await isToCome.wait(for: 1) }
        return members
    }
}
