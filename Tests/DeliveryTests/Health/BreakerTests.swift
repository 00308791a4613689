import Delivery
import PushModel
import Testing

@Suite("A lane's breaker")
struct BreakerTests {
    let sent = UnixTime(seconds: 5)
    var breaker = Breaker(answers: 100, addresses: 20, witnesses: 3, memory: .seconds(3_600))
    private let start = ContinuousClock.now

    private mutating func note(
        _ outcome: Outcome, _ reason: Reason, address: Int, origin: UInt64? = 1, after span: Duration = .zero,
        fate: Answer.Fate = .answered
    ) -> Breaker.Change {
        breaker.note(
            Answer(outcome, reason, sentAt: sent, fate: fate), address: address,
            origin: origin.map { Digest16(high: 0, low: $0) }, at: start + span)
    }

    private mutating func fault(_ address: Int, origin: UInt64? = 1, after span: Duration = .zero)
        -> Breaker.Change
    {
        note(.unregistered(since: nil), .badDeviceToken, address: address, origin: origin, after: span)
    }

    private mutating func credentialFault(_ origin: UInt64 = 1, proofs: Int = 0) -> Breaker.Change {
        breaker.note(
            Answer(.misconfigured(.credential), .invalidProviderToken, sentAt: sent), address: 1,
            origin: Digest16(high: 0, low: origin), proofs: proofs, at: start)
    }

    @Test("Three faults of the credential in a row halt, one or two do not, and an acceptance resumes")
    mutating func credential() {
        for _ in 0..<100 {
            #expect(credentialFault() == .none && credentialFault() == .none)
            #expect(note(.accepted, .ok, address: 2) == .none)
        }
        #expect(credentialFault() == .none && credentialFault() == .none)
        // What is no word about the credential is none between them.
        #expect(note(.retry(after: nil), .serviceUnavailable, address: 2) == .none)
        #expect(note(.unregistered(since: nil), .badDeviceToken, address: 3) == .none)
        #expect(credentialFault() == .halted(.credential))
        #expect(credentialFault() == .none)
        #expect(note(.accepted, .ok, address: 2) == .resumed)
        #expect(breaker.state == .open)
        #expect(credentialFault() == .none, "and the count begins anew")
    }

    @Test(
        "While the credential proves good in other lanes it takes many more, and then it is this lane's fault"
    )
    mutating func besideProof() {
        for number in 1..<20 { #expect(credentialFault(proofs: number) == .none) }
        #expect(credentialFault(proofs: 20) == .halted(.credential))
        #expect(note(.accepted, .ok, address: 2) == .resumed)
        // The other lane is silent again.
        #expect(credentialFault(proofs: 20) == .none && credentialFault(proofs: 20) == .none)
        #expect(credentialFault(proofs: 20) == .halted(.credential))
    }

    @Test("What our own side has found out by asking several times halts at once")
    mutating func found() {
        #expect(
            note(.misconfigured(.credential), .credentialUnavailable, address: 1, fate: .unprocessed)
                == .halted(.credential))
    }

