import Primitives
import PushModel
import PushTesting
import Testing
import WireFormats
import ZulipPush

/// Whatever happens to a user's registrations, and in whatever order.
@Suite("Zulip registrations: any order of events", .timeLimit(.minutes(30)))
struct RegistrationPropertyTests {
    @Test(
        "The state is the fold of its events, rows agree with the value, and no record waits without an item",
        arguments: UInt64(1)...12)
    func anyOrder(_ seed: UInt64) throws {
        var run = try RegistrationRun(seed: seed)
        for number in 1...300 {
            try run.step()
            if let fault = try run.fault() {
                Issue.record("seed \(seed), step \(number), \(run.last): \(fault)")
                return
            }
        }
        try run.drain()
        #expect(run.value.queue.isEmpty && run.value.notes.isEmpty && run.value.nextDeadline == nil)
        #expect(run.value.accounts.values.allSatisfy { !$0.isPending })
        #expect(try run.fault() == nil)
        // The run has seen what it is to prove.
        for word in ["replay", "restart", "restore", "outdated", "refuse"] {
            #expect(run.counts[word, default: 0] > 0, "seed \(seed) had no \(word)")
        }
    }
}

/// One user, a store, a client and a relay that says anything at any time.
struct RegistrationRun {
    private static let realm = "0ec3eedd-6233-4c5e-a000-b9942be3494e"
    private static let limit = 4

    private(set) var value: ZulipRegistrations
    private(set) var last = ""
    private(set) var counts: [String: Int] = [:]
    private var store = RegistrationStore()
    private var folded = FoldedState()
    private var now = UnixTime(seconds: 1_800_000_000)
    private var random: SeededRandom
    /// Calls that no answer has come to in this process, and all those of which one has.
    private var waiting: [ZulipQueuedCall.ID] = []
    private var answered: [ZulipQueuedCall.ID] = []
    private var backup: (store: RegistrationStore, at: UnixTime, items: Set<UInt64>)?
    private var told: [UInt64: Int] = [:]
    private var problem: String?
    private let keys: [String]
    private let recipients: [String]

    init(seed: UInt64) throws {
        random = SeededRandom(seed: seed)
        value = ZulipRegistrations(realm: Self.realm, limit: Self.limit)
        keys = (1...2).map { Base64.text([0x31] + [UInt8](repeating: $0, count: 32)) }
        recipients = try (1...2).map { byte in
            Base64.text(
                try X25519KeyPair(privateKey: Secret([UInt8](repeating: byte, count: 32))).publicKey)
        }
    }

    mutating func step() throws {
        switch draw(20) {
        case 0...2: try ask(.register, zapForm())
        case 3: try ask(.register, v11Form())
        case 4: try ask(.forget, [("push_account_id", String(account()))])
        case 5: try ask(.addDevice, [])
        case 6: try ask(.removeDevice, [("device_id", String(device()))])
        case 7...8: try ask(.register, deviceForm())
        case 9...12: try answer()
        case 13: try replay()
        case 14: try dead()
        case 15: try deadTokens()
        case 16...17: try wait(draw(2) == 0 ? 40 : 3_000)
        case 18: try wait(Int64(draw(4 * 86_400)))
        default: try restart()
        }
    }

    /// Nobody asks and nobody answers any more.
    mutating func drain() throws {
        for _ in 0..<20 { try wait(86_400) }
    }

