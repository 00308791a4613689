import NextcloudPush
import PushModel
import PushTesting
import Testing

/// What an origin does when a proxy does not take what it is given (§4.7).
@Suite("Nextcloud queue to proxies", .timeLimit(.minutes(30)))
struct ProxyQueueTests {
    private static let fine = CallAnswer(200, #"{"unknown":[],"failed":0}"#)
    private static let other = "https://other.example.com"
    private let ends: Ends
    private var random = SeededRandom(seed: 9)

    init() throws { ends = try Ends() }

    private func queue(_ entries: [SealedEntry], retries: ProxyQueue.Retries = .withBackoff) -> ProxyQueue {
        var queue = ProxyQueue(NextcloudOrigin(), retries: retries)
        queue.add(entries, now: Ends.now)
        return queue
    }

    @Test("All entries go in one call to each proxy, and none while one is under way")
    mutating func oneCall() throws {
        var queue = queue((0..<5).map { ends.entry("\($0)", proxy: $0 < 3 ? Ends.proxy : Self.other) })
        let calls = queue.next(now: Ends.now)
        #expect(calls.map(\.count).sorted() == [2, 3])
        #expect(
            Set(calls.map(\.request.url)) == [Ends.proxy + "/notifications", Self.other + "/notifications"])
        queue.add([ends.entry("late")], now: Ends.now)
        #expect(queue.next(now: Ends.now).isEmpty)
        for call in calls {
            let settled = try #require(
                queue.settle(call.id, Self.fine, rows: [], now: Ends.now, using: &random))
            #expect(settled.verdict.outcome == .sent && settled.retried == 0 && settled.lost == 0)
        }
        #expect(queue.next(now: Ends.now).map(\.count) == [1])
        #expect(queue.settle(calls[0].id, Self.fine, rows: [], now: Ends.now, using: &random) == nil)
    }

    @Test("A proxy that is away is tried again after 1 s, doubled up to 5 minutes; others go on")
    mutating func backoff() throws {
        var queue = queue([ends.entry("a"), ends.entry("b", proxy: Self.other)])
        var now = Ends.now
        var pauses: [Duration] = []
        for round in 0..<14 {
            let calls = queue.next(now: now)
            #expect(calls.count == (round == 0 ? 2 : 1))
            for call in calls {
                let isAway = call.request.url.hasPrefix(Ends.proxy)
                let answer = isAway ? CallAnswer.none : Self.fine
                let settled = queue.settle(call.id, answer, rows: [], now: now, using: &random)
                #expect(settled?.retried == (isAway ? 1 : 0))
            }
            let next = try #require(queue.nextDeadline)
            #expect(queue.next(now: next - .milliseconds(1)).isEmpty)
            pauses.append(next.since(now))
            now = next
        }
        for (round, pause) in pauses.enumerated() {
            let whole = min(Duration.seconds(300), .seconds(1 << round))
            #expect(pause <= whole && pause >= whole / 2, "round \(round)")
        }
        // One success, and it starts from a second again.
        let call = try #require(queue.next(now: now).first)
        _ = queue.settle(call.id, Self.fine, rows: [], now: now, using: &random)
        #expect(queue.count == 0 && queue.nextDeadline == nil)
    }

    @Test(
        "What time may mend is tried again, and nothing else",
        arguments: [(500, 1), (502, 1), (503, 1), (429, 1), (408, 1), (400, 0), (401, 0), (403, 0), (404, 0)])
    mutating func statuses(_ status: Int, _ retried: Int) throws {
        var queue = queue([ends.entry("a")])
        let call = try #require(queue.next(now: Ends.now).first)
        let settled = try #require(
            queue.settle(call.id, CallAnswer(status, "no"), rows: [], now: Ends.now, using: &random))
        #expect(settled.verdict.outcome == .refused)
        #expect(settled.retried == retried && settled.lost == 1 - retried)
        #expect(settled.verdict.isRateLimited == (status == 429))
        #expect(queue.count == retried)
    }

    @Test("Retry-After is obeyed, after a success too; a proxy that asks for years is asked after a day")
    mutating func retryAfter() throws {
        for (answer, seconds) in [
            (CallAnswer(503, "", retryAfter: "120"), 120),
            (CallAnswer(429, #"{"unknown":null,"failed":1}"#, retryAfter: "90"), 90),
            (CallAnswer(503, "", retryAfter: "99999999999"), 86_400)
        ] as [(CallAnswer, Int64)] {
            var queue = queue([ends.entry("a")])
            let call = try #require(queue.next(now: Ends.now).first)
            _ = queue.settle(call.id, answer, rows: [], now: Ends.now, using: &random)
            queue.add([ends.entry("b")], now: Ends.now)
            #expect(queue.nextDeadline == Ends.now + .seconds(seconds))
        }
    }

    @Test("A call that is too large is split until it fits, and an entry that is too large alone is lost")
    mutating func splits() throws {
        var queue = queue((0..<13).map { ends.entry("\($0)") })
        var counts: [Int] = []
        while let call = queue.next(now: Ends.now).first {
            counts.append(call.count)
            let answer = call.count > 3 ? CallAnswer(413, "too big") : Self.fine
            let settled = queue.settle(call.id, answer, rows: [], now: Ends.now, using: &random)
            #expect(settled?.lost == 0)
        }
        #expect(counts == [13, 6, 3, 3, 3, 3, 1])
        queue.add([ends.entry("huge")], now: Ends.now)
        let call = try #require(queue.next(now: Ends.now).first)
        let settled = queue.settle(
            call.id, CallAnswer(413, ""), rows: [], now: Ends.now, using: &random)
        #expect(settled?.lost == 1)
        #expect(queue.count == 0)
    }

    @Test("Nothing is sent that is a day old, and no call that has rung for a minute")
    mutating func life() throws {
        var queue = queue([ends.entry("chat"), ends.entry("call", isCall: true)])
        #expect(queue.next(now: Ends.now + .seconds(60)).map(\.count) == [1])
        #expect(queue.dropped == 1)
        var old = self.queue([ends.entry("chat")])
        #expect(old.next(now: Ends.now + .seconds(86_399)).count == 1)
        old = self.queue([ends.entry("chat")])
        #expect(old.next(now: Ends.now + .seconds(86_400)).isEmpty)
        #expect(old.dropped == 1 && old.count == 0)
        // An answer that comes too late for another try loses it.
        old = self.queue([ends.entry("chat")])
        let call = try #require(old.next(now: Ends.now).first)
        let settled = old.settle(
            call.id, .none, rows: [], now: Ends.now + .seconds(86_400), using: &random)
        #expect(settled?.lost == 1 && settled?.retried == 0)
    }

    @Test("Where a proxy's share or everything is full the oldest go, and other proxies keep theirs")
    mutating func bounds() throws {
        let share = NextcloudLimits.queuedPerProxy
        let entry = ends.entry("a")
        var queue = queue(Array(repeating: entry, count: share + 5))
        #expect(queue.count == share && queue.dropped == 5)
        for proxy in 0..<4 {
            let other = ends.entry("b", proxy: "https://p\(proxy).example.com")
            queue.add(Array(repeating: other, count: 10_000), now: Ends.now)
        }
        #expect(queue.count == NextcloudLimits.queuedEntries)
        let counts = queue.next(now: Ends.now).map(\.count)
        // The one with most has given way.
        #expect(counts.sorted() == [10_000, 10_000, 10_000, 10_000, 12_000])
    }

    @Test("What was not settled before a restart is sent after it, the call under way too")
    mutating func restart() throws {
        var queue = queue([ends.entry("a"), ends.entry("b")])
        _ = queue.next(now: Ends.now)
        queue.add([ends.entry("c")], now: Ends.now + .seconds(5))
        let kept = queue.waiting
        #expect(kept.count == 3)
        var again = ProxyQueue(NextcloudOrigin(), waiting: kept)
        #expect(again.next(now: Ends.now + .seconds(86_400)).map(\.count) == [1])
        #expect(again.dropped == 2)
    }

    @Test("As the deployed server has it, nothing is tried twice")
    mutating func deployed() throws {
        var queue = queue([ends.entry("a")], retries: .never)
        let call = try #require(queue.next(now: Ends.now).first)
        let settled = queue.settle(
            call.id, CallAnswer(503, ""), rows: [], now: Ends.now, using: &random)
        #expect(settled?.lost == 1 && queue.count == 0)
    }

    @Test("Proxies that users invent are not remembered without end")
    mutating func manyProxies() throws {
        var queue = ProxyQueue(NextcloudOrigin())
        for index in 0..<NextcloudLimits.pausedProxies + 50 {
            queue.add([ends.entry("a", proxy: "https://p\(index).example.com", isCall: true)], now: Ends.now)
            let call = try #require(queue.next(now: Ends.now).first)
            let late = Ends.now + .seconds(60)
            let answer = CallAnswer(503, "", retryAfter: "86400")
            _ = queue.settle(call.id, answer, rows: [], now: late, using: &random)
        }
        #expect(queue.remembered <= NextcloudLimits.pausedProxies)
    }
}
