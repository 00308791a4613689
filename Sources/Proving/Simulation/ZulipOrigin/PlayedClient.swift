import OriginServer
import PushModel
import Synchronization
import WireFormats
import ZulipPush

/// A phone of a user, and the app's connection: it follows events, registers, repeats, changes its token,
/// forgets, and asks again whenever it hears nothing.
final class PlayedClient: Sendable {
    /// What the phone was last told that holds.
    enum Wish: Sendable, Hashable { case gone, registered(PlayedRelay.Blob) }

    private struct State {
        var version = 0
        var wish = Wish.gone
        /// A call whose answer has not come: what it asked for.
        var open: Wish?
        /// v12: what the server calls it.
        var deviceID: Int64?
        var queue: String?
        var last: Int64 = -1
        var map: [String: [String: JSONValue]] = [:]
        /// The last event about each device, without its number.
        var told: [String: [String: JSONValue]] = [:]
    }

    let number: Int
    let user: String
    let profile: ZulipProfile
    private let origin: SimulatedOrigin
    private let relay: PlayedRelay
    private let scheduler: Scheduler
    private let ledger: OriginLedger
    private let state = Mutex(State())

    init(
        _ number: Int, _ user: String, _ profile: ZulipProfile, _ origin: SimulatedOrigin,
        _ relay: PlayedRelay, _ scheduler: Scheduler, _ ledger: OriginLedger
    ) {
        self.number = number
        self.user = user
        self.profile = profile
        self.origin = origin
        self.relay = relay
        self.scheduler = scheduler
        self.ledger = ledger
    }

    var wish: Wish { state.withLock(\.wish) }
    var isUncertain: Bool { state.withLock { $0.open != nil } }
    var hasQueue: Bool { state.withLock { $0.queue != nil } }
    var account: Int64 { Int64(number + 100) }
    var deviceID: Int64? { state.withLock(\.deviceID) }

    /// By what the relay knows it.
    var relayName: String {
        switch profile {
        case .v12:
            let version = if case .registered(let blob) = wish { blob.version } else { 0 }
            return token(version).text
        case .v11, .zap: return String(PlayedRelay.number(of: number))
        }
    }

    /// v12's phones have another token with each change of it; a repeat has the same.
    private func token(_ version: Int) -> TokenID { TokenID(UInt64(number + 1) << 32 | UInt64(version / 2)) }

    // MARK: Calls

    private func call(_ path: OriginPath, _ fields: [(String, String)]) async -> ZulipStep? {
        let user = user
        let body = Secret(Form(fields.map { (name: $0.0, value: Array($0.1.utf8)) }).encoded())
        let drawing = WorldDraw(scheduler: scheduler)
        return await origin.ask { house in
            // What refuses a call is a fault of this play; an origin that is out is asked again.
            do {
                let request = try OriginRequest(path, body: body)
                guard let known = try await house.people.user(user) else { return nil }
                return try await house.users.change(
                    user, realm: known.realm, id: known.id,
                    { (registrations) throws(OriginRefusal) in
                        var generator = drawing
                        return try registrations.receive(
                            request.call, now: house.world.now(), using: &generator)
                    },
                    behind: { _, step in
                        if house.sabotage.contains(.tellsTwice) { house.polls.add(step.events, of: user) }
                        return step
                    })
            } catch { return nil }
        }
    }

    /// Registers with the next version.
    ///
    /// - Parameter isBad: with a blob that the relay refuses for good.
    func register(isBad: Bool = false) async {
        let version = state.withLock { state in
            state.version += 1
            return state.version
        }
        let blob = PlayedRelay.Blob(phone: number, version: version, isBad: isBad)
        await settle(.registered(blob))
    }

    func forget() async { await settle(.gone) }

