import MarmotPush
import PushModel
import Secp256k1Keys
import Testing
import WireFormats

/// Messages and filters of NIP-01 and NIP-42, in both directions.
@Suite("Nostr messages")
struct MessageTests {
    private func fromRelay(_ frame: Secret) throws(MarmotError) -> NostrMessage.FromRelay {
        try frame.reveal { (raw) throws(MarmotError) in try NostrMessage.FromRelay.parse(raw) }
    }

    private func fromClient(_ frame: Secret) throws(MarmotError) -> NostrMessage.FromClient {
        try frame.reveal { (raw) throws(MarmotError) in try NostrMessage.FromClient.parse(raw) }
    }

    private func relayCode(_ text: String) -> MarmotError.Code? {
        MarmotSupport.code { () throws(MarmotError) in _ = try fromRelay(MarmotSupport.text(text)) }
    }

    private func clientCode(_ text: String) -> MarmotError.Code? {
        MarmotSupport.code { () throws(MarmotError) in _ = try fromClient(MarmotSupport.text(text)) }
    }

    private static func relaySide() throws -> [NostrMessage.FromRelay] {
        [
            .event(subscription: "s\"1", try MarmotSupport.signed(1059, tags: [["p", "x"]], "c\n")),
            .ok(id: [UInt8](repeating: 9, count: 32), isAccepted: true, text: ""),
            .ok(id: [UInt8](repeating: 9, count: 32), isAccepted: false, text: "duplicate: \u{1F43F}"),
            .endOfStored(subscription: "s"), .closed(subscription: "s", text: "error: x"),
            .notice(text: "hello"), .challenge("abc")
        ]
    }

    private static func clientSide() throws -> [NostrMessage.FromClient] {
        let full = NostrFilter(
            ids: [[UInt8](repeating: 1, count: 32)], authors: [[UInt8](repeating: 255, count: 32)],
            kinds: [1059, 0], tags: ["p": ["a", "b\""], "e": []], since: 5, until: 9, limit: 0)
        return [
            .event(try MarmotSupport.signed(1, "x")), .authenticate(try MarmotSupport.signed(22242)),
            .close(subscription: "s"), .request(subscription: "s", filters: [NostrFilter()]),
            .request(subscription: "s", filters: [full, .relayList(of: try MarmotSupport.pair(3).publicKey)])
        ]
    }