    /// What does not hold; `nil` where all does.
    func fault() throws -> String? {
        if let problem { return problem }
        guard store.text == RegistrationStore.text(of: value) else { return "the rows are others" }
        let fetched = try FoldedState(value)
        guard fetched == folded else { return "a fetch gives \(fetched), the events gave \(folded)" }
        let again = store.registrations(realm: Self.realm, limit: Self.limit)
        guard RegistrationStore.text(of: again) == store.text, try FoldedState(again) == fetched else {
            return "after a restart something is another"
        }
        for row in value.accounts.values {
            let item = row.registration.flatMap { value.queue[$0] }
            guard (item == nil) == (row.registration == nil), !row.isPending || item != nil else {
                return "account \(row.id) waits without an item"
            }
            guard value.notes[row.id] == nil else { return "account \(row.id) has a note beside it" }
        }
        for row in value.devices.values {
            let item = row.registration.flatMap { value.queue[$0] }
            let waits = row.pendingTokenID != nil && row.errorCode == nil
            guard (item == nil) == (row.registration == nil), waits == (item != nil) else {
                return "device \(row.id) waits without an item, or has one in vain"
            }
        }
        let named = value.accounts.values.map(\.registration) + value.devices.values.map(\.registration)
        guard Set(named.compactMap { $0 }) == Set(value.queue.keys) else { return "an item is nobody's" }
        let sizes = [value.accounts.count, value.devices.count, value.notes.count]
        return sizes.allSatisfy { $0 <= Self.limit } ? nil : "too many: \(sizes)"
    }

    // MARK: what happens

    private mutating func ask(_ path: OriginPath, _ fields: [(String, String)]) throws {
        last = "\(path) \(fields.map { "\($0.0)=\($0.1.prefix(12))" })"
        let body = Secret(Form(fields.map { (name: $0.0, value: Array($0.1.utf8)) }).encoded())
        let before = RegistrationStore.text(of: value)
        do {
            let request = try OriginRequest(path, body: body)
            take(try value.receive(request.call, now: now, using: &random))
        } catch {
            count("refuse")
            if RegistrationStore.text(of: value) != before { problem = "a refusal changed something" }
        }
        // v11 knows no event for what goes.
        folded.v11 = folded.v11.filter { value.accounts[$0.key]?.profile == .v11 }
    }

    private mutating func answer() throws {
        guard !waiting.isEmpty else { return }
        let id = waiting.remove(at: draw(waiting.count))
        answered.append(id)
        let isNewest = value.queue[id.item] != nil
        let (word, answer) = relayAnswer()
        last = "answer \(id) \(word)"
        let step = value.settle(id, answer, now: now, using: &random)
        if !isNewest {
            count("outdated")
            if !step.isEmpty { problem = "an outdated answer counted" }
        }
        for alert in step.alerts where alert.name == "registration-refused" {
            told[id.item, default: 0] += 1
            if told[id.item, default: 0] > 1 { problem = "administrators were told twice" }
        }
        take(step)
    }

    private mutating func replay() throws {
        guard let id = answered.randomElement(using: &random) else { return }
        last = "replay \(id)"
        count("replay")
        let step = value.settle(id, relayAnswer().answer, now: now, using: &random)
        if !step.isEmpty { problem = "an answer that came again counted" }
    }

    private mutating func dead() throws {
        let ids = (0..<3).map { _ in Int64(draw(6)) }
        let asked = now - .seconds(Int64(draw(3) * 50))
        let isOurs = draw(4) > 0
        last = "dead \(ids)"
        let alive = value.accounts.values.filter { $0.confirmedAt.map { $0 > asked } ?? false }.map(\.id)
        let step = value.end(devices: ids, realm: isOurs ? Self.realm : "another", askedAt: asked)
        if !isOurs, !step.isEmpty { problem = "another realm's ids counted" }
        take(step)
        for id in alive where value.accounts[id]?.deviceID == nil {
            problem = "an older answer ended \(id)"
        }
        folded.v11 = folded.v11.filter { value.accounts[$0.key] != nil }
    }

    private mutating func deadTokens() throws {
        let ids = (0..<2).map { _ in TokenID(UInt64(draw(3))) }
        last = "dead tokens"
        take(value.end(tokens: ids, realm: Self.realm, askedAt: now))
    }

    private mutating func wait(_ seconds: Int64) throws {
        last = "wait \(seconds)"
        now = now + .seconds(seconds)
        take(value.tick(now: now))
        if let next = value.nextDeadline, next <= now { problem = "something was due and was not done" }
        if backup == nil || draw(8) == 0 { backup = (store, now, Set(value.queue.keys)) }
    }

