import Delivery
import MarmotPush
import NostrIngress
import Primitives
import PushModel
import PushTesting
import Testing
import WebSocket

/// A relay's state with a clock that a test moves.
private struct Machine {
    var state: RelayState
    var now = ContinuousClock.now
    let key: Secp256k1KeyPair

    init(_ backlog: NostrBacklog = .live, limits: NostrLimits = NostrLimits()) throws {
        key = try Secp256k1KeyPair(secret: Secret([UInt8](repeating: 0, count: 31) + [7]))
        state = RelayState(keys: [key.publicKey.hex], backlog: backlog, limits: limits) { .max }
    }

    /// What the machine asks for, as words.
    mutating func take(_ event: RelayState.Event, after span: Duration = .zero) -> [String] {
        now += span
        return state.take(event, at: now).map(Self.word)
    }

    mutating func say(_ message: NostrMessage.FromRelay, after span: Duration = .zero) -> [String] {
        take(.said(message), after: span)
    }

    static func word(_ action: RelayState.Action) -> String {
        switch action {
        case .dial: "dial"
        case .authenticate(let challenge): "authenticate \(challenge)"
        case .subscribe(let name): "subscribe \(name)"
        case .unsubscribe(let name): "unsubscribe \(name)"
        case .publishList: "publish"
        case .deliver(_, let standing): "deliver \(standing)"
        case .hangUp: "hang up"
        case .note(let note): "note \(note.code)"
        }
    }

    func wrap(kind: Int = NostrKind.giftWrap, to key: XOnlyKey? = nil) -> NostrEvent {
        .rumor(
            kind: kind, createdAt: 1, tags: [["p", (key ?? self.key.publicKey).hex]], content: Secret([]),
            author: self.key.publicKey)
    }
}

private let proof = [UInt8](repeating: 1, count: 32)
private let list = [UInt8](repeating: 2, count: 32)

@Suite("One relay's state")
struct RelayStateTests {
    /// Connected, asked, and told that nothing is stored.
    private func listening(_ backlog: NostrBacklog = .live, limits: NostrLimits = NostrLimits()) throws
        -> Machine
    {
        var machine = try Machine(backlog, limits: limits)
        _ = machine.take(.start)
        _ = machine.take(.connected)
        _ = machine.take(.tick, after: machine.greeting)
        _ = machine.say(.endOfStored(subscription: "1-1"))
        return machine
    }

    @Test("A relay that asks for nothing is subscribed to after the greeting, and given the list")
    func plain() throws {
        var machine = try Machine()
        #expect(machine.take(.start) == ["dial"])
        #expect(machine.take(.connected) == ["note connected"])
        #expect(machine.take(.tick).isEmpty)
        #expect(machine.take(.tick, after: machine.greeting) == ["subscribe 1-1", "publish"])
        #expect(machine.take(.publishing([list])).isEmpty)
        #expect(machine.say(.ok(id: list, isAccepted: true, text: "")) == ["note list-accepted"])
        #expect(!machine.state.isListening)
        #expect(machine.say(.endOfStored(subscription: "1-1")) == ["note listening"])
        #expect(machine.state.isListening)
        #expect(machine.say(.event(subscription: "1-1", machine.wrap())) == ["deliver live"])
    }

