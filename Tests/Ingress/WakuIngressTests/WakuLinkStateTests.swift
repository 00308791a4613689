import Delivery
import PushModel
import Testing
import WakuIngress

private let start = UnixTime(seconds: 1_000)

/// A link's state, played with by hand: no socket, no clock, and chance always 0.
private struct Link {
    var state = LinkState(limits: WakuLimits(), since: start)

    mutating func subscribe(_ fault: NodeFault? = nil) -> LinkState.Step {
        state.subscribed(fault, random: 0)
    }

    mutating func poll(_ outcome: LinkState.Outcome, at seconds: Int64) -> LinkState.Step {
        state.polled(outcome, begunAt: UnixTime(seconds: seconds), random: 0)
    }
}

@Suite("What follows from a node's answers")
struct WakuLinkStateTests {
    @Test("A poll comes first, and a subscription when there is none; the first answer opens the gap")
    func start() {
        var link = Link()
        #expect(link.state.duty == .poll && !link.state.isListening)
        let none = LinkState.Step()
        #expect(link.poll(.failed(.status(404, retryAfter: nil)), at: 1_999) == none)
        #expect(link.state.duty == .subscribe)
        #expect(link.subscribe() == none)
        #expect(link.state.duty == .poll)
        let step = link.poll(.whole(3), at: 2_000)
        #expect(step.notes == [.listening] && step.gapSince == UnixTime(seconds: 1_000))
        #expect(step.rest == .milliseconds(200))
        #expect(link.poll(.whole(0), at: 2_001) == LinkState.Step(rest: .milliseconds(200)))
        #expect(link.state.isListening)
    }

    @Test("A subscription that stands is never asked for again")
    func stands() {
        var link = Link()
        #expect(link.poll(.whole(0), at: 2_000).notes == [.listening])
        for fault in [NodeFault.unreachable, .overdue, .malformed, .tooLarge, .status(503, retryAfter: nil)] {
            _ = link.poll(.failed(fault), at: 2_001)
            #expect(link.state.duty == .poll)
        }
    }

    @Test("An answer that is as long as the longest may have filled the node's cache, each time")
    func fullCache() {
        var link = Link()
        _ = link.subscribe()
        _ = link.poll(.whole(0), at: 2_000)
        #expect(link.poll(.whole(49), at: 2_001).gapSince == nil)
        #expect(link.poll(.whole(50), at: 2_002).gapSince == UnixTime(seconds: 2_001))
        #expect(link.poll(.whole(50), at: 2_003).gapSince == UnixTime(seconds: 2_002))
        #expect(link.poll(.whole(1_000), at: 2_004).gapSince == UnixTime(seconds: 2_003))
        #expect(link.poll(.whole(999), at: 2_005).gapSince == nil)
        #expect(link.poll(.whole(1_000), at: 2_006).gapSince == UnixTime(seconds: 2_005))
    }

    @Test(
        "What was learned of a node's cache ends with its subscription, and with each fault",
        arguments: [NodeFault.status(404, retryAfter: nil), .unreachable, .overdue, .malformed])
    func restartedSmaller(_ fault: NodeFault) {
        var link = Link()
        _ = link.subscribe()
        _ = link.poll(.whole(0), at: 2_000)
        #expect(link.poll(.whole(5_000), at: 2_001).gapSince != nil)
        #expect(link.poll(.whole(100), at: 2_002).gapSince == nil, "shorter than the longest")
        _ = link.poll(.failed(fault), at: 2_003)
        if link.state.duty == .subscribe { _ = link.subscribe() }
        #expect(link.poll(.whole(0), at: 2_004).gapSince == UnixTime(seconds: 2_002))
        // Restarted with a cache of a hundred, which overflows.
        #expect(link.poll(.whole(100), at: 2_005).gapSince == UnixTime(seconds: 2_004))
        #expect(link.poll(.whole(100), at: 2_006).gapSince == UnixTime(seconds: 2_005))
    }

    @Test("A fault is told once, and opens the gap when the node is back")
    func fault() {
        var link = Link()
        _ = link.subscribe()
        _ = link.poll(.whole(0), at: 2_000)
        let first = link.poll(.failed(.unreachable), at: 2_010)
        #expect(first.notes == [.nodeAway] && first.gapSince == nil && first.rest != nil)
        #expect(link.state.duty == .poll && !link.state.isListening)
        #expect(link.poll(.failed(.overdue), at: 2_011).notes == [])
        // Restarted: it has forgotten the subscription, which is nothing to tell besides.
        #expect(link.poll(.failed(.status(404, retryAfter: nil)), at: 2_012) == LinkState.Step())
        #expect(link.subscribe() == LinkState.Step())
        let back = link.poll(.whole(2), at: 2_020)
        #expect(back.notes == [.listening] && back.gapSince == UnixTime(seconds: 2_000))
    }