    @Test("What is written is read, and written again the same")
    func roundTrip() throws {
        for message in try Self.relaySide() {
            #expect(try fromRelay(message.serialized()).serialized() == message.serialized())
        }
        for message in try Self.clientSide() {
            #expect(try fromClient(message.serialized()).serialized() == message.serialized())
        }
        guard
            case .request("s", let filters) = try fromClient(
                try #require(Self.clientSide().last).serialized())
        else {
            Issue.record("no request")
            return
        }
        #expect(filters.first?.tags == ["p": ["a", "b\""], "e": []] && filters.first?.limit == 0)
        #expect(filters.count == 2)
    }

    @Test("A message that is cut at any length is refused")
    func truncated() throws {
        for frame in try Self.relaySide().map({ $0.serialized() }) {
            for count in 0..<frame.count {
                let cut = frame.reveal { Secret($0.prefix(count)) }
                #expect(MarmotSupport.code { () throws(MarmotError) in _ = try fromRelay(cut) } != nil)
            }
        }
        for frame in try Self.clientSide().map({ $0.serialized() }) {
            for count in 0..<frame.count {
                let cut = frame.reveal { Secret($0.prefix(count)) }
                #expect(MarmotSupport.code { () throws(MarmotError) in _ = try fromClient(cut) } != nil)
            }
        }
    }

    private static let id = String(repeating: "0a", count: 32)
    private static let name64 = String(repeating: "\u{E9}", count: 64)

    private static let badFromRelay: [(String, MarmotError.Code)] = [
        ("", .malformedMessage), ("[]", .malformedMessage), ("{}", .malformedMessage),
        ("\"EOSE\"", .malformedMessage), ("[1]", .malformedMessage), ("[[\"EOSE\"]]", .malformedMessage),
        ("[\"EOSE\"]", .malformedMessage), ("[\"EOSE\",1]", .malformedMessage),
        ("[\"EOSE\",\"\"]", .malformedMessage), ("[\"EOSE\",\"s\",1]", .malformedMessage),
        ("[\"EOSE\",\"\(name64)x\"]", .malformedMessage), ("[\"EOSE\",\"s\"] x", .malformedMessage),
        ("[\"eose\",\"s\"]", .unknownMessage), ("[\"COUNT\",\"s\",{}]", .unknownMessage),
        ("[\"WHATEVERLONGWORD\"]", .unknownMessage), ("[\"EVENT\",\"s\"]", .malformedMessage),
        ("[\"EVENT\",\"s\",{}]", .malformedEvent), ("[\"EVENT\",\"s\",1]", .malformedEvent),
        ("[\"OK\",\"\(id)\"]", .malformedMessage), ("[\"OK\",\"\(id)\",1,\"\"]", .malformedMessage),
        ("[\"OK\",\"\(id.uppercased())\",true,\"\"]", .malformedMessage),
        ("[\"OK\",\"\(id)\",true,1]", .malformedMessage),
        ("[\"OK\",\"00\",true,\"\"]", .malformedMessage),
        ("[\"OK\",\"\(id)\",true,\"\",\"\"]", .malformedMessage), ("[\"AUTH\"]", .malformedMessage),
        ("[\"AUTH\",{}]", .malformedMessage), ("[\"REQ\",\"s\",{}]", .unknownMessage),
        ("[\"NOTICE\",{}]", .malformedMessage), ("[\"CLOSED\",\"s\",\"\\ud800\"]", .malformedMessage)
    ]

    @Test("What no relay should say is refused", arguments: MessageTests.badFromRelay.indices)
    func badRelay(row: Int) {
        let (text, code) = Self.badFromRelay[row]
        #expect(relayCode(text) == code, "\(text)")
    }

    private static let badFromClient: [(String, MarmotError.Code)] = [
        ("[\"REQ\",\"s\"]", .malformedMessage), ("[\"REQ\",\"s\",[]]", .malformedFilter),
        ("[\"REQ\",\"s\",{\"kinds\":[\"1\"]}]", .malformedFilter),
        ("[\"REQ\",\"s\",{\"kinds\":1}]", .malformedFilter),
        ("[\"REQ\",\"s\",{\"ids\":[\"00\"]}]", .malformedFilter),
        ("[\"REQ\",\"s\",{\"authors\":[\"\(id.uppercased())\"]}]", .malformedFilter),
        ("[\"REQ\",\"s\",{\"since\":-1}]", .malformedFilter),
        ("[\"REQ\",\"s\",{\"since\":1.5}]", .malformedFilter),
        ("[\"REQ\",\"s\",{\"limit\":4294967296}]", .malformedFilter),
        ("[\"REQ\",\"s\",{\"#p\":\"x\"}]", .malformedFilter),
        ("[\"REQ\",\"s\",{\"#p\":[],\"#p\":[]}]", .malformedFilter),
        ("[\"REQ\",\"s\",{\"kinds\":[],\"\\u006binds\":[]}]", .malformedFilter),
        ("[\"CLOSE\"]", .malformedMessage), ("[\"EVENT\",{}]", .malformedEvent),
        ("[\"AUTH\",\"challenge\"]", .malformedEvent), ("[\"EOSE\",\"s\"]", .unknownMessage)
    ]

    @Test("What no client should say is refused", arguments: MessageTests.badFromClient.indices)
    func badClient(row: Int) {
        let (text, code) = Self.badFromClient[row]
        #expect(clientCode(text) == code, "\(text)")
    }

    @Test("Bounds hold, and the bound itself passes")
    func bounds() throws {
        func filters(_ count: Int) -> String { Array(repeating: "{}", count: count).joined(separator: ",") }
        #expect(clientCode("[\"REQ\",\"s\",\(filters(MarmotLimits.filters))]") == nil)
        #expect(clientCode("[\"REQ\",\"s\",\(filters(MarmotLimits.filters + 1))]") == .tooLarge)
        func kinds(_ count: Int) -> String { Array(repeating: "1", count: count).joined(separator: ",") }
        #expect(clientCode("[\"REQ\",\"s\",{\"kinds\":[\(kinds(MarmotLimits.filterValues))]}]") == nil)
        #expect(
            clientCode("[\"REQ\",\"s\",{\"kinds\":[\(kinds(MarmotLimits.filterValues + 1))]}]")
                == .malformedFilter)
        #expect(relayCode("[\"EOSE\",\"\(Self.name64)\"]") == nil)
        let full = String(repeating: " ", count: MarmotLimits.frameBytes - 12) + "[\"EOSE\",\"s\"]"
        #expect(relayCode(full) == nil)
        #expect(relayCode(" " + full) == .tooLarge && clientCode(" " + full) == .tooLarge)
        let deep = String(repeating: "[", count: 200_000)
        #expect(relayCode("[\"NOTICE\"," + deep) == .malformedMessage)
    }

    @Test("A relay's text may be missing, and a long one is cut")
    func texts() throws {
        let long = String(repeating: "\u{E9}", count: MarmotLimits.relayTextBytes)
        guard case .notice(let kept) = try fromRelay(MarmotSupport.text("[\"NOTICE\",\"\(long)\"]")),
            case .closed("s", "") = try fromRelay(MarmotSupport.text("[\"CLOSED\",\"s\"]")),
            case .ok(_, true, "") = try fromRelay(MarmotSupport.text("[\"OK\",\"\(Self.id)\",true]"))
        else {
            Issue.record("read as something else")
            return
        }
        #expect(kept == String(repeating: "\u{E9}", count: MarmotLimits.relayTextBytes / 2))
    }

