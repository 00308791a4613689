import HTTPIngress
import PushModel
import PushTesting
import Synchronization
import Testing

@Suite("Rates are counted in units of a key")
struct RateTests {
    let start = ContinuousClock.now

    @Test("A full minute's worth goes at once; then a unit each time one has been earned")
    func bucket() {
        var buckets = RateBuckets<Int>(perMinute: 60, capacity: 10, start: start)
        #expect(buckets.take(60, of: 1, now: start) == .allowed)
        #expect(buckets.take(1, of: 1, now: start) == .refused(retryAfter: .seconds(1)))
        #expect(buckets.take(3, of: 1, now: start + .seconds(1)) == .refused(retryAfter: .seconds(2)))
        #expect(buckets.take(3, of: 1, now: start + .seconds(3)) == .allowed)
        #expect(buckets.take(1, of: 1, now: start + .seconds(3)) == .refused(retryAfter: .seconds(1)))
        #expect(buckets.take(60, of: 2, now: start) == .allowed, "another key has its own bucket")
    }

    @Test("A refusal costs nothing: after exactly the span it names the same call is allowed")
    func refusalIsFree() {
        var buckets = RateBuckets<Int>(perMinute: 60_000, capacity: 10, start: start)
        #expect(buckets.take(60_000, of: 1, now: start) == .allowed)
        for _ in 0..<1000 {
            #expect(buckets.take(500, of: 1, now: start) == .refused(retryAfter: .milliseconds(500)))
        }
        #expect(
            buckets.take(500, of: 1, now: start + .milliseconds(499))
                == .refused(retryAfter: .milliseconds(1)))
        #expect(buckets.take(500, of: 1, now: start + .milliseconds(500)) == .allowed)
    }

    @Test("Over any span no key gets more than the burst and what the span earned", arguments: [7, 60, 1000])
    func bound(_ perMinute: Int) {
        var buckets = RateBuckets<Int>(perMinute: perMinute, capacity: 4, start: start)
        var allowed = 0
        for tick in 0..<6000 where buckets.take(1, of: 0, now: start + .milliseconds(100 * tick)) == .allowed
        {
            allowed += 1
        }
        // Ten minutes: the burst and ten minutes' earnings, and the latter never withheld.
        #expect(allowed <= perMinute * 11)
        #expect(allowed >= min(perMinute * 10, 6000))
    }

    @Test("A call larger than a minute's worth passes on a full bucket only")
    func largeCall() {
        var buckets = RateBuckets<Int>(perMinute: 10, capacity: 4, start: start)
        #expect(buckets.take(1000, of: 1, now: start) == .allowed)
        #expect(buckets.take(1, of: 1, now: start + .seconds(5)) == .refused(retryAfter: .seconds(1)))
        #expect(buckets.take(1000, of: 1, now: start + .seconds(59)) == .refused(retryAfter: .seconds(1)))
        #expect(buckets.take(1000, of: 1, now: start + .seconds(60)) == .allowed)
    }

    @Test("Zero means no limit, and no bucket is kept")
    func unlimited() {
        var buckets = RateBuckets<Int>(perMinute: 0, capacity: 4, start: start)
        for key in 0..<100 { #expect(buckets.take(1_000_000, of: key, now: start) == .allowed) }
        #expect(buckets.count == 0)
    }

    @Test("The number of buckets is bounded; newcomers share one and known keys keep theirs")
    func capacity() {
        var buckets = RateBuckets<Int>(perMinute: 60, capacity: 100, start: start)
        for key in 0..<100 { #expect(buckets.take(30, of: key, now: start) == .allowed) }
        #expect(buckets.take(60, of: 1000, now: start) == .allowed)
        #expect(
            buckets.take(1, of: 1001, now: start) == .refused(retryAfter: .seconds(1)),
            "the shared one is empty")
        #expect(buckets.take(30, of: 5, now: start) == .allowed, "a known key is not slowed")
        #expect(buckets.count == 100)
        // After a minute all are full again and are dropped for anyone who comes.
        #expect(buckets.take(60, of: 1002, now: start + .seconds(61)) == .allowed)
        #expect(buckets.take(60, of: 1003, now: start + .seconds(61)) == .allowed)
        #expect(buckets.count == 2)
    }

    @Test("A key's own quota goes before the limit of all, up, down and off, and touches no other key")
    func quota() {
        var buckets = RateBuckets<Int>(perMinute: 60, capacity: 10, start: start)
        #expect(buckets.take(60, of: 1, now: start, quota: 120) == .allowed)
        #expect(buckets.take(60, of: 1, now: start, quota: 120) == .allowed)
        #expect(buckets.take(1, of: 1, now: start, quota: 120) == .refused(retryAfter: .milliseconds(500)))
        #expect(buckets.take(1, of: 1, now: start, quota: 0) == .allowed, "0 is no limit")
        #expect(buckets.take(1, of: 1, now: start, quota: 6) == .refused(retryAfter: .seconds(10)))
        #expect(buckets.take(1, of: 1, now: start) == .refused(retryAfter: .seconds(1)), "cleared")
        #expect(buckets.take(60, of: 2, now: start) == .allowed)
        // Where all are unlimited, one may be bounded all the same.
        var unlimited = RateBuckets<Int>(perMinute: 0, capacity: 10, start: start)
        #expect(unlimited.take(10, of: 1, now: start, quota: 10) == .allowed)
        #expect(unlimited.take(1, of: 1, now: start, quota: 10) == .refused(retryAfter: .seconds(6)))
        #expect(unlimited.take(1000, of: 2, now: start) == .allowed)
    }

    @Test("Several relays on one store allow together what one alone allows", arguments: [60, 61, 2])
    func divided(_ perMinute: Int) {
        let living = Mutex(4)
        let world = World.fixed(seed: 1, at: UnixTime(seconds: 1_800_000_000))
        let relays = (0..<4).map { _ in
            RateLimiter<Int>(perMinute: perMinute, world: world) { living.withLock(\.self) }
        }
        let allowed = relays.map { relay in (0..<100).count { _ in relay.take(1, of: 7) == .allowed } }
        let part = (perMinute + 3) / 4
        #expect(allowed == [part, part, part, part])
        #expect(relays[0].take(1, of: 8, quota: 0) == .allowed, "no limit stays none")
        // The others end: what is left of the minute is this one's alone.
        living.withLock { $0 = 1 }
        let alone = (0..<100).count { _ in relays[0].take(1, of: 9) == .allowed }
        #expect(alone == perMinute)
    }

    @Test("Retry-After is whole seconds, rounded up, at least one")
    func retryAfter() {
        let spans: [(Duration, String)] = [
            (.zero, "1"), (.milliseconds(1), "1"), (.seconds(1), "1"), (.milliseconds(1001), "2"),
            (.seconds(59), "59")
        ]
        for (span, text) in spans {
            let answer = HTTPOutbound(429).retrying(after: span)
            #expect(answer.headers.first?.value == text)
        }
    }
}
