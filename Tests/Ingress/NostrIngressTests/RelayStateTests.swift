import Delivery
import MarmotPush
import NostrIngress
import PushModel
import PushTesting
import Secp256k1Keys
import Synchronization
import Testing
import WebSocket

/// Draws 1, 2, 3, where a real generator draws numbers that nobody can guess.
private final class Numbers: Sendable {
    private let last = Mutex(0)

    func next() -> String {
        last.withLock { last in
            last += 1
            return String(last)
        }
    }
}

/// A relay's state with a clock that a test moves.
private struct Machine {
    var state: RelayState
    var now = ContinuousClock.now
    let key: Secp256k1KeyPair

    init(_ backlog: NostrBacklog = .live, limits: NostrLimits = NostrLimits()) throws {
        key = try Secp256k1KeyPair(secret: Secret([UInt8](repeating: 0, count: 31) + [7]))
        let numbers = Numbers()
        state = RelayState(
            keys: [key.publicKey.hex], backlog: backlog, limits: limits, random: { .max },
            prefix: { numbers.next() })
    }

    /// What the machine asks for, as words.
    mutating func take(_ event: RelayState.Event, after span: Duration = .zero) -> [String] {
        now += span
        return state.take(event, at: now).map(Self.word)
    }

    mutating func say(_ message: NostrMessage.FromRelay, after span: Duration = .zero) -> [String] {
        take(.said(message), after: span)
    }

    /// The relay is there, and has had its time for a challenge.
    mutating func connect() {
        _ = take(.connected)
        _ = take(.tick, after: greeting)
    }

    static func word(_ action: RelayState.Action) -> String {
        switch action {
        case .dial: "dial"
        case .authenticate(let challenge): "authenticate \(challenge)"
        case .subscribe(let name, let takesStored):
            takesStored ? "subscribe \(name) with stored" : "subscribe \(name)"
        case .subscribePage(let name, let until): "subscribe \(name) until \(until)"
        case .probe(let name): "probe \(name)"
        case .unsubscribe(let name): "unsubscribe \(name)"
        case .publishList: "publish"
        case .deliver(_, .live): "deliver live"
        case .deliver(_, .stored): "deliver stored"
        case .deliver(_, .missed(let away)): "deliver missed in \(away.components.seconds) s"
        case .hangUp: "hang up"
        case .note(let note): "note \(note.code)"
        }
    }

    func wrap(
        kind: Int = NostrKind.giftWrap, to key: XOnlyKey? = nil, createdAt: Int64 = 1
    ) -> NostrEvent {
        .rumor(
            kind: kind, createdAt: createdAt, tags: [["p", (key ?? self.key.publicKey).hex]],
            content: Secret([]), author: self.key.publicKey)
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
        machine.connect()
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
        machine.connect()
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
            machine.connect()
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
                == ["note proven", "unsubscribe 1-1", "subscribe 1-2 with stored", "publish"])
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

    @Test("A refusal after authentication rests for a minute, then ever longer, up to an hour")
    func restricted() throws {
        var machine = try listening()
        _ = machine.say(.challenge("c"))
        _ = machine.take(.authenticating([proof]))
        _ = machine.say(.ok(id: proof, isAccepted: true, text: ""))
        let closed = NostrMessage.FromRelay.closed(subscription: "1-2", text: "restricted: not you")
        #expect(machine.say(closed) == ["note refused-for-good"])
        #expect(!machine.state.isListening)
        var rests: [Int64] = []
        for number in 3...10 {
            var rest: Int64 = 0
            while machine.take(.tick, after: .seconds(1)).isEmpty { rest += 1 }
            rests.append(rest + 1)
            let name = "1-\(number)"
            #expect(machine.say(.closed(subscription: name, text: "blocked: x")) == ["note refused-for-good"])
        }
        #expect(rests == [60, 120, 240, 480, 960, 1_920, 3_600, 3_600])
        // On a new connection too.
        _ = machine.take(.ended(nil))
        machine.connect()
        _ = machine.say(.closed(subscription: "2-1", text: "blocked: x"))
        #expect(machine.take(.tick, after: .seconds(3_599)).isEmpty)
        #expect(machine.take(.tick, after: .seconds(1)) == ["subscribe 2-2 with stored"])
        _ = machine.say(.endOfStored(subscription: "2-2"))
        // Granted once, the next refusal counts as the first.
        _ = machine.say(.closed(subscription: "2-2", text: "restricted: x"))
        #expect(machine.take(.tick, after: .seconds(60)) == ["subscribe 2-3 with stored"])
    }