    @Test("The word before the colon is the reason, and no other text is one")
    func reasons() {
        #expect(NostrReason(text: "auth-required: please") == .authRequired)
        #expect(NostrReason(text: "rate-limited: slow down") == .rateLimited)
        #expect(NostrReason(text: "duplicate:") == .duplicate)
        for text in ["", "auth-required", "Auth-required: x", " invalid: x", "other: x"] {
            #expect(NostrReason(text: text) == nil)
        }
    }

    @Test("A filter lets through what fits every part of it")
    func filters() throws {
        let event = try MarmotSupport.signed(1059, tags: [["p", "me", "wss://r"], ["e"], ["p", "you"]])
        let at = MarmotSupport.now
        let fits = [
            NostrFilter(), NostrFilter(ids: [event.id]), NostrFilter(authors: [event.pubkey.bytes]),
            NostrFilter(kinds: [1, 1059]), NostrFilter(tags: ["p": ["x", "you"]]),
            NostrFilter(since: at, until: at), NostrFilter(limit: 0)
        ]
        let fails = [
            NostrFilter(ids: []), NostrFilter(ids: [[UInt8](repeating: 0, count: 32)]),
            NostrFilter(authors: [event.id]), NostrFilter(kinds: [1058]), NostrFilter(kinds: []),
            NostrFilter(tags: ["p": ["wss://r"]]), NostrFilter(tags: ["e": [""]]),
            NostrFilter(tags: ["p": ["me"], "e": ["me"]]), NostrFilter(since: at + 1),
            NostrFilter(until: at - 1), NostrFilter(kinds: [1059], tags: ["p": ["ME"]])
        ]
        for filter in fits { #expect(filter.matches(event)) }
        for filter in fails { #expect(!filter.matches(event)) }
        let wraps = NostrFilter.wraps(for: [try MarmotSupport.pair(3).publicKey], since: at)
        #expect(!wraps.matches(event))
        #expect(
            wraps.matches(
                try MarmotSupport.signed(1059, tags: [["p", try MarmotSupport.pair(3).publicKey.hex]])))
    }

    @Test("A proof of who asks holds for its relay, challenge and time alone")
    func authentication() throws {
        let pair = try MarmotSupport.pair(3)
        let now = MarmotSupport.now
        let event = AuthEvent.make(
            relay: "wss://r", challenge: "c", at: now, by: pair, auxiliary: [UInt8](repeating: 1, count: 32))
        func code(
            _ event: NostrEvent, _ relay: String = "wss://r", _ challenge: String = "c", at time: Int64 = now
        ) -> MarmotError.Code? {
            MarmotSupport.code { () throws(MarmotError) in
                _ = try AuthEvent.check(event, relay: relay, challenge: challenge, now: time)
            }
        }
        #expect(code(event) == nil && code(event, at: now + 600) == nil && code(event, at: now - 600) == nil)
        #expect(code(event, "wss://r/") == .malformedEvent && code(event, "wss://r", "d") == .malformedEvent)
        #expect(code(event, at: now + 601) == .malformedEvent && code(event, at: .min) == .malformedEvent)
        #expect(code(try MarmotSupport.signed(1)) == .wrongKind)
        let json = try #require(event.serialized().reveal { try JSONValue.parse($0) }.object)
        var forged = json
        forged["pubkey"] = .string(try MarmotSupport.pair(4).publicKey.hex)
        #expect(code(try NostrEvent.parse(Secret(JSONValue.object(forged).serialized()))) == .badSignature)
    }

    @Test("A relay list is one of the right kind, signed, and no longer than we take")
    func relayLists() throws {
        let many = (0..<40).map { "wss://r\($0).example.org" }
        let event = RelayList.event(
            relays: many, at: 5, by: try MarmotSupport.pair(3), auxiliary: [UInt8](repeating: 0, count: 32))
        #expect(try RelayList(event).relays == Array(many.prefix(MarmotLimits.relaysOfList)))
        let other = try MarmotSupport.signed(10002, tags: [["relay", "wss://r"]])
        #expect(
            MarmotSupport.code { () throws(MarmotError) in _ = try RelayList(other) } == .malformedRelayList)
        let odd = try MarmotSupport.signed(
            10050,
            tags: [
                ["relay", "wss://"], ["relay", "WSS://r"],
                ["relay", "wss://" + String(repeating: "a", count: 512)]
            ])
        #expect(try RelayList(odd).relays == [])
        #expect(RelayList.newest(of: [other], author: try MarmotSupport.pair(3).publicKey) == nil)
    }
}
