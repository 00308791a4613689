import Delivery
import PushModel
import Testing

@Suite("A lane's breaker")
struct BreakerTests {
    let sent = UnixTime(seconds: 5)
    var breaker = Breaker(answers: 100, addresses: 20)

    private func answer(_ outcome: Outcome, _ reason: Reason) -> Answer {
        Answer(outcome, reason, sentAt: sent)
    }

    @Test("A fault of the credential halts at once, and an acceptance resumes")
    mutating func credential() {
        #expect(
            breaker.note(answer(.misconfigured(.credential), .invalidProviderToken), address: 1)
                == .halted(.credential))
        #expect(breaker.note(answer(.misconfigured(.credential), .invalidProviderToken), address: 1) == .none)
        #expect(breaker.note(answer(.accepted, .ok), address: 2) == .resumed)
        #expect(breaker.state == .open)
    }

    @Test("One address with a bad topic, a thousand times, never halts a lane")
    mutating func oneAddress() {
        for _ in 0..<1_000 {
            #expect(breaker.note(answer(.misconfigured(.target), .topicDisallowed), address: 7) == .none)
        }
        #expect(breaker.state == .open)
        #expect(!breaker.sparesRegistrations)
    }

    @Test("Twenty distinct addresses without an acceptance halt it and spare the registrations")
    mutating func twentyAddresses() {
        for address in 0..<19 {
            #expect(
                breaker.note(answer(.unregistered(since: nil), .badDeviceToken), address: address) == .none)
        }
        #expect(!breaker.sparesRegistrations)
        #expect(
            breaker.note(answer(.unregistered(since: nil), .badDeviceToken), address: 19) == .halted(.targets)
        )
        #expect(breaker.sparesRegistrations)
        #expect(breaker.note(answer(.accepted, .ok), address: 1) == .resumed)
        #expect(!breaker.sparesRegistrations)
    }

    @Test("An acceptance among them starts the count anew")
    mutating func acceptanceBetween() {
        for address in 0..<19 {
            _ = breaker.note(answer(.misconfigured(.target), .badTopic), address: address)
        }
        #expect(breaker.note(answer(.accepted, .ok), address: 50) == .none)
        #expect(breaker.note(answer(.misconfigured(.target), .badTopic), address: 19) == .none)
        #expect(breaker.state == .open)
    }

    @Test("Only the last hundred answers count")
    mutating func window() {
        for address in 0..<19 {
            _ = breaker.note(answer(.misconfigured(.target), .badTopic), address: address)
        }
        for _ in 0..<100 { _ = breaker.note(answer(.retry(after: nil), .serviceUnavailable), address: 500) }
        #expect(breaker.note(answer(.misconfigured(.target), .badTopic), address: 19) == .none)
        #expect(breaker.state == .open)
    }

    @Test("A true 410 blames its address and nothing else")
    mutating func unregistered() {
        for address in 0..<200 {
            let change = breaker.note(answer(.unregistered(since: sent), .unregisteredAPNs), address: address)
            #expect(change == .none)
        }
    }
}

@Suite("Back-off")
struct BackoffTests {
    let backoff = Backoff(base: .seconds(1), cap: .seconds(60), floorCap: .seconds(900))

    @Test(
        "The ceiling doubles up to the cap, and the wait lies below it",
        arguments: [
            (1, 1_000), (2, 2_000), (3, 4_000), (6, 32_000), (7, 60_000), (40, 60_000), (1_000_000, 60_000)
        ])
    func ceiling(attempt: Int, milliseconds: Int64) {
        let least = backoff.delay(afterAttempt: attempt, asked: nil, random: 0)
        let most = backoff.delay(afterAttempt: attempt, asked: nil, random: .max)
        #expect(least == .zero)
        #expect(most == .milliseconds(milliseconds - 1))
    }

    @Test("Retry-After is a floor, and is itself bounded")
    func floor() {
        #expect(backoff.delay(afterAttempt: 1, asked: .seconds(30), random: 0) == .seconds(30))
        #expect(backoff.delay(afterAttempt: 1, asked: .seconds(86_400), random: 0) == .seconds(900))
        #expect(backoff.delay(afterAttempt: 1, asked: .seconds(-5), random: 0) == .zero)
    }
}
