import AdminIngress
import Delivery
import PushModel
import Testing

@Suite("The memory of answers")
struct TrailTests {
    private func attempt(_ number: UInt64, _ outcome: OutcomeKind, at second: Int64) -> Attempt {
        Attempt(
            id: PushID(at: UnixTime(seconds: 1), random: number, number), lane: probeLane, number: 1,
            sentAt: UnixTime(seconds: second), answeredAt: UnixTime(seconds: second), outcome: outcome,
            reason: outcome == .accepted ? .ok : .tooManyRequests, next: .ended)
    }

    @Test("All answers of one push come back in order, whichever ring they stand in")
    func order() {
        let trail = AttemptTrail()
        let late = attempt(1, .accepted, at: 30)
        let early = attempt(1, .retry, at: 10)
        let middle = attempt(1, .retry, at: 20)
        for each in [early, middle, late, attempt(2, .retry, at: 15)] { trail.note(each) }
        let found = trail.find(early.id)
        #expect(found.attempts == [early, middle, late])
        #expect(found.acceptancesSince == nil && found.faultsSince == nil, "nothing is forgotten yet")
        #expect(trail.find(PushID(Digest16(high: 7, low: 7))).attempts.isEmpty)
    }

    @Test("The latest refusals come newest first, in a ring that is full and in one that is not")
    func latest() {
        let trail = AttemptTrail(acceptances: 4, faults: 3)
        #expect(trail.latestFaults(5).isEmpty)
        trail.note(attempt(1, .retry, at: 1))
        trail.note(attempt(2, .accepted, at: 2))
        trail.note(attempt(3, .rejected, at: 3))
        #expect(trail.latestFaults(5) == [attempt(3, .rejected, at: 3), attempt(1, .retry, at: 1)])
        for number in 4...9 { trail.note(attempt(UInt64(number), .retry, at: Int64(number))) }
        #expect(trail.latestFaults(5).map(\.answeredAt.seconds) == [9, 8, 7])
        #expect(trail.latestFaults(2).map(\.answeredAt.seconds) == [9, 8])
        #expect(trail.latestFaults(0).isEmpty)
    }

    @Test("Acceptances that stand among the faults hide none of them")
    func latestAmongAcceptances() {
        let trail = AttemptTrail(acceptances: 4, faults: 8)
        let faults = [attempt(1, .retry, at: 1), attempt(2, .rejected, at: 2)]
        for fault in faults { trail.note(fault) }
        for number in 3...6 {
            // More to come, for which the short form has no room.
            trail.note(
                Attempt(
                    id: PushID(at: UnixTime(seconds: 1), random: 1, UInt64(number)), lane: probeLane,
                    number: 1, sentAt: UnixTime(seconds: 3), answeredAt: UnixTime(seconds: 4),
                    outcome: .accepted, reason: .ok, next: .elsewhere))
        }
        #expect(trail.latestFaults(2) == faults.reversed())
        #expect(trail.latestFaults(1) == [faults[1]])
    }

    @Test("Each ring keeps its own latest answers, and says since when; acceptances wash away no fault")
    func rings() {
        let trail = AttemptTrail(acceptances: 4, faults: 2)
        let fault = attempt(1, .retry, at: 1)
        trail.note(fault)
        for number in 2...100 { trail.note(attempt(UInt64(number), .accepted, at: Int64(number))) }
        #expect(trail.find(fault.id).attempts == [fault])
        #expect(trail.find(attempt(96, .accepted, at: 0).id).attempts.isEmpty)
        for number in 97...100 {
            #expect(trail.find(attempt(UInt64(number), .accepted, at: 0).id).attempts.count == 1)
        }
        #expect(trail.find(fault.id).acceptancesSince == UnixTime(seconds: 97))
        #expect(trail.find(fault.id).faultsSince == nil)
        trail.note(attempt(201, .rejected, at: 201))
        trail.note(attempt(202, .unregistered, at: 202))
        #expect(trail.find(fault.id).attempts.isEmpty)
        #expect(trail.find(fault.id).faultsSince == UnixTime(seconds: 201))
    }

    @Test("An acceptance comes back as it was, also one that has no room in the short form")
    func acceptances() {
        let trail = AttemptTrail(acceptances: 4, faults: 4)
        func accepted(_ number: UInt64, attempt: Int, sentAt: Int64, next: Attempt.Next) -> Attempt {
            Attempt(
                id: PushID(at: UnixTime(seconds: 1), random: number, number), lane: probeLane,
                number: attempt, sentAt: UnixTime(milliseconds: sentAt),
                answeredAt: UnixTime(milliseconds: 10_000_000_000), outcome: .accepted, reason: .ok,
                next: next)
        }
        let all = [
            accepted(1, attempt: 3, sentAt: 9_999_999_001, next: .ended),
            // The clock went back meanwhile; a month went by; more attempts than two bytes; more to come.
            accepted(2, attempt: 1, sentAt: 10_000_000_001, next: .ended),
            accepted(3, attempt: 1, sentAt: .min, next: .ended),
            accepted(4, attempt: 70_000, sentAt: 9_999_999_001, next: .ended),
            accepted(5, attempt: 1, sentAt: 9_999_999_001, next: .elsewhere)
        ]
        for each in all { trail.note(each) }
        for each in all { #expect(trail.find(each.id).attempts == [each]) }
    }

    @Test("Acceptances of more lanes than the short form tells apart come back with their own lane")
    func lanes() throws {
        let trail = AttemptTrail(acceptances: 512, faults: 512)
        let all = try (0..<300).map { number in
            Attempt(
                id: PushID(at: UnixTime(seconds: 1), random: 1, UInt64(number)),
                lane: LaneName(
                    app: try #require(ConfiguredName("app\(number)")), service: probeLane.service,
                    environment: .production),
                number: 1, sentAt: UnixTime(seconds: 1), answeredAt: UnixTime(seconds: 2), outcome: .accepted,
                reason: .ok, next: .ended)
        }
        for each in all { trail.note(each) }
        for each in all { #expect(trail.find(each.id).attempts == [each]) }
    }
}