    @Test("A lost subscription is asked for at once, one that never comes into force with patience")
    func lost() {
        var link = Link()
        _ = link.subscribe()
        _ = link.poll(.whole(0), at: 2_000)
        let first = link.poll(.failed(.status(404, retryAfter: nil)), at: 2_010)
        #expect(first.notes == [.subscriptionLost] && first.rest == nil)
        _ = link.subscribe()
        let second = link.poll(.failed(.status(404, retryAfter: nil)), at: 2_011)
        #expect(second.notes == [.nodeRefuses] && second.rest != nil)
        _ = link.subscribe()
        #expect(link.poll(.failed(.status(404, retryAfter: nil)), at: 2_012).notes == [])
    }

    @Test("A refused subscription is ended before the next one is asked for")
    func refused() {
        var link = Link()
        let step = link.subscribe(.status(503, retryAfter: .seconds(7)))
        #expect(step.notes == [.nodeRefuses] && step.rest == .seconds(7))
        #expect(link.state.duty == .leave)
        #expect(link.state.left() == LinkState.Step() && link.state.duty == .subscribe)
    }

    @Test("An answer that broke off counts, opens a gap, and is told once")
    func cut() {
        var link = Link()
        _ = link.subscribe()
        _ = link.poll(.whole(0), at: 2_000)
        let first = link.poll(.cut, at: 2_010)
        #expect(first.notes == [.answerMalformed] && first.gapSince == UnixTime(seconds: 2_000))
        #expect(link.state.isListening && link.state.duty == .poll)
        #expect(link.poll(.cut, at: 2_011).notes == [])
        #expect(link.poll(.whole(0), at: 2_012).notes == [])
        #expect(link.poll(.cut, at: 2_013).notes == [.answerMalformed])
    }

    @Test("Waits grow from fault to fault, to a bound")
    func waits() {
        var state = LinkState(limits: WakuLimits(), since: UnixTime(seconds: 0))
        let waits = (0..<12).map { _ in state.subscribed(.unreachable, random: .max).rest ?? .zero }
        #expect(waits == waits.sorted() && waits.last.map { $0 < .seconds(5) } == true)
        #expect(waits.last.map { $0 > .seconds(4) } == true)
    }
}

@Suite("What follows from what a node says of its health")
struct HealthStateTests {
    private static func at(_ seconds: Int64) -> UnixTime { UnixTime(seconds: seconds) }

    @Test("Peers that are back open the gap since they were last known")
    func back() {
        var state = HealthState(start: Self.at(1_000))
        #expect(state.took(.connected, askedAt: Self.at(1_001)) == (nil, nil))
        #expect(state.took(.partlyConnected, askedAt: Self.at(1_031)) == (nil, nil))
        #expect(state.took(.alone, askedAt: Self.at(1_061)) == (.nodeAlone, nil))
        #expect(state.health == .alone)
        #expect(state.took(.alone, askedAt: Self.at(1_091)) == (nil, nil))
        #expect(state.took(.partlyConnected, askedAt: Self.at(1_121)) == (.nodeConnected, Self.at(1_031)))
        #expect(state.health == .partlyConnected)
        #expect(state.took(.alone, askedAt: Self.at(1_151)) == (.nodeAlone, nil))
        #expect(state.took(.connected, askedAt: Self.at(1_181)) == (.nodeConnected, Self.at(1_121)))
    }

    @Test("A node that was alone from the start opens it since the start")
    func fromStart() {
        var state = HealthState(start: Self.at(1_000))
        #expect(state.took(.alone, askedAt: Self.at(1_001)) == (.nodeAlone, nil))
        #expect(state.took(.connected, askedAt: Self.at(1_031)) == (.nodeConnected, Self.at(1_000)))
    }

    @Test("An answer that does not come neither ends nor begins anything")
    func silent() {
        var state = HealthState(start: Self.at(1_000))
        #expect(state.took(.connected, askedAt: Self.at(1_001)) == (nil, nil))
        #expect(state.took(.alone, askedAt: Self.at(1_031)) == (.nodeAlone, nil))
        #expect(state.took(.unknown, askedAt: Self.at(1_061)) == (nil, nil))
        #expect(state.health == .alone)
        #expect(state.took(.connected, askedAt: Self.at(1_091)) == (.nodeConnected, Self.at(1_001)))
        #expect(state.took(.unknown, askedAt: Self.at(1_121)) == (nil, nil))
        #expect(state.health == .unknown)
    }
}