    @Test("A NOTICE in the place of an answer is a refusal, and silence in its place is none")
    func refusedByNotice() throws {
        for text in [nil, "ERROR: too many concurrent REQs"] {
            var machine = try Machine()
            machine.connect()
            if let text { #expect(machine.say(.notice(text: text)) == ["note notice"]) }
            let end = machine.take(.tick, after: NostrLimits().endOfStored)
            #expect(end.contains(text == nil ? "note end-withheld" : "note closed"))
            #expect(machine.state.isListening == (text == nil))
        }
        // One that speaks as a refusal does is not waited out.
        var machine = try Machine()
        machine.connect()
        #expect(
            machine.say(.notice(text: "restricted: permission denied"))
                == ["note notice", "note refused-for-good"])
        #expect(machine.take(.tick, after: .seconds(60)) == ["subscribe 1-2"])
        // With an answer behind it, it was a remark.
        #expect(machine.say(.notice(text: "slow today")) == ["note notice"])
        #expect(machine.say(.endOfStored(subscription: "1-2")) == ["note listening"])
        #expect(machine.state.isListening)
    }

    @Test("A NOTICE to a subscription in force has it asked for anew, ever more seldom")
    func endedByNotice() throws {
        var machine = try listening()
        let anew = ["note notice", "unsubscribe 1-1", "subscribe 1-2 with stored"]
        #expect(machine.say(.notice(text: "too many subscriptions")) == anew)
        #expect(machine.say(.endOfStored(subscription: "1-2")) == ["note listening"])
        #expect(machine.say(.notice(text: "again"), after: .seconds(59)) == ["note notice"])
        #expect(machine.say(.notice(text: "again"), after: .seconds(1)).count == 3)
        // Nothing but another NOTICE: it is over.
        #expect(machine.say(.notice(text: "no")) == ["note notice"])
        #expect(machine.take(.tick, after: NostrLimits().endOfStored) == ["note closed"])
        #expect(!machine.state.isListening)
    }

    @Test("A relay that hands nothing out is dialled anew, and not listened at until something comes")
    func deaf() throws {
        var machine = try listening()
        #expect(machine.take(.tested(isHeard: false)) == ["hang up"])
        #expect(!machine.state.isListening && machine.state.isSubscribed)
        _ = machine.take(.ended(nil))
        machine.connect()
        _ = machine.say(.endOfStored(subscription: "2-1"))
        #expect(!machine.state.isListening && machine.state.isSubscribed)
        var heard = machine
        #expect(heard.take(.tested(isHeard: true)).isEmpty && heard.state.isListening)
        #expect(machine.say(.event(subscription: "2-1", machine.wrap())) == ["deliver live"])
        #expect(machine.state.isListening)
    }