    /// Asks until it is answered: a call of which nothing is known may have been made or not.
    func settle(_ wish: Wish? = nil) async {
        guard let wish = wish ?? state.withLock(\.open) else { return }
        state.withLock { $0.open = wish }
        for _ in 0..<4 {
            if await ask(wish) {
                return state.withLock { state in
                    state.wish = wish
                    state.open = nil
                }
            }
            await scheduler.pause(.milliseconds(200) ... .seconds(5))
        }
    }

    private func ask(_ wish: Wish) async -> Bool {
        switch wish {
        case .gone:
            ledger.happened("phone \(number) forgets")
            switch profile {
            case .v12:
                guard let device = deviceID else { return true }
                // The second time there is no such device.
                if await !isGone(device) {
                    guard await call(.removeDevice, [("device_id", String(device))]) != nil else {
                        return false
                    }
                }
                state.withLock { $0.deviceID = nil }
                return true
            case .v11, .zap: return await call(.forget, [("push_account_id", String(account))]) != nil
            }
        case .registered(let blob):
            ledger.happened("phone \(number) registers version \(blob.version)\(blob.isBad ? ", bad" : "")")
            guard let fields = await fields(blob), await call(.register, fields) != nil else { return false }
            ledger.registered()
            return true
        }
    }

    private func isGone(_ device: Int64) async -> Bool {
        await rows().map { $0.devices[device] == nil } ?? false
    }

    private func fields(_ blob: PlayedRelay.Blob) async -> [(String, String)]? {
        let key = [UInt8](repeating: UInt8(truncatingIfNeeded: number + 9), count: 32)
        let common = [
            ("token_kind", "apns"), ("bouncer_public_key", "a key of the relay"),
            ("encrypted_push_registration", blob.text)
        ]
        switch profile {
        case .zap:
            return common + [
                ("push_account_id", String(account)), ("push_public_key", Base64.text(key))
            ]
        case .v11:
            return common + [
                ("push_account_id", String(account)), ("push_key", Base64.text([0x31] + key))
            ]
        case .v12:
            if deviceID == nil {
                guard let step = await call(.addDevice, []), let id = step.deviceID else { return nil }
                state.withLock { $0.deviceID = id }
            }
            guard let device = deviceID else { return nil }
            return common + [
                ("device_id", String(device)), ("push_key_id", "7"), ("push_key", Base64.text([0x31] + key)),
                ("token_id", token(blob.version).text)
            ]
        }
    }

    /// What the server has of this phone's user.
    func rows() async -> ZulipRegistrations? {
        let user = user
        return await origin.ask { house in
            do {
                guard let known = try await house.people.user(user) else { return nil }
                return try await house.users.change(
                    user, realm: known.realm, id: known.id, { _ in ZulipStep() },
                    behind: { registrations, _ in registrations })
            } catch { return nil }
        }
    }

    // MARK: Events

    /// Whether what it follows says that the server has nothing of it, or refuses it, though it should not.
    var isMissing: Bool {
        state.withLock { state in
            guard case .registered(let blob) = state.wish, state.open == nil, state.queue != nil else {
                return false
            }
            let id = profile == .v12 ? state.deviceID : account
            guard let row = id.flatMap({ state.map[String($0)] }) else { return true }
            let code = row["error_code"] ?? row["push_registration_error_code"] ?? .null
            if code != .null { return !blob.isBad }
            guard profile == .v12 else { return false }
            return ["push_token_id", "pending_push_token_id"].allSatisfy { row[$0] ?? .null == .null }
        }
    }

    private var member: String {
        switch profile {
        case .v12: "device"
        case .v11: "push_device"
        case .zap: "push_account"
        }
    }