    /// The process dies, and comes back with its rows or with those of a backup. Answers to calls of the dead
    /// process come to nobody.
    private mutating func restart() throws {
        if draw(2) == 0, let backup {
            last = "restore"
            count("restore")
            let since = Set(value.queue.keys).subtracting(backup.items)
            store = backup.store
            // Nor does it know whom administrators have heard of since.
            told = [:]
            value = store.registrations(realm: Self.realm, limit: Self.limit)
            folded = try FoldedState(value)
            // What was asked for after the backup was made is nothing that it knows.
            for id in waiting where since.contains(id.item) {
                let step = value.settle(id, relayAnswer().answer, now: now, using: &random)
                if !step.isEmpty { problem = "a backup took an answer for what it never asked" }
            }
        } else {
            last = "restart"
            count("restart")
            value = store.registrations(realm: Self.realm, limit: Self.limit)
        }
        waiting = []
        answered = []
        take(value.tick(now: now))
    }

    // MARK: parts

    private mutating func take(_ step: ZulipStep) {
        store.commit(step.changes)
        for event in step.events {
            do { folded.apply(try JSONValue.parse(event.json())) } catch { problem = "no JSON: \(event)" }
        }
        for call in step.calls {
            if value.queue[call.id.item] == nil { problem = "a call without an item" }
            waiting.append(call.id)
        }
    }

    private mutating func relayAnswer() -> (word: String, answer: CallAnswer) {
        let bodies: [(Int, String)] = [
            (200, #"{"result":"success","msg":"","device_id":\#(1 + draw(5))}"#),
            (200, #"{"result":"success","msg":"","device_id":\#(1 + draw(5))}"#),
            (200, #"{"device_id":0}"#), (200, "<html>"), (400, #"{"code":"INVALID_BOUNCER_PUBLIC_KEY"}"#),
            (400, #"{"error_code":"request_expired"}"#), (400, #"{"code":"BAD_REQUEST"}"#),
            (403, #"{"code":"MISSING_REMOTE_REALM"}"#), (503, ""), (429, "{}")
        ]
        let place = draw(bodies.count + 1)
        guard place < bodies.count else { return ("none", .none) }
        let (status, body) = bodies[place]
        return (
            "\(status) \(body)",
            CallAnswer(
                status: status, retryAfter: draw(3) == 0 ? "\(draw(9_000))" : nil, body: Secret(body.utf8))
        )
    }

    private mutating func zapForm() -> [(String, String)] {
        [
            ("push_account_id", String(account())), ("encrypted_push_registration", blob()),
            ("bouncer_public_key", "k"), ("push_public_key", recipients[draw(2)]), ("token_kind", "fcm")
        ]
    }

    private mutating func v11Form() -> [(String, String)] {
        [
            ("push_account_id", String(account())), ("push_key", keys[draw(2)]), ("token_kind", "apns"),
            ("bouncer_public_key", "k"), ("encrypted_push_registration", blob())
        ]
    }

    private mutating func deviceForm() -> [(String, String)] {
        var fields = [("device_id", String(device()))]
        if draw(4) > 0 { fields += [("push_key_id", String(draw(3))), ("push_key", keys[draw(2)])] }
        if draw(4) > 0 {
            fields += [
                ("token_kind", "fcm"), ("token_id", TokenID(UInt64(draw(3))).text),
                ("bouncer_public_key", "k"), ("encrypted_push_registration", blob())
            ]
        }
        return fields
    }

    private mutating func account() -> Int64 { Int64(draw(7)) - 1 }

    private mutating func device() -> Int64 {
        draw(8) == 0 ? 5 : value.devices.keys.sorted().randomElement(using: &random) ?? 5
    }

    private mutating func blob() -> String { Base64.text([UInt8](repeating: UInt8(draw(256)), count: 60)) }

    private mutating func draw(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }

    private mutating func count(_ word: String) { counts[word, default: 0] += 1 }
}
