import MarmotPush
import Testing

@testable import MarmotPublishing

@Suite("What is said to a relay, and what its words mean")
struct RelayTalkTests {
    private typealias Action = RelayTalk.Action
    private static let id = [UInt8](repeating: 7, count: 32)
    private static let proof = [UInt8](repeating: 9, count: 32)
    private static let challenge = RelayTalk.Event.said(.challenge("c"))

    private func ok(_ isAccepted: Bool, _ text: String = "", id: [UInt8] = id) -> RelayTalk.Event {
        .said(.ok(id: id, isAccepted: isAccepted, text: text))
    }

    private func notice(_ text: String) -> RelayTalk.Event { .said(.notice(text: text)) }

    /// What a talk answers to these events, in order, behind the wish itself; nothing comes behind its end.
    private func run(_ wish: RelayTalk.Wish, _ events: [RelayTalk.Event]) -> [Action] {
        var talk = RelayTalk(wish)
        var said: [Action] = []
        #expect(talk.take(.opened) == .ask)
        for event in events {
            if case .quiet = event { #expect(talk.isPressed, "nobody waits for a while here") }
            guard let action = talk.take(event) else { continue }
            said.append(action)
            if case .prove = action { talk.proved(Self.proof) }
        }
        return said
    }

    private func run(_ events: [RelayTalk.Event]) -> [Action] { run(.publish(Self.id), events) }

    @Test("OK decides, and a duplicate that is refused is there all the same")
    func ok() {
        #expect(run([ok(true)]) == [.end(.granted)])
        #expect(run([ok(false, "duplicate: have it")]) == [.end(.granted)])
        #expect(run([ok(false, "rate-limited: slow down")]) == [.end(.refused(.rateLimited))])
        #expect(run([ok(false, "no")]) == [.end(.refused(nil))])
        #expect(run([ok(true, id: Self.proof), .ended]) == [.end(.closed)], "another event's")
    }

    @Test("Who must prove himself does so once, whichever comes first, refusal or challenge")
    func proof() {
        let proves: [Action] = [.prove(challenge: "c"), .ask]
        let own = ok(true, id: Self.proof)
        #expect(
            run([Self.challenge, ok(false, "auth-required: "), own, ok(true)]) == proves + [.end(.granted)])
        #expect(
            run([ok(false, "auth-required: "), Self.challenge, own, ok(true)]) == proves + [.end(.granted)])
        #expect(
            run([Self.challenge, ok(false, "auth-required: "), own, ok(false, "auth-required: ")])
                == proves + [.end(.refused(.authRequired))])
        #expect(
            run([Self.challenge, ok(false, "restricted: "), own, ok(true)]) == proves + [.end(.granted)])
        #expect(run([ok(false, "restricted: ")]) == [.end(.refused(.restricted))])
        #expect(run([ok(false, "auth-required: "), .quiet]) == [.end(.refused(.authRequired))])
        #expect(
            run([Self.challenge, ok(false, "auth-required: "), ok(false, id: Self.proof)])
                == [.prove(challenge: "c"), .end(.refused(.authRequired))])
    }

    @Test("A relay that challenged and then says nothing, or a NOTICE, wants the proof first")
    func authenticationFirst() {
        let proves: [Action] = [.prove(challenge: "c"), .ask, .end(.granted)]
        #expect(run([Self.challenge, notice("restricted: no"), ok(true, id: Self.proof), ok(true)]) == proves)
        #expect(run([Self.challenge, .quiet, ok(true, id: Self.proof), ok(true)]) == proves)
        // nostr-relay takes a proof without a word.
        #expect(run([Self.challenge, .quiet, .quiet, ok(true)]) == proves)
    }

    @Test("A relay that is slower than the grace refuses what was said before the proof, and not what comes")
    func lateRefusals() {
        let own = ok(true, id: Self.proof)
        let late = ok(false, "auth-required: ")
        let proves: [Action] = [.prove(challenge: "c"), .ask]
        for refusal in [late, ok(false, "restricted: "), notice("restricted: no")] {
            #expect(run([Self.challenge, .quiet, refusal, own, ok(true)]) == proves + [.end(.granted)])
            #expect(run([Self.challenge, .quiet, own, refusal, ok(true)]) == proves + [.end(.granted)])
            #expect(run([Self.challenge, .quiet, .quiet, refusal, ok(true)]) == proves + [.end(.granted)])
        }
        // The second refusal is of what was said behind the proof.
        #expect(
            run([Self.challenge, .quiet, late, own, late]) == proves + [.end(.refused(.authRequired))])
        #expect(
            run([Self.challenge, .quiet, notice("no"), .quiet, notice("no"), .quiet])
                == proves + [.end(.refused(nil))])
        // What no proof mends counts at once.
        #expect(
            run([Self.challenge, .quiet, ok(false, "blocked: ")])
                == [.prove(challenge: "c"), .end(.refused(.blocked))])
    }

    @Test("A NOTICE alone is a refusal, and one before the answer is none")
    func notices() {
        #expect(run([notice("rate-limited: slow"), .quiet]) == [.end(.refused(.rateLimited))])
        #expect(run([notice("go away"), .quiet]) == [.end(.refused(nil))])
        #expect(run([notice("blocked: you"), .ended]) == [.end(.refused(.blocked))])
        #expect(run([notice("welcome"), ok(true)]) == [.end(.granted)])
        #expect(
            run([Self.challenge, notice("restricted: no"), .quiet, notice("restricted: no"), .quiet])
                == [.prove(challenge: "c"), .ask, .end(.refused(.restricted))])
    }

    @Test("A look-up ends with EOSE or CLOSED of its own name")
    func reading() {
        let wish = RelayTalk.Wish.read(subscription: "l")
        #expect(run(wish, [.said(.endOfStored(subscription: "l"))]) == [.end(.granted)])
        #expect(run(wish, [.said(.endOfStored(subscription: "x")), .ended]) == [.end(.closed)])
        #expect(
            run(wish, [.said(.closed(subscription: "l", text: "blocked: "))]) == [.end(.refused(.blocked))])
        #expect(
            run(
                wish,
                [
                    Self.challenge, .said(.closed(subscription: "l", text: "auth-required: ")),
                    ok(true, id: Self.proof), .said(.endOfStored(subscription: "l"))
                ]) == [.prove(challenge: "c"), .ask, .end(.granted)])
        #expect(run(wish, [notice("bad req"), .quiet]) == [.end(.refused(nil))])
        #expect(run(wish, [ok(true), .ended]) == [.end(.closed)], "no answer to a request")
    }

    @Test("Whatever comes in whatever order, a proof is asked for once and the wish said twice at most")
    func everyOrder() {
        let events: [RelayTalk.Event] = [
            Self.challenge, notice("n"), ok(false, "auth-required: "), ok(true, id: Self.proof), .quiet,
            .said(.endOfStored(subscription: "l"))
        ]
        func walk(_ talk: RelayTalk, _ depth: Int, proofs: Int, asks: Int) {
            #expect(proofs <= 1 && asks <= 1)
            guard depth > 0 else { return }
            for event in events {
                var talk = talk
                let action = talk.take(event)
                if case .end = action { continue }
                var (proofs, asks) = (proofs, asks)
                if case .prove = action {
                    talk.proved(Self.proof)
                    proofs += 1
                }
                if action == .ask { asks += 1 }
                walk(talk, depth - 1, proofs: proofs, asks: asks)
            }
        }
        var talk = RelayTalk(.publish(Self.id))
        _ = talk.take(.opened)
        walk(talk, 5, proofs: 0, asks: 0)
    }
}