    /// Follows events for one poll, behind opening a queue where it has none.
    ///
    /// - Parameter blocks: false: with none it is over.
    /// - Returns: whether it heard something, or may have missed something.
    @discardableResult
    func follow(blocks: Bool) async -> Bool {
        let (queue, last) = state.withLock { ($0.queue, $0.last) }
        guard let queue else {
            await open()
            return true
        }
        enum Heard: Sendable { case body([UInt8]), unknown, full }
        let user = user
        let heard = await origin.ask { house -> Heard? in
            do throws(OriginRefusal) {
                return try await house.polls.poll(user, queue, after: last, blocks: blocks)
                    .map { .body($0) } ?? .full
            } catch { return .unknown }
        }
        switch heard {
        // The answer may be on its way: the same is asked for again.
        case nil, .full?: return true
        case .unknown?:
            state.withLock { $0.queue = nil }
            return true
        case .body(let bytes)?: return take(bytes, last)
        }
    }

    private func open() async {
        let (user, profile, member) = (user, profile, member)
        let opened = await origin.ask { house -> (queue: String, state: [UInt8])? in
            do {
                guard let known = try await house.people.user(user) else { return nil }
                return try await house.users.change(
                    user, realm: known.realm, id: known.id, { _ in ZulipStep() },
                    behind: { registrations, _ in
                        let queue = house.polls.open(user, of: known.realm, types: [member])
                        return (queue, registrations.state(profile))
                    })
            } catch { return nil }
        }
        guard let opened, let map = Self.map(opened.state) else { return }
        state.withLock { state in
            (state.queue, state.last, state.map, state.told) = (opened.queue, -1, map, [:])
        }
    }

    /// - Returns: whether it was more than a heartbeat.
    private func take(_ bytes: [UInt8], _ asked: Int64) -> Bool {
        // What cannot be read has no events.
        guard let body = try? JSONValue.parse(bytes), let events = body["events"]?.array else {
            ledger.broke(.eventTwice, "phone \(number): an answer without events")
            return false
        }
        var isNews = false
        for event in events {
            guard let id = event["id"]?.int64 else { continue }
            let last = state.withLock(\.last)
            // A heartbeat whose answer was lost leaves a number out.
            guard id > last else {
                ledger.broke(.eventTwice, "phone \(number): \(id) behind \(last)")
                state.withLock { $0.queue = nil }
                return true
            }
            state.withLock { $0.last = id }
            if event["type"]?.string != "heartbeat" {
                isNews = true
                apply(event)
            }
        }
        return isNews
    }

    private func apply(_ event: JSONValue) {
        let id = (event["device_id"] ?? event["push_account_id"])?.int64.map(String.init) ?? ""
        var members = event.members
        members["id"] = nil
        let bare = members
        let isRepeat = state.withLock { state in
            defer { state.told[id] = bare }
            return state.told[id] == bare
        }
        // Each says what has changed. The others' may come again: a registration that is asked for twice in
        // one second, and one that comes after a removal, of which v11 tells nothing.
        if isRepeat, profile == .zap { ledger.broke(.eventTwice, "phone \(number): account \(id)") }
        for name in ["type", "op", "device_id", "push_account_id"] { members[name] = nil }
        state.withLock { state in
            switch event["op"]?.string {
            case "remove":
                guard let code = members["error_code"] else {
                    state.map[id] = nil
                    return
                }
                state.map[id] = ["status": .string("failed"), "error_code": code]
            case "update": state.map[id, default: [:]].merge(members) { $1 }
            // In v11 what is not said is over.
            default: state.map[id] = members
            }
        }
    }

    /// What it makes of state and events; without members that say null.
    var map: [String: [String: JSONValue]] { state.withLock(\.map).mapValues(Self.bare) }

    static func map(_ state: [UInt8]) -> [String: [String: JSONValue]]? {
        // What is no JSON is no state, and the law says so.
        guard let value = try? JSONValue.parse(state) else { return nil }
        return value.members.mapValues { bare($0.members) }
    }

    private static func bare(_ members: [String: JSONValue]) -> [String: JSONValue] {
        members.filter { $0.value != .null }
    }
}

extension JSONValue {
    fileprivate var members: [String: JSONValue] {
        guard case .object(let object) = self else { return [:] }
        return Dictionary(object.members.map { ($0.name, $0.value) }, uniquingKeysWith: { $1 })
    }
}
