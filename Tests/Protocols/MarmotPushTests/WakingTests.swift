import MarmotPush
import PushModel
import PushTesting
import Secp256k1Keys
import Testing
import WireFormats

@Suite("Waking others, call by call", .timeLimit(.minutes(30)))
struct WakingTests {
    private static let (index, inbox) = ("wss://index.example.org", "wss://inbox.example.org")

    /// An app's sender, a server, and time.
    private struct Stage {
        var props: Props
        let server: Secp256k1KeyPair
        var now: UnixTime
        var origin: MarmotOrigin

        init(seed: UInt64, builtIn: [String]? = nil, kept: Secret? = nil) throws {
            props = Props(seed: seed)
            server = try props.pair()
            let key = server.publicKey
            now = props.now.wall
            origin = MarmotOrigin(
                lookUp: [WakingTests.index], builtIn: builtIn.map { [key: $0] } ?? [:], keeping: kept,
                using: &props.random)
        }

        mutating func tokens(
            _ count: Int = 1, to pair: Secp256k1KeyPair? = nil, _ format: TokenFormat = .mip05Long,
            hint: String? = nil
        ) throws -> [GossipToken] {
            let key = (pair ?? server).publicKey
            return try (0..<count).map { _ in
                try props.token(format, to: key, device: props.bytes(32), hint: hint)
            }
        }

        mutating func due() -> [Call] { origin.due(at: now, using: &props.random) }

        mutating func answer(_ answer: CallAnswer, to call: Call) {
            origin.answered(answer, to: call, at: now, using: &props.random)
        }

        /// The server's list as a relay has it.
        func list(_ relays: [String], at seconds: Int64 = 1) -> CallAnswer {
            let event = RelayList.event(
                relays: relays, at: seconds, by: server, auxiliary: Array(repeating: 0, count: 32))
            return .events([event.serialized()])
        }

        /// Answers look-ups and documents until only events are due, which are returned.
        mutating func events(_ list: CallAnswer) -> [(call: Call, event: Secret, relays: [String])] {
            var events: [(call: Call, event: Secret, relays: [String])] = []
            while true {
                let calls = due()
                guard !calls.isEmpty else { return events }
                for call in calls {
                    switch call.way {
                    case .lookUp: answer(list, to: call)
                    case .event(let event, let relays): events.append((call, event, relays))
                    default: answer(.none, to: call)
                    }
                }
            }
        }
    }