    @Test("A relay that answers no PING is asked for something once, whatever comes of it")
    func probed() throws {
        var machine = try listening()
        #expect(machine.take(.doubted) == ["probe 1-2"])
        #expect(machine.take(.doubted).isEmpty)
        #expect(machine.say(.event(subscription: "1-2", machine.wrap())).isEmpty)
        #expect(machine.say(.endOfStored(subscription: "1-2")) == ["unsubscribe 1-2"])
        #expect(machine.state.isListening)
        #expect(machine.take(.doubted) == ["probe 1-3"])
        #expect(machine.say(.closed(subscription: "1-3", text: "error: no")) == ["unsubscribe 1-3"])
        #expect(machine.state.isListening)
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

    /// How long until the machine dials, in quarters of a second.
    private func untilDial(_ machine: inout Machine) -> Duration {
        var span = Duration.zero
        while machine.take(.tick, after: .milliseconds(250)) != ["dial"] { span += .milliseconds(250) }
        return span + .milliseconds(250)
    }

    @Test("A relay that is away is dialled each second for ten minutes, then at doubling spans")
    func eager() throws {
        var machine = try Machine()
        _ = machine.take(.start)
        let eagerUntil = machine.now + .seconds(600)
        var spans: [Duration] = []
        while machine.now < eagerUntil {
            #expect(machine.take(.ended(.unreachable)) == ["note unreachable"])
            spans.append(untilDial(&machine))
        }
        #expect(spans.allSatisfy { $0 <= .seconds(1) } && spans.count == 600)
        spans = []
        for _ in 1...8 {
            #expect(machine.take(.ended(.unreachable)) == ["note unreachable"])
            spans.append(untilDial(&machine))
        }
        #expect(spans.map { $0.components.seconds } == [1, 2, 4, 8, 16, 32, 60, 60])
        // Once it has been there, it is dialled eagerly anew.
        machine.connect()
        _ = machine.say(.endOfStored(subscription: "1-1"))
        #expect(machine.take(.ended(.lost), after: .seconds(5)) == ["note disconnected"])
        #expect(untilDial(&machine) <= .seconds(1))
        #expect(machine.take(.ended(.unreachable)) == ["note unreachable"])
        #expect(untilDial(&machine) <= .seconds(1))
    }

    @Test("A relay that drops connections is dialled ever more seldom, until a minute of health")
    func flapping() throws {
        var machine = try Machine()
        _ = machine.take(.start)
        var spans: [Duration] = []
        for _ in 1...8 {
            _ = machine.take(.connected)
            #expect(machine.take(.ended(.lost)) == ["note disconnected"])
            spans.append(untilDial(&machine))
        }
        #expect(spans.map { $0.components.seconds } == [1, 2, 4, 8, 16, 32, 60, 60])
        machine.connect()
        _ = machine.say(.endOfStored(subscription: "9-1"))
        #expect(machine.take(.ended(.lost), after: .seconds(60)) == ["note disconnected"])
        #expect(untilDial(&machine) <= .seconds(1))
        _ = machine.take(.connected)
        #expect(machine.take(.ended(.lost)) == ["note disconnected"])
        #expect(untilDial(&machine) <= .seconds(1))
    }

    @Test("What came while the connection was away is taken, with how long that was")
    func missed() throws {
        var machine = try listening()
        _ = machine.take(.ended(.lost), after: .seconds(100))
        #expect(machine.take(.tick, after: .seconds(1)) == ["dial"])
        // A connection that ends before its stored events have changes nothing of what was missed.
        _ = machine.take(.connected, after: .seconds(8))
        #expect(
            machine.take(.tick, after: machine.greeting) == ["subscribe 2-1 with stored", "publish"])
        #expect(machine.say(.event(subscription: "2-1", machine.wrap())) == ["deliver missed in 9 s"])
        _ = machine.take(.ended(.lost))
        _ = machine.take(.connected, after: .seconds(20))
        #expect(
            machine.take(.tick, after: machine.greeting) == ["subscribe 3-1 with stored", "publish"])
        #expect(machine.say(.event(subscription: "3-1", machine.wrap())) == ["deliver missed in 29 s"])
        _ = machine.say(.endOfStored(subscription: "3-1"))
        #expect(machine.say(.event(subscription: "3-1", machine.wrap())) == ["deliver live"])
        // A subscription that the relay ends, or that we ask for anew, leaves a gap too.
        #expect(machine.say(.closed(subscription: "3-1", text: "error: x")) == ["note closed"])
        #expect(machine.take(.tick, after: .seconds(2)) == ["subscribe 3-2 with stored"])
        #expect(machine.say(.event(subscription: "3-2", machine.wrap())) == ["deliver missed in 2 s"])
    }

    @Test("An answer that may have been cut short is followed by pages, each beginning where the last ended")
    func pages() throws {
        var limits = NostrLimits()
        (limits.fullPage, limits.pages) = (2, 3)
        var machine = try Machine(.grace, limits: limits)
        _ = machine.take(.connected)
        #expect(machine.take(.tick, after: machine.greeting) == ["subscribe 1-1 with stored", "publish"])
        for at: Int64 in [90, 80] {
            #expect(
                machine.say(.event(subscription: "1-1", machine.wrap(createdAt: at))) == ["deliver stored"])
        }
        #expect(
            machine.say(.endOfStored(subscription: "1-1")) == ["note listening", "subscribe 1-2 until 80"])
        // Live events come beside them.
        #expect(machine.say(.event(subscription: "1-1", machine.wrap(createdAt: 10))) == ["deliver live"])
        for at: Int64 in [80, 70] {
            #expect(
                machine.say(.event(subscription: "1-2", machine.wrap(createdAt: at))) == ["deliver stored"])
        }
        #expect(
            machine.say(.endOfStored(subscription: "1-2")) == ["unsubscribe 1-2", "subscribe 1-3 until 70"])
        #expect(machine.say(.event(subscription: "1-2", machine.wrap())) == ["note outdated"])
        // One that brings nothing older is the last.
        #expect(machine.say(.event(subscription: "1-3", machine.wrap(createdAt: 70))) == ["deliver stored"])
        #expect(machine.say(.endOfStored(subscription: "1-3")) == ["unsubscribe 1-3"])
        #expect(machine.say(.endOfStored(subscription: "1-3")).isEmpty)
        #expect(machine.state.isListening)
    }

    @Test("Pages end with their bound, when the relay says nothing, and with the subscription")
    func pagesEnd() throws {
        var limits = NostrLimits()
        (limits.fullPage, limits.pages) = (1, 2)
        func paging() throws -> Machine {
            var machine = try listening(limits: limits)
            _ = machine.take(.ended(.lost), after: .seconds(50))
            _ = machine.take(.connected, after: .seconds(5))
            _ = machine.take(.tick, after: machine.greeting)
            _ = machine.say(.event(subscription: "2-1", machine.wrap(createdAt: 90)))
            let ended = machine.say(.endOfStored(subscription: "2-1"))
            #expect(ended == ["note listening", "subscribe 2-2 until 90"])
            return machine
        }
        var bounded = try paging()
        for (name, at) in [("2-2", Int64(80)), ("2-3", 70)] {
            _ = bounded.say(.event(subscription: name, bounded.wrap(createdAt: at)))
            let ended = bounded.say(.endOfStored(subscription: name))
            let expected = name == "2-2" ? ["unsubscribe 2-2", "subscribe 2-3 until 80"] : ["unsubscribe 2-3"]
            #expect(ended == expected)
        }
        var withheld = try paging()
        #expect(withheld.take(.tick, after: .seconds(10)) == ["unsubscribe 2-2"])
        var refused = try paging()
        #expect(refused.say(.closed(subscription: "2-2", text: "error: no")).isEmpty)
        #expect(refused.state.isListening)
        // A connection that ends before all pages were read has missed what they would have held.
        var lost = try paging()
        _ = lost.take(.ended(.lost), after: .seconds(2))
        _ = lost.take(.connected, after: .seconds(1))
        #expect(lost.take(.tick, after: lost.greeting) == ["subscribe 3-1 with stored", "publish"])
        #expect(lost.say(.event(subscription: "3-1", lost.wrap())) == ["deliver missed in 8 s"])
        // After the last page nothing is.
        _ = refused.take(.ended(.lost), after: .seconds(2))
        _ = refused.take(.connected, after: .seconds(1))
        _ = refused.take(.tick, after: refused.greeting)
        #expect(refused.say(.event(subscription: "3-1", refused.wrap())) == ["deliver missed in 1 s"])
    }

    @Test("An event that a relay says before it was asked for anything is dropped")
    func speaksFirst() throws {
        var machine = try Machine()
        _ = machine.take(.start)
        _ = machine.take(.connected)
        for name in ["1-1", "1-0", "1--1", "1-", "", "1-9223372036854775807", "1-99999999999999999999"] {
            #expect(
                machine.say(.event(subscription: name, machine.wrap())) == ["note strange-subscription"])
        }
    }

    @Test("Whatever comes in whatever order, the machine goes on", arguments: 0..<200)
    func anyOrder(_ seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        var machine = try Machine(seed.isMultiple(of: 2) ? .live : .grace)
        var subscription = "1-1"
        for _ in 0..<300 {
            let names = [subscription, "1-1", "2-1", "3-2", "", "-", "1-0", "1--1", "\(Int.max)-\(Int.max)"]
            let name = names.randomElement(using: &random) ?? ""
            let id = [UInt8](repeating: UInt8.random(in: 1...3, using: &random), count: 32)
            let text =
                ["auth-required: x", "restricted: x", "blocked: x", "duplicate: x", "error: x", ""]
                .randomElement(using: &random) ?? ""
            let events: [RelayState.Event] = [
                .start, .connected, .connected, .ended(nil), .ended(.lost), .ended(.unreachable), .babble,
                .authenticating([id]), .publishing([id]), .listChanged, .tick, .tick, .tick,
                .said(.event(subscription: name, machine.wrap())),
                .said(.event(subscription: name, machine.wrap(kind: 1))),
                .said(.ok(id: id, isAccepted: .random(using: &random), text: text)),
                .said(.endOfStored(subscription: name)), .said(.closed(subscription: name, text: text)),
                .said(.notice(text: text)), .said(.challenge(text)), .doubted, .tested(isHeard: .random())
            ]
            guard let event = events.randomElement(using: &random) else { continue }
            let spans: [Duration] = [.zero, .milliseconds(300), .seconds(2), .seconds(70), .seconds(4_000)]
            machine.now += spans.randomElement(using: &random) ?? .zero
            for action in machine.state.take(event, at: machine.now) {
                if case .subscribe(let name, _) = action { subscription = name }
                if case .deliver(let event, _) = action { #expect(event.kind == NostrKind.giftWrap) }
            }
            // Without a connection there is always a dial to come, or one under way.
            if case .ended = event { #expect(!machine.state.isListening) }
        }
    }

    @Test("Stored events are dropped when only live ones count, and delivered as stored otherwise")
    func backlog() throws {
        for (backlog, expected) in [(NostrBacklog.live, "note before-end"), (.grace, "deliver stored")] {
            var machine = try Machine(backlog)
            machine.connect()
            #expect(machine.say(.event(subscription: "1-1", machine.wrap())) == [expected])
        }
    }

    @Test("A relay that never ends its stored events is taken to have none left after ten seconds")
    func endWithheld() throws {
        var machine = try Machine()
        machine.connect()
        #expect(machine.say(.event(subscription: "1-1", machine.wrap())) == ["note before-end"])
        #expect(machine.take(.tick, after: .seconds(10)) == ["note end-withheld"])
        #expect(machine.say(.event(subscription: "1-1", machine.wrap())) == ["deliver live"])
    }

    @Test("Stored events that keep coming put the end off, for two minutes at most")
    func longPast() throws {
        var machine = try Machine(.grace)
        machine.connect()
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
        var machine = try listening(limits: changing(NostrLimits()) { $0.strays = 3 })
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
        #expect(
            machine.take(.tick, after: machine.greeting) == ["subscribe 2-1 with stored", "publish"])
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
