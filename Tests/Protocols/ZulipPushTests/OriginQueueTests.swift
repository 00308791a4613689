import PushModel
import PushTesting
import Testing
import WireFormats
import ZulipPush

/// How clients of an origin hear of events (docs/conformance/zulip.md).
@Suite("Zulip origin: event queues")
struct OriginQueueTests {
    private let start = UnixTime(seconds: 1_800_000_000)

    @Test("A poll has what is behind the event that the client has seen, each event once and in order")
    func polls() throws {
        var random = SeededRandom(seed: 1)
        var queues = OriginQueues()
        let id = queues.open(types: nil, now: start, using: &random)
        #expect(id.utf8.count == 32)
        #expect(try queues.poll(id, after: -1, now: start) == .wait(until: start + .seconds(25)))
        #expect(queues.add([.accountAdded(7), .deviceAdded(3)]) == [id])
        let first = try read(queues.poll(id, after: -1, now: start))
        #expect(first["queue_id"]?.string == id)
        #expect(first["events"]?.array?.map { $0["id"]?.int64 } == [0, 1])
        // A client that lost the answer asks again, and one that has part of it gets the rest.
        #expect(try read(queues.poll(id, after: -1, now: start)) == first)
        let rest = try read(queues.poll(id, after: 0, now: start))
        #expect(rest["events"]?.array?.map { $0["type"]?.string } == ["device"])
        #expect(try queues.poll(id, after: 1, now: start) == .wait(until: start + .seconds(25)))
        // What was seen is gone, whatever is asked later.
        #expect(try queues.poll(id, after: -1, now: start) == .wait(until: start + .seconds(25)))
        let beat = try JSONValue.parse(queues.heartbeat(id, now: start + .seconds(25)))
        #expect(beat["events"]?[0]?["type"]?.string == "heartbeat" && beat["events"]?[0]?["id"]?.int64 == 2)
        _ = queues.add([.accountRemoved(7, code: nil)])
        #expect(try read(queues.poll(id, after: 2, now: start))["events"]?[0]?["id"]?.int64 == 3)
        #expect(try read(queues.poll(id, after: .min, now: start))["events"]?.array?.count == 1)
        #expect(try queues.poll(id, after: .max, now: start) == .wait(until: start + .seconds(25)))
    }

    @Test("A queue has the types that its client asked for")
    func types() throws {
        var random = SeededRandom(seed: 2)
        var queues = OriginQueues()
        let some = queues.open(types: ["realm", "push_account"], now: start, using: &random)
        let none = queues.open(types: [], now: start, using: &random)
        let touched = queues.add([
            .deviceAdded(1), .requiresEncryption(true), .pushDevice(5, .active, code: nil)
        ])
        #expect(touched == [some])
        let events = try read(queues.poll(some, after: -1, now: start))["events"]?.array
        #expect(events?.map { $0["property"]?.string } == ["require_e2ee_push_notifications"])
        #expect(try queues.poll(none, after: -1, now: start) == .wait(until: start + .seconds(25)))
    }

    @Test("A queue ends ten minutes after its last poll, when it is closed, and when nobody reads it")
    func ends() throws {
        var random = SeededRandom(seed: 3)
        var queues = OriginQueues(limit: 3, eventLimit: 5)
        let id = queues.open(types: nil, now: start, using: &random)
        _ = try queues.poll(id, after: -1, now: start + .seconds(600))
        _ = try queues.poll(id, after: -1, now: start + .seconds(1_200))
        expectUnknown { try queues.poll(id, after: -1, now: start + .milliseconds(1_800_001)) }

        let closed = queues.open(types: nil, now: start, using: &random)
        try queues.close(closed)
        expectUnknown { try queues.poll(closed, after: -1, now: start) }
        expectUnknown { try queues.close(closed) }
        expectUnknown { try queues.heartbeat("", now: start) }

        let unread = queues.open(types: nil, now: start, using: &random)
        for number in 0..<5 { #expect(queues.add([.deviceAdded(Int64(number))]) == [unread]) }
        // Its waiting poll is to hear of it.
        #expect(queues.add([.deviceAdded(9)]) == [unread])
        expectUnknown { try queues.poll(unread, after: -1, now: start) }
    }

    @Test("A user's queues are bounded: the one goes that was not polled for longest")
    func bounded() throws {
        var random = SeededRandom(seed: 4)
        var queues = OriginQueues(limit: 20)
        let first = queues.open(types: nil, now: start, using: &random)
        let second = queues.open(types: nil, now: start + .seconds(1), using: &random)
        _ = try queues.poll(first, after: -1, now: start + .seconds(2))
        for _ in 0..<19 { _ = queues.open(types: nil, now: start + .seconds(3), using: &random) }
        #expect(queues.count == 20)
        expectUnknown { try queues.poll(second, after: -1, now: start + .seconds(3)) }
        #expect(
            try queues.poll(first, after: -1, now: start + .seconds(3)) == .wait(until: start + .seconds(28)))
    }

    @Test("A client fetches the state that it asked for")
    func state() throws {
        let settings = OriginSettings(
            version: "12.0", realmURL: "https://a.example", realmName: "A", hasRelay: true)
        let requirement = EncryptionRequirement(serverRequires: false, realmRequires: true)
        func names(_ fields: [(String, String)]) throws -> Set<String> {
            let body = Secret(Form(fields.map { (name: $0.0, value: Array($0.1.utf8)) }).encoded())
            let json = try JSONValue.parse(
                ZulipRegistrations(realm: "r").body(
                    OriginStateForm(body), queue: "q", settings: settings, requirement: requirement))
            #expect(json["queue_id"]?.string == "q" && json["last_event_id"]?.int64 == -1)
            #expect(json["realm_require_e2ee_push_notifications"]?.bool ?? true)
            let maps: Set = [
                "devices", "push_devices", "push_account_ids", "realm_require_e2ee_push_notifications"
            ]
            return maps.intersection(json.object?.names ?? [])
        }
        #expect(try names([]).count == 4)
        #expect(try names([("fetch_event_types", #"["push_account"]"#)]) == ["push_account_ids"])
        #expect(try names([("event_types", #"["device","message"]"#)]) == ["devices"])
        #expect(try names([("event_types", #"["device"]"#), ("fetch_event_types", "[]")]) == [])
        for text in ["", "push_account", "{}", "[5]", "[", #"["a"]x"#, "null"] {
            #expect(throws: OriginRefusal.self, "\(text)") { try names([("fetch_event_types", text)]) }
        }
    }

    // MARK: parts

    private func read(_ poll: OriginQueues.Poll) throws -> JSONValue {
        guard case .answer(let body) = poll else { return .null }
        return try JSONValue.parse(body)
    }

    private func expectUnknown<Result>(_ body: () throws -> Result) {
        let refusal = #expect(throws: OriginRefusal.self) { _ = try body() }
        #expect(refusal?.word == .unknownQueue && refusal?.code == "BAD_EVENT_QUEUE_ID")
        #expect(refusal?.status == 400)
    }
}