    @Test("A list is looked up, documents are read, and each relay's own answer settles the wake")
    func wholeWay() throws {
        var stage = try Stage(seed: 1)
        let id = try stage.origin.notify(stage.tokens(3))
        #expect(stage.origin.nextDue == .distantPast)
        let asked = stage.due()
        try #require(asked.count == 1)
        guard case .lookUp(let filter, let relays) = asked[0].way else {
            Issue.record("a look-up comes first")
            return
        }
        #expect(relays == [Self.index] && filter.word.contains(stage.server.publicKey.hex))
        // Nothing but the moment at which a call that nobody answers is given up.
        #expect(stage.due().isEmpty && stage.origin.nextDue == stage.now + MarmotLimits.callLife)
        stage.answer(stage.list([Self.inbox, "ws://127.0.0.1:7"]), to: asked[0])

        let documents = stage.due()
        let urls = documents.compactMap { $0.http?.url }
        #expect(urls == ["https://inbox.example.org"], "and none of plain ws")
        try #require(documents.count == 1)
        #expect(documents[0].http?.answerLimitBytes == MarmotLimits.informationBytes)
        stage.answer(
            .http(status: 200, body: Secret(#"{"limitation":{"max_message_length":40000}}"#.utf8)),
            to: documents[0])
        let events = stage.due()
        try #require(events.count == 1)
        guard case .event(let text, let places) = events[0].way else {
            Issue.record("then the trigger")
            return
        }
        #expect(places == [Self.inbox, "ws://127.0.0.1:7"])
        let content = try TriggerContent(
            reading: try GiftWrap.unwrap(NostrEvent.parse(text), with: stage.server).event)
        // A decoy opens for nobody.
        let opened = content.chunks.compactMap {
            try? TokenBox.decrypt($0, content.format, with: stage.server)
        }
        #expect(opened.count == 3)
        #expect(stage.origin.takeSettled().isEmpty)
        stage.answer(.relays([(Self.inbox, .accepted), ("ws://127.0.0.1:7", .unreachable)]), to: events[0])
        #expect(stage.due().isEmpty && stage.origin.nextDue == nil)
        #expect(stage.origin.takeSettled() == [Settled(id: id, reached: 3, missed: 0)])
        #expect(stage.origin.takeSettled().isEmpty, "once")
    }

    @Test("Wakes share a look-up and what was learned, and a later run knows the list")
    func shares() throws {
        var stage = try Stage(seed: 2)
        try stage.origin.notify(stage.tokens())
        try stage.origin.notify(stage.tokens())
        let asked = stage.due()
        #expect(asked.count == 1)
        stage.answer(stage.list([Self.inbox]), to: try #require(asked.first))
        let documents = stage.due()
        #expect(documents.count == 1 && documents[0].http != nil)
        stage.answer(.none, to: try #require(documents.first))
        #expect(stage.due().count == 2)

        var later = try Stage(seed: 2, kept: stage.origin.kept)
        later.now = stage.now + .seconds(60)
        try later.origin.notify(later.tokens())
        #expect(later.due().compactMap { $0.http?.url } == ["https://inbox.example.org"], "no look-up")
    }

    @Test("A trigger that nobody took goes once more, to those that may think better of it, and no sooner")
    func secondTry() throws {
        var stage = try Stage(seed: 3)
        let id = try stage.origin.notify(stage.tokens())
        let other = "wss://other.example.org"
        let first = try #require(stage.events(stage.list([Self.inbox, other])).first)
        stage.answer(
            .relays([(Self.inbox, .refused(.rateLimited)), (other, .refused(.blocked))]), to: first.call)
        #expect(stage.due().isEmpty)
        let next = try #require(stage.origin.nextDue)
        let pause = next.since(stage.now)
        #expect(pause >= MarmotLimits.secondTryPause && pause <= MarmotLimits.secondTryPause * 2)
        stage.now = next - .milliseconds(1)
        #expect(stage.due().isEmpty)
        stage.now = next
        let again = stage.due()
        try #require(again.count == 1)
        guard case .event(let event, let relays) = again[0].way else {
            Issue.record("the same event")
            return
        }
        #expect(event == first.event && relays == [Self.inbox])
        stage.answer(.none, to: again[0])
        #expect(stage.due().isEmpty && stage.origin.nextDue == nil)
        var reports = stage.origin
        #expect(
            stage.origin.takeSettled() == [Settled(id: id, reached: 0, missed: 1, detail: "notTaken")])
        let report = try #require(reports.takeReports().first?.reports.first)
        #expect(report.relays.map(\.answer) == [.unanswered, .refused(.blocked)])
    }

    @Test("What is refused for good is not sent again, and a clock that was set back delays nothing")
    func lasting() throws {
        var stage = try Stage(seed: 4)
        try stage.origin.notify(stage.tokens())
        let first = try #require(stage.events(stage.list([Self.inbox])).first)
        stage.answer(.relays([(Self.inbox, .refused(.blocked))]), to: first.call)
        stage.now = stage.now - .seconds(3_600)
        // The clock says less than when the list was asked for: it is asked for anew, and nothing is sent.
        #expect(stage.events(stage.list([Self.inbox])).isEmpty)
        #expect(stage.origin.takeSettled().first?.detail == "notTaken")
    }

    @Test("A server that moved is found by its new list after a minute")
    func moved() throws {
        var stage = try Stage(seed: 5)
        _ = try stage.origin.notify(stage.tokens())
        let first = try #require(stage.events(stage.list([Self.inbox])).first)
        stage.now = stage.now + .seconds(60)
        stage.answer(.relays([(Self.inbox, .unreachable)]), to: first.call)
        #expect(stage.due().isEmpty)
        stage.now = try #require(stage.origin.nextDue)
        let again = stage.events(stage.list(["wss://new.example.org"], at: 2))
        #expect(again.map(\.relays) == [["wss://new.example.org", Self.inbox]])
        stage.answer(.taken, to: try #require(again.first).call)
        _ = stage.due()
        #expect(stage.origin.takeSettled().first?.reached == 1, "one of them has it")
    }

    @Test("A server of which no list is found is missed at once; the built-in relays stand in for a list")
    func noList() throws {
        var stage = try Stage(seed: 6)
        let id = try stage.origin.notify(stage.tokens(2))
        #expect(stage.events(.events([])).isEmpty)
        #expect(stage.origin.takeSettled() == [Settled(id: id, reached: 0, missed: 2, detail: "noList")])

        var other = try Stage(seed: 6, builtIn: [Self.inbox])
        try other.origin.notify(other.tokens())
        #expect(other.events(.none).map(\.relays) == [[Self.inbox]])
        var empty = try Stage(seed: 6, builtIn: [Self.inbox])
        try empty.origin.notify(empty.tokens())
        #expect(empty.events(empty.list([])).isEmpty, "an empty list is an answer")
        #expect(empty.origin.takeSettled().first?.detail == "noRelay")
    }

    @Test("Foreign, late and doubled answers change nothing")
    func strangers() throws {
        var stage = try Stage(seed: 7)
        try stage.origin.notify(stage.tokens())
        let asked = try #require(stage.due().first)
        let stranger = try Stage(seed: 8)
        // A list of somebody else's key is none.
        stage.answer(stranger.list([Self.inbox]), to: asked)
        stage.answer(stage.list([Self.inbox]), to: asked)
        #expect(stage.events(.none).isEmpty)
        #expect(stage.origin.takeSettled().first?.detail == "noList")

        var other = try Stage(seed: 9, builtIn: [Self.inbox])
        try other.origin.notify(other.tokens())
        let event = try #require(other.events(.none).first)
        other.answer(.relays([(Self.inbox, .accepted)]), to: event.call)
        _ = other.due()
        #expect(other.origin.takeSettled().count == 1)
        other.answer(.relays([(Self.inbox, .refused(nil))]), to: event.call)
        #expect(other.due().isEmpty && other.origin.takeSettled().isEmpty)
    }

    @Test("Servers beyond 32 are missed, eight are served at once, and 256 wakes are under way")
    func bounds() throws {
        var stage = try Stage(seed: 10)
        var tokens: [GossipToken] = []
        for _ in 0..<40 { tokens += try stage.tokens(to: stage.props.pair()) }
        let id = try stage.origin.notify(tokens)
        let first = stage.due()
        #expect(first.count == MarmotLimits.serversAtOnce)
        for call in first.prefix(3) { stage.answer(.events([]), to: call) }
        #expect(stage.due().count == 3, "one for each that has ended")
        stage.origin.end(id)
        #expect(stage.origin.takeSettled() == [Settled(id: id, reached: 0, missed: 40, detail: "noList")])

        for _ in 0..<MarmotLimits.openWakes { try stage.origin.notify([]) }
        #expect(throws: DeviceError(.tooMany)) { try stage.origin.notify([]) }
        _ = stage.due()
        #expect(stage.origin.takeSettled().count == MarmotLimits.openWakes, "nobody to wake is no work")
        try stage.origin.notify([])
    }

    @Test("More tokens than one wake takes are refused, by count and by bytes, and nothing is taken")
    func manyTokens() throws {
        var stage = try Stage(seed: 12)
        let hint = "wss://" + String(repeating: "a", count: MarmotLimits.relayURLBytes - 6)
        let short = try stage.tokens(hint: hint)[0]
        let key = stage.server.publicKey
        let long = try stage.props.token(.seed, to: key, device: stage.props.bytes(4_096), hint: hint)
        // A thousand padded ones with the longest hints are taken.
        let most = MarmotLimits.tokenBytesOfWake / (long.box.count + hint.utf8.count)
        #expect(most < MarmotLimits.tokensOfWake)
        for (token, most) in [(short, MarmotLimits.tokensOfWake), (long, most)] {
            let error = #expect(throws: DeviceError.self) {
                try stage.origin.notify(Array(repeating: token, count: most + 1))
            }
            #expect(error?.code == .tooMany && error?.detail == "tooMuchContent")
            #expect(stage.origin.nextDue == nil && stage.due().isEmpty)
        }
        for (token, most) in [(short, MarmotLimits.tokensOfWake), (long, most)] {
            try stage.origin.notify(Array(repeating: token, count: most))
        }
        #expect(stage.origin.nextDue == .distantPast)
        // All of them together have a bound too, and room again when one is over.
        let whole = Array(repeating: long, count: most)
        let room = MarmotLimits.openWakesBytes / (most * (long.box.count + hint.utf8.count))
        var other = try Stage(seed: 14)
        let ids = try (0..<room).map { _ in try other.origin.notify(whole) }
        #expect(room < MarmotLimits.openWakes)
        #expect(throws: DeviceError(.tooMany)) { try other.origin.notify(whole) }
        other.origin.end(ids[0])
        try other.origin.notify(whole)
    }

    @Test("A call that an app never answers is given up after two minutes, and holds no wake")
    func unanswered() throws {
        var stage = try Stage(seed: 13, builtIn: [Self.inbox])
        let id = try stage.origin.notify(stage.tokens())
        var given: [Call] = []
        // Bound: the list, a document and the trigger; a pause, and the list and the trigger once more.
        for _ in 0..<8 {
            given += stage.due()
            guard let next = stage.origin.nextDue else { break }
            #expect(next.since(stage.now) <= MarmotLimits.callLife)
            stage.now = next - .milliseconds(1)
            #expect(stage.due().isEmpty)
            stage.now = next
        }
        let kinds = given.map { String($0.description.split(separator: " ")[1]) }
        #expect(kinds == ["lookUp", "http", "event", "lookUp", "event"])
        #expect(
            stage.origin.takeSettled() == [Settled(id: id, reached: 0, missed: 1, detail: "notTaken")])
        for call in given { stage.answer(.relays([(Self.inbox, .accepted)]), to: call) }
        #expect(stage.due().isEmpty && stage.origin.nextDue == nil && stage.origin.takeSettled().isEmpty)
    }

    @Test(
        "Addresses that are none make no call for a document",
        arguments: [
            "wss://", "wss://user@a.example", "wss://a b", "ws://a.example", "wss://a.onion",
            "wss://a.example/#x", #"wss://a\b"#
        ])
    func documents(_ address: String) throws {
        var stage = try Stage(seed: 11, builtIn: [address])
        try stage.origin.notify(stage.tokens())
        let asked = stage.due()
        for call in asked { stage.answer(.none, to: call) }
        #expect(stage.due().allSatisfy { $0.http == nil })
    }
}