    @Test(
        "Answers that doubt the credential for a while halt as well, when there are several in a row",
        arguments: [Reason.tooManyProviderTokenUpdates, .unrelatedKeyIdInToken])
    mutating func doubts(_ reason: Reason) {
        for _ in 0..<2 { #expect(note(.retry(after: nil), reason, address: 1) == .none) }
        #expect(note(.accepted, .ok, address: 2) == .none)
        for _ in 0..<2 { #expect(note(.retry(after: nil), reason, address: 1) == .none) }
        #expect(note(.retry(after: nil), reason, address: 1) == .halted(.credential))
        #expect(note(.accepted, .ok, address: 2) == .resumed)
    }

    @Test(
        "What is said of a token that the service knows ends the halt, and what any credential may hear does not",
        arguments: [
            (Reason.unregisteredAPNs, true), (.expiredToken, true), (.deviceTokenNotForTopic, true),
            (.unregisteredFCM, true), (.senderIdMismatch, true), (.badDeviceToken, false),
            (.payloadTooLarge, false), (.serviceUnavailable, false)
        ])
    mutating func provesCredential(_ reason: Reason, _ resumes: Bool) {
        for _ in 0..<3 { _ = credentialFault() }
        #expect(note(.unregistered(since: nil), reason, address: 2, fate: .unprocessed) == .none)
        #expect(note(.unregistered(since: nil), reason, address: 2) == (resumes ? .resumed : .none))
        #expect(breaker.state == (resumes ? .open : .halted(.credential)))
        // A halt for targets ends with an acceptance alone.
        for address in 3..<40 { _ = fault(address) }
        guard resumes else { return }
        #expect(breaker.state == .halted(.targets))
        #expect(note(.unregistered(since: nil), reason, address: 2) == .none)
        #expect(breaker.state == .halted(.targets))
    }

    @Test("Whoever heard of a fault of the credential only is an origin that the app has")
    mutating func knownByCredential() {
        for origin in 2...3 as ClosedRange<UInt64> { _ = credentialFault(origin) }
        _ = note(.accepted, .ok, address: 2, origin: nil)
        for address in 3..<40 { #expect(fault(address, origin: 9) == .none) }
    }

    @Test("One address with a bad topic, a thousand times, never halts a lane")
    mutating func oneAddress() {
        for _ in 0..<1_000 {
            #expect(note(.misconfigured(.target), .topicDisallowed, address: 7) == .none)
        }
        #expect(breaker.state == .open)
        #expect(!breaker.sparesRegistrations)
    }

    @Test("Twenty distinct addresses without an acceptance halt it and spare the registrations")
    mutating func twentyAddresses() {
        for address in 0..<19 {
            #expect(
                note(.unregistered(since: nil), .badDeviceToken, address: address) == .none)
        }
        #expect(!breaker.sparesRegistrations)
        #expect(
            note(.unregistered(since: nil), .badDeviceToken, address: 19) == .halted(.targets)
        )
        #expect(breaker.sparesRegistrations)
        #expect(note(.accepted, .ok, address: 1) == .resumed)
        #expect(!breaker.sparesRegistrations)
    }

    @Test("An acceptance among them starts the count anew")
    mutating func acceptanceBetween() {
        for address in 0..<19 {
            _ = note(.misconfigured(.target), .badTopic, address: address)
        }
        #expect(note(.accepted, .ok, address: 50) == .none)
        #expect(note(.misconfigured(.target), .badTopic, address: 19) == .none)
        #expect(breaker.state == .open)
    }

    @Test("Only the last hundred answers count")
    mutating func window() {
        for address in 0..<19 {
            _ = note(.misconfigured(.target), .badTopic, address: address)
        }
        for _ in 0..<100 { _ = note(.retry(after: nil), .serviceUnavailable, address: 500) }
        #expect(note(.misconfigured(.target), .badTopic, address: 19) == .none)
        #expect(breaker.state == .open)
    }

    @Test("What was refused here counts for nothing, however many addresses it is")
    mutating func local() {
        for address in 0..<200 {
            let change = note(.unregistered(since: nil), .badDeviceToken, address: address, fate: .local)
            #expect(change == .none)
        }
        #expect(!breaker.sparesRegistrations)
    }

    @Test("As many origins must witness as the app has, and no more than three", arguments: 1...5)
    mutating func witnesses(_ origins: UInt64) {
        for origin in 1...origins {
            _ = note(.accepted, .ok, address: 1_000, origin: origin)
        }
        for address in 0..<50 {
            let change = fault(address, origin: 1)
            #expect(change == (origins == 1 && address == 19 ? .halted(.targets) : .none))
        }
        guard origins > 1 else { return }
        let second = fault(50, origin: 2)
        #expect(second == (origins == 2 ? .halted(.targets) : .none))
        guard origins > 2 else { return }
        let third = fault(51, origin: 3)
        #expect(third == .halted(.targets))
    }

    @Test("An origin that has not been heard of for an hour is none that the app has")
    mutating func memory() {
        _ = note(.accepted, .ok, address: 1_000, origin: 2)
        for address in 0..<30 { #expect(fault(address, after: .seconds(3_599)) == .none) }
        #expect(fault(30, after: .seconds(3_600)) == .halted(.targets))
    }

    @Test("An origin that comes ends a halt without its witness, twice at most, and spares registrations")
    mutating func reopened() {
        func origin(_ number: UInt64) -> Digest16 { Digest16(high: 0, low: number) }
        for address in 0..<20 { _ = fault(address) }
        #expect(breaker.state == .halted(.targets))
        #expect(breaker.heard(of: origin(1), at: start) == .none)
        #expect(breaker.heard(of: origin(2), at: start) == .reopened)
        #expect(breaker.state == .open && breaker.sparesRegistrations)
        #expect(fault(20) == .none)
        #expect(fault(21, origin: 2) == .halted(.targets))
        #expect(breaker.heard(of: origin(3), at: start) == .reopened)
        #expect(fault(22, origin: 3) == .halted(.targets))
        #expect(breaker.heard(of: origin(4), at: start) == .none)
        #expect(note(.accepted, .ok, address: 1) == .resumed)
        #expect(!breaker.sparesRegistrations)
    }

    @Test("Whoever can be no witness is no origin that must be one")
    mutating func volatile() {
        for address in 0..<19 { _ = fault(address) }
        _ = note(.retry(after: nil), .serviceUnavailable, address: 1, origin: nil)
        #expect(fault(19) == .halted(.targets))
    }

    @Test("A true 410 blames its address and nothing else")
    mutating func unregistered() {
        for address in 0..<200 {
            let change = note(.unregistered(since: sent), .unregisteredAPNs, address: address)
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
