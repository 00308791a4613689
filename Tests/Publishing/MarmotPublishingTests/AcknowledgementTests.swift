import DialTesting
import MarmotPush
import PushModel
import PushTesting
import Secp256k1Keys
import Simulators
import Testing

@testable import MarmotPublishing

@Suite("What relays answer to a trigger", .timeLimit(.minutes(30)))
struct AcknowledgementTests {
    private func rig(
        _ knobs: @escaping (inout NostrRelayKnobs) -> Void
    ) async throws -> PublishingRelayRig {
        let rig = try await PublishingRelayRig(knobs)
        rig.publishList(rig.urls)
        return rig
    }

    /// The relays are built in, whatever becomes of the look-up.
    private func publisher(_ rig: PublishingRelayRig, grace: Duration = .milliseconds(50)) throws
        -> MarmotPublisher
    {
        try rig.publisher(lookUp: [], builtIn: [rig.server: rig.urls]) { $0.grace = grace }
    }

    @Test(
        "A refusal of a moment is tried once more, a lasting one is not",
        arguments: [(NostrReason.rateLimited, 2), (.error, 2), (.blocked, 1), (.invalid, 1), (.pow, 1)])
    func refusals(_ reason: NostrReason, _ tries: Int) async throws {
        let rig = try await rig { $0.refusesEvents = reason }
        let error = try #require(await missed(try publisher(rig), [try rig.token()]))
        #expect(error.servers[0].relays.map(\.answer) == [.refused(reason)])
        #expect(error.servers[0].sentence == WakeReport.notTaken)
        #expect(rig.relays[0].counters.eventsReceived == tries)
        await rig.stop()
    }

    @Test("A relay that is slower than its moment takes the second try, and it is the same event")
    func secondTry() async throws {
        let rig = try await rig { $0.refusesEvents = .rateLimited }
        let notes = rig.relays[0].notes()
        let publisher = try publisher(rig)
        let token = try rig.token()
        async let failure = missed(publisher, [token])
        let first = try await notes.next("a trigger") { if case .published = $0 { true } else { false } }
        rig.relays[0].turn { $0.refusesEvents = nil }
        #expect(await failure == nil)
        guard case .published(let event, false) = first else { return }
        #expect(rig.wraps().map(\.id) == [event.id])
        await rig.stop()
    }

    @Test("A NOTICE alone is a refusal, and is not waited on until the end")
    func noticeAlone() async throws {
        let rig = try await rig {
            $0.refusesEvents = .blocked
            $0.refusesByNoticeAlone = true
        }
        let error = try #require(await missed(try publisher(rig), [try rig.token()]))
        #expect(error.servers[0].relays.map(\.answer) == [.refused(.blocked)])
        await rig.stop()
    }

    @Test("A look-up that is refused by NOTICE alone ends")
    func lookUpNotice() async throws {
        let rig = try await rig {
            $0.refusesRequests = .error
            $0.refusesByNoticeAlone = true
        }
        let error = try #require(await missed(try rig.publisher(), [try rig.token()]))
        #expect(error.servers[0].sentence == WakeReport.notFound)
        await rig.stop()
    }

    @Test("A relay that keeps the end of what it has to itself has said its list all the same")
    func withheldEnd() async throws {
        let rig = try await rig { $0.withholdsEndOfStored = true }
        let token = try rig.token()
        // The list comes within the time of a look-up, or within that of a later one.
        try await asked(for: "a list that was said in time") {
            await missed(try rig.publisher { $0.lookUp = .milliseconds(300) }, [token]) == nil
        }
        #expect(!rig.wraps().isEmpty)
        await rig.stop()
    }

    @Test(
        "Who must prove himself does: on demand, or to a relay that challenges first and says NOTICE",
        arguments: [(false, false), (false, true), (true, false), (true, true)], [0, 150])
    func proof(_ kind: (isFirst: Bool, byNotice: Bool), _ delay: Int) async throws {
        let (isFirst, byNotice) = kind
        let rig = try await rig {
            $0.authenticatesPublishers = true
            $0.authentication = isFirst ? .onConnect : .onDemand
            $0.refusesByNoticeAlone = byNotice && isFirst
            $0.takesProofsSilently = byNotice
            // Longer than the grace: the proof is on its way before the refusal comes.
            $0.answerDelay = .milliseconds(delay)
        }
        #expect(await missed(try rig.publisher(), [try rig.token()]) == nil)
        let counters = rig.relays[0].counters
        #expect(counters.authentications == 2, "one for the look-up and one for the trigger")
        #expect(rig.wraps().count == 1)
        await rig.stop()
    }

    @Test("Proofs are by keys that nobody sees twice, and none is the wrap's")
    func proofKeys() async throws {
        let rig = try await rig { $0.authenticatesPublishers = true }
        let notes = rig.relays[0].notes()
        let publisher = try publisher(rig)
        for _ in 0..<2 { #expect(await missed(publisher, [try rig.token()]) == nil) }
        var keys = Set(rig.wraps().map(\.pubkey))
        for _ in 0..<2 {
            let note = try await notes.next("a proof") { if case .authenticated = $0 { true } else { false } }
            if case .authenticated(let key) = note { keys.insert(key) }
        }
        #expect(keys.count == 4 && !keys.contains(rig.server))
        await rig.stop()
    }

    @Test("A relay that answers late is waited for")
    func late() async throws {
        let rig = try await rig { $0.answerDelay = .milliseconds(300) }
        #expect(await missed(try publisher(rig), [try rig.token()]) == nil)
        await rig.stop()
    }

    @Test("A relay that says nothing holds up no look-up when another has the list")
    func silence() async throws {
        let rig = try await PublishingRelayRig(relays: 2)
        rig.relays[1].turn { $0.isSilent = true }
        rig.publishList([rig.urls[0]])
        #expect(await missed(try rig.publisher(), [try rig.token()]) == nil)
        // The other one may have answered before the silent one was asked.
        #expect(rig.relays[1].counters.requests <= 1 && rig.wraps().count == 1)
        await rig.stop()
    }

    @Test("A relay's document is read once, and says how large a trigger may be")
    func document() async throws {
        let rig = try await PublishingRelayRig(relays: 0)
        let web = ScriptedWeb { _ in WebAnswer(200, #"{"limitation":{"max_message_length":7000}}"#) }
        // Plain ws is not asked for a document, and this one is not there: its document counts anyway.
        let publisher = try rig.publisher(
            lookUp: [], builtIn: [rig.server: ["wss://127.0.0.1:1"]], web: web)
        let tokens = try (0..<3).map { _ in try rig.token(.pushV1) }
        let error = try #require(await missed(publisher, tokens))
        #expect(error.servers[0].triggers > 1, "19 fit the common frame, and one or two this one")
        _ = await missed(publisher, tokens)
        #expect(web.requests.value.count == 1)
        await rig.stop()
    }
}