    @Test("A challenge on connecting is answered first, and the subscription follows its OK")
    func challengeFirst() throws {
        var machine = try Machine()
        _ = machine.take(.connected)
        #expect(machine.say(.challenge("c")) == ["authenticate c"])
        #expect(machine.take(.authenticating([proof])).isEmpty)
        #expect(machine.take(.tick, after: machine.greeting).isEmpty)
        #expect(
            machine.say(.ok(id: proof, isAccepted: true, text: ""))
                == ["note proven", "subscribe 1-1", "publish"])
    }

    @Test("An authentication that is not answered is not waited for beyond its span")
    func unansweredProof() throws {
        var machine = try Machine()
        _ = machine.take(.connected)
        _ = machine.say(.challenge("c"))
        _ = machine.take(.authenticating([proof]))
        #expect(
            machine.take(.tick, after: .seconds(2)) == ["note proof-unanswered", "subscribe 1-1", "publish"])
    }

    @Test("A relay that takes proof without a word is asked again for what it had passed over")
    func wordlessProof() throws {
        var machine = try Machine()
        _ = machine.take(.connected)
        _ = machine.take(.tick, after: machine.greeting)
        _ = machine.take(.publishing([list]))
        #expect(machine.say(.challenge("c")) == ["authenticate c"])
        _ = machine.take(.authenticating([proof]))
        #expect(
            machine.take(.tick, after: .seconds(2))
                == ["note proof-unanswered", "unsubscribe 1-1", "subscribe 1-2", "publish"])
    }

    @Test("An OK that comes after its span still counts, and what was asked meanwhile is asked again")
    func lateProof() throws {
        var machine = try Machine()
        _ = machine.take(.connected)
        _ = machine.say(.challenge("c"))
        let other = [UInt8](repeating: 3, count: 32)
        _ = machine.take(.authenticating([proof, other]))
        #expect(machine.say(.ok(id: proof, isAccepted: true, text: "")) == ["note proven"])
        _ = machine.take(.tick, after: .seconds(2))
        #expect(
            machine.say(.ok(id: other, isAccepted: true, text: ""))
                == ["note proven", "unsubscribe 1-1", "subscribe 1-2"])
    }

    @Test(
        "A request closed for want of authentication is asked again after the OK, with either order of words")
    func challengeLate() throws {
        for challengeComesFirst in [true, false] {
            var machine = try Machine()
            _ = machine.take(.connected)
            _ = machine.take(.tick, after: machine.greeting)
            _ = machine.take(.publishing([list]))
            let closed = NostrMessage.FromRelay.closed(subscription: "1-1", text: "auth-required: who?")
            if challengeComesFirst {
                #expect(machine.say(.challenge("c")) == ["authenticate c"])
                _ = machine.take(.authenticating([proof]))
                #expect(machine.say(closed) == ["note closed"])
            } else {
                #expect(machine.say(closed) == ["note closed"])
                #expect(machine.say(.challenge("c")) == ["authenticate c"])
                _ = machine.take(.authenticating([proof]))
            }
            #expect(
                machine.say(.ok(id: proof, isAccepted: true, text: "")) == ["note proven", "subscribe 1-2"])
        }
    }

    @Test("With two keys the subscription waits for both answers")
    func twoProofs() throws {
        var machine = try Machine()
        _ = machine.take(.connected)
        _ = machine.say(.challenge("c"))
        let other = [UInt8](repeating: 3, count: 32)
        _ = machine.take(.authenticating([proof, other]))
        #expect(machine.say(.ok(id: proof, isAccepted: true, text: "")) == ["note proven"])
        #expect(
            machine.say(.ok(id: other, isAccepted: false, text: "restricted: no"))
                == ["note proof-refused", "subscribe 1-1", "publish"])
    }

    @Test("A list refused for want of authentication is published again after the OK")
    func listNeedsProof() throws {
        var machine = try listening()
        _ = machine.take(.publishing([list]))
        #expect(machine.say(.ok(id: list, isAccepted: false, text: "auth-required: who?")).isEmpty)
        #expect(machine.say(.challenge("c")) == ["authenticate c"])
        _ = machine.take(.authenticating([proof]))
        #expect(
            machine.say(.ok(id: proof, isAccepted: true, text: ""))
                == ["note proven", "unsubscribe 1-1", "subscribe 1-2", "publish"])
        #expect(machine.say(.event(subscription: "1-1", machine.wrap())) == ["note outdated"])
    }

    @Test(
        "What becomes of the list is noted",
        arguments: [
            (true, "", "note list-accepted"), (false, "duplicate: have it", "note list-accepted"),
            (false, "blocked: no", "note list-rejected"), (false, "words alone", "note list-rejected")
        ])
    func listAnswers(isAccepted: Bool, text: String, expected: String) throws {
        var machine = try listening()
        _ = machine.take(.publishing([list]))
        #expect(machine.say(.ok(id: list, isAccepted: isAccepted, text: text)) == [expected])
    }

    @Test("A list that nobody answers is noted once")
    func listUnanswered() throws {
        var machine = try listening()
        _ = machine.take(.publishing([list]))
        #expect(machine.take(.tick, after: .seconds(10)) == ["note list-unanswered"])
        #expect(machine.take(.tick, after: .seconds(10)).isEmpty)
    }

    @Test("A refusal after authentication rests for an hour instead of looping")
    func restricted() throws {
        var machine = try listening()
        _ = machine.say(.challenge("c"))
        _ = machine.take(.authenticating([proof]))
        _ = machine.say(.ok(id: proof, isAccepted: true, text: ""))
        let closed = NostrMessage.FromRelay.closed(subscription: "1-2", text: "restricted: not you")
        #expect(machine.say(closed) == ["note refused-for-good"])
        #expect(!machine.state.isListening)
        #expect(machine.take(.tick, after: .seconds(3_599)).isEmpty)
        #expect(machine.take(.tick, after: .seconds(1)) == ["subscribe 1-3"])
    }

    @Test("A relay that closes again and again is asked at growing spans")
    func closedAgain() throws {
        var machine = try listening()
        var spans: [Duration] = []
        for number in 1...8 {
            let name = "1-\(number)"
            #expect(machine.say(.closed(subscription: name, text: "error: shutting down")) == ["note closed"])
            var span = Duration.zero
            while machine.take(.tick, after: .milliseconds(250)).isEmpty { span += .milliseconds(250) }
            spans.append(span)
        }
        #expect(spans[0] < spans[1] && spans[1] < spans[2] && spans[5] <= .seconds(60))
        #expect(spans[7] <= .seconds(60))
    }

    @Test("Reconnecting doubles its spans up to a minute, and begins anew after a minute of health")
    func backoff() throws {
        var machine = try Machine()
        _ = machine.take(.start)
        var spans: [Duration] = []
        for _ in 1...8 {
            #expect(machine.take(.ended(.unreachable)) == ["note unreachable"])
            var span = Duration.zero
            while machine.take(.tick, after: .milliseconds(250)) != ["dial"] { span += .milliseconds(250) }
            spans.append(span)
        }
        #expect(spans.map { $0.components.seconds } == [0, 1, 3, 7, 15, 31, 59, 59])
        _ = machine.take(.connected)
        _ = machine.take(.tick, after: machine.greeting)
        _ = machine.say(.endOfStored(subscription: "1-1"))
        #expect(machine.take(.ended(.lost), after: .seconds(60)) == ["note disconnected"])
        #expect(machine.take(.tick, after: .seconds(1)) == ["dial"])
    }

    @Test("Stored events are dropped when only live ones count, and delivered as stored otherwise")
    func backlog() throws {
        for (backlog, expected) in [(NostrBacklog.live, "note before-end"), (.grace, "deliver stored")] {
            var machine = try Machine(backlog)
            _ = machine.take(.connected)
            _ = machine.take(.tick, after: machine.greeting)
            #expect(machine.say(.event(subscription: "1-1", machine.wrap())) == [expected])
        }
    }

    @Test("A relay that never ends its stored events is taken to have none left after ten seconds")
    func endWithheld() throws {
        var machine = try Machine()
        _ = machine.take(.connected)
        _ = machine.take(.tick, after: machine.greeting)
        #expect(machine.say(.event(subscription: "1-1", machine.wrap())) == ["note before-end"])
        #expect(machine.take(.tick, after: .seconds(10)) == ["note end-withheld"])
        #expect(machine.say(.event(subscription: "1-1", machine.wrap())) == ["deliver live"])
    }

    @Test("Stored events that keep coming put the end off, for two minutes at most")
    func longPast() throws {
        var machine = try Machine(.grace)
        _ = machine.take(.connected)
        _ = machine.take(.tick, after: machine.greeting)
        for _ in 1...13 {
            let stored = NostrMessage.FromRelay.event(subscription: "1-1", machine.wrap())
            #expect(machine.say(stored, after: .seconds(9)) == ["deliver stored"])
            #expect(machine.take(.tick).isEmpty)
        }
        #expect(machine.take(.tick, after: .seconds(3)) == ["note end-withheld"])
        #expect(machine.say(.event(subscription: "1-1", machine.wrap())) == ["deliver live"])
    }

    @Test("What was not asked for is dropped by its reason, and nothing of an older subscription counts")
    func strays() throws {
        var machine = try listening()
        let stranger = try Secp256k1KeyPair(secret: Secret([UInt8](repeating: 0, count: 31) + [9]))
        #expect(
            machine.say(.event(subscription: "1-1", machine.wrap(kind: 1))) == ["note wrong-filter"])
        #expect(
            machine.say(.event(subscription: "1-1", machine.wrap(to: stranger.publicKey)))
                == ["note wrong-filter"])
        #expect(machine.say(.event(subscription: "x", machine.wrap())) == ["note strange-subscription"])
        for name in ["1-0", "1-1?", "1-2", "2-1", "1", "-"] {
            #expect(
                machine.say(.event(subscription: name, machine.wrap())) == ["note strange-subscription"])
        }
        #expect(machine.take(.babble) == ["note malformed"])
        #expect(machine.say(.ok(id: list, isAccepted: true, text: "")) == ["note strange-answer"])
        #expect(machine.say(.endOfStored(subscription: "1-0")).isEmpty)
        #expect(machine.say(.closed(subscription: "1-0", text: "")).isEmpty)
    }

    @Test("A relay that says too much of what nobody asked for is hung up on")
    func tooManyStrays() throws {
        var limits = NostrLimits()
        limits.strays = 3
        var machine = try listening(limits: limits)
        for _ in 1...3 { #expect(machine.take(.babble) == ["note malformed"]) }
        #expect(machine.say(.notice(text: "hello")) == ["note notice", "hang up"])
    }

    @Test("A relay may challenge eight times and no more")
    func challenges() throws {
        var machine = try listening()
        for number in 1...8 {
            #expect(machine.say(.challenge("\(number)")) == ["authenticate \(number)"])
        }
        #expect(machine.say(.challenge("9")) == ["note too-many-challenges"])
        #expect(machine.say(.challenge("9")).isEmpty)
    }

    @Test("A challenge that is repeated is not answered again")
    func repeatedChallenge() throws {
        var machine = try listening()
        #expect(machine.say(.challenge("c")) == ["authenticate c"])
        #expect(machine.say(.challenge("c")).isEmpty)
    }

    @Test("A new connection asks under a new name, and what came before it says nothing")
    func reconnect() throws {
        var machine = try listening()
        _ = machine.take(.ended(.lost))
        #expect(machine.say(.endOfStored(subscription: "1-1")).isEmpty)
        _ = machine.take(.tick, after: .seconds(1))
        _ = machine.take(.connected)
        #expect(machine.take(.tick, after: machine.greeting) == ["subscribe 2-1", "publish"])
        #expect(machine.say(.event(subscription: "1-1", machine.wrap())) == ["note strange-subscription"])
    }

    @Test("Another list is published at once where a subscription stands")
    func listChanged() throws {
        var machine = try listening()
        #expect(machine.take(.listChanged) == ["publish"])
        _ = machine.take(.ended(nil))
        #expect(machine.take(.listChanged).isEmpty)
    }
}

extension Machine {
    fileprivate var greeting: Duration { .milliseconds(300) }
}
