import PushModel
import PushTesting
import Testing
import WireFormats
import ZulipPush

/// An origin server with nothing but users' registrations: it commits nothing, and a relay answers when the
/// test says so.
struct OriginBench {
    let realm: String
    private(set) var users: [String: ZulipRegistrations] = [:]
    /// Every call that was made, in order.
    private(set) var calls: [(user: String, call: ZulipQueuedCall)] = []
    private var answered: Set<Int> = []
    private var random: SeededRandom
    /// The origin whose calls these are.
    let origin = ZulipOrigin(
        id: "1c29d774-2414-40cc-a7d1-4fb445cf9726", key: Secret(String(repeating: "k", count: 64).utf8),
        version: "12.0")

    /// What one step brought, for all users.
    struct Seen {
        var answer: (status: Int, body: JSONValue)?
        var events: [(user: String, event: JSONValue)] = []
        var calls: [JSONValue] = []
        var alerts: [String] = []
        /// How long the registration that was answered waits now.
        var retryIn: Duration?
        var deviceID: Int64?
    }

    init(realm: String, seed: UInt64 = 1) {
        self.realm = realm
        random = SeededRandom(seed: seed)
    }

    subscript(_ user: String) -> ZulipRegistrations {
        get { users[user] ?? ZulipRegistrations(realm: realm) }
        set { users[user] = newValue }
    }

    /// What time alone brings, for everybody.
    mutating func tick(_ now: UnixTime) throws -> Seen {
        var seen = Seen()
        for user in users.keys.sorted() { try take(self[user].tick(now: now), user, &seen) }
        return seen
    }

    /// A client's form.
    mutating func ask(
        _ path: OriginPath, _ fields: [(String, String)], of user: String, _ now: UnixTime, _ seen: inout Seen
    ) throws {
        let body = Secret(Form(fields.map { (name: $0.0, value: Array($0.1.utf8)) }).encoded())
        do {
            let request = try OriginRequest(path, body: body)
            var registrations = self[user]
            let step = try registrations.receive(request.call, now: now, using: &random)
            self[user] = registrations
            seen.answer = (200, try JSONValue.parse(request.body(step)))
            seen.deviceID = step.deviceID
            try take(step, user, &seen)
        } catch let refusal as OriginRefusal {
            seen.answer = (refusal.status, try JSONValue.parse(refusal.body()))
        }
    }

    /// The relay answers the oldest call that waits.
    mutating func answer(_ answer: CallAnswer, _ now: UnixTime, _ seen: inout Seen) throws {
        let oldest = calls.indices.first { index in
            !answered.contains(index) && self[calls[index].user].queue[calls[index].call.id.item] != nil
        }
        let index = try #require(oldest, "no call waits")
        answered.insert(index)
        try self.answer(call: index, answer, now, &seen)
    }

    /// The relay answers a call, whether it has answered it before or not.
    mutating func answer(
        call index: Int, _ answer: CallAnswer, _ now: UnixTime, _ seen: inout Seen
    ) throws {
        let (user, call) = calls[index]
        var registrations = self[user]
        let step = registrations.settle(call.id, answer, now: now, using: &random)
        self[user] = registrations
        try take(step, user, &seen)
        seen.retryIn = self[user].queue[call.id.item].map { $0.nextTry.since(now) }
    }

    /// An answer to a notification, or a page of the stale list, said of these ids.
    mutating func dead(
        _ ids: [Int64], realm: String? = nil, _ now: UnixTime, _ seen: inout Seen
    ) throws {
        for user in users.keys.sorted() {
            let step = self[user].end(devices: ids, realm: realm ?? self.realm, askedAt: now)
            try take(step, user, &seen)
        }
    }

    func state(_ profile: ZulipProfile, of user: String) throws -> JSONValue {
        try JSONValue.parse(self[user].state(profile))
    }

    // MARK: parts

    private mutating func take(_ step: ZulipStep, _ user: String, _ seen: inout Seen) throws {
        for call in step.calls {
            calls.append((user, call))
            let form = try Form.parse(call.call(by: origin).body.reveal { Array($0) })
            var fields = JSONObject()
            for field in form.fields {
                fields[field.name] = .string(String(decoding: field.value, as: UTF8.self))
            }
            seen.calls.append(.object(fields))
        }
        for event in step.events { seen.events.append((user, try JSONValue.parse(event.json()))) }
        seen.alerts += step.alerts.map(\.name)
    }
}