@Suite("A gap on its way from the store")
struct GapFetchTests {
    private let now = UnixTime(seconds: 100_000)

    private func page(_ newest: Int64?, _ cursor: String?) -> NodePage {
        var page = NodePage()
        (page.newest, page.cursor) = (newest, cursor)
        return page
    }

    @Test("It reaches as far back as it was opened, with room for clocks, and no farther than it may")
    func range() {
        let fetch = GapFetch(since: UnixTime(seconds: 99_000), now: now, limits: WakuLimits())
        #expect(fetch.range == 98_960_000_000_000...100_040_000_000_000)
        let long = GapFetch(since: UnixTime(seconds: 0), now: now, limits: WakuLimits())
        #expect(long.range.lowerBound == (100_000 - 43_200 - 40) * 1_000_000_000)
    }

    @Test("Pages follow by their cursors to the last one")
    func pages() {
        var fetch = GapFetch(since: UnixTime(seconds: 99_000), now: now, limits: WakuLimits())
        #expect(fetch.took(page(99_000_000_000_001, "a")) == nil)
        #expect(fetch.cursor == "a" && !fetch.isOver)
        #expect(fetch.took(page(99_000_000_000_001, "a")) == .malformed, "a store that goes in a circle")
        #expect(fetch.took(page(nil, nil)) == nil)
        #expect(fetch.isOver && fetch.isComplete)
    }

    @Test("After a fault it goes on behind the youngest message that came, whatever store is asked next")
    func fault() {
        var fetch = GapFetch(since: UnixTime(seconds: 99_000), now: now, limits: WakuLimits())
        _ = fetch.took(page(99_500_000_000_000, "a"))
        let first = fetch.failed(.unreachable)
        #expect(first)
        #expect(fetch.cursor == nil && fetch.range.lowerBound == 99_500_000_000_000)
        let second = fetch.failed(.overdue)
        #expect(!second && !fetch.isOver)
        // A message from the future does not carry it away.
        _ = fetch.took(page(.max, "b"))
        _ = fetch.failed(.unreachable)
        #expect(fetch.range.lowerBound == 99_500_000_000_000)
    }

    @Test("It ends: with the pages, with the attempts, and with an answer that will not change")
    func ends() {
        var limits = WakuLimits()
        (limits.pages, limits.storeAttempts) = (3, 4)
        var long = GapFetch(since: now, now: now, limits: limits)
        for cursor in ["a", "b", "c"] { _ = long.took(page(nil, cursor)) }
        #expect(long.isOver && !long.isComplete)
        var away = GapFetch(since: now, now: now, limits: limits)
        for _ in 0..<3 { _ = away.failed(.status(412, retryAfter: nil)) }
        #expect(!away.isOver)
        _ = away.failed(.unreachable)
        #expect(away.isOver && !away.isComplete)
        for status in [400, 404] {
            var refused = GapFetch(since: now, now: now, limits: limits)
            _ = refused.failed(.status(status, retryAfter: nil))
            #expect(refused.isOver)
        }
    }
}

@Suite("Messages that came before")
struct SeenMessagesTests {
    private func hash(_ number: Int) -> [UInt8] {
        (0..<32).map { UInt8(truncatingIfNeeded: number >> (8 * ($0 % 8))) }
    }

    @Test("A message is new once, for as many others as are remembered")
    func remembers() {
        let seen = SeenWakuMessages(limit: 10)
        for number in 0..<10 { #expect(seen.note(hash(number))) }
        for number in 0..<10 { #expect(!seen.note(hash(number))) }
        for number in 10..<20 { #expect(seen.note(hash(number))) }
        #expect(!seen.note(hash(19)))
        #expect(seen.note(hash(0)), "forgotten")
    }

    @Test("It is offered to one at a time, and is seen once somebody has taken it")
    func custody() {
        let seen = SeenWakuMessages(limit: 10)
        #expect(seen.begin(hash(1)))
        #expect(!seen.begin(hash(1)) && !seen.note(hash(1)), "under way")
        seen.end(hash(1), isTaken: false)
        #expect(seen.begin(hash(1)))
        seen.end(hash(1), isTaken: true)
        #expect(!seen.begin(hash(1)) && !seen.note(hash(1)))
        // What is under way is remembered however many others come.
        #expect(seen.begin(hash(2)))
        for number in 10..<40 { #expect(seen.note(hash(number))) }
        #expect(!seen.begin(hash(2)))
    }
}
