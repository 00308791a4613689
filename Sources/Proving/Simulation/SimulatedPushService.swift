import MemoryStore
import PushModel
import Synchronization

/// A push service that has its days: outages, silence, limits that shrink, connections that end.
final class SimulatedPushService: Sendable {
    /// How it is today.
    struct Mood: Sendable {
        /// Percent of requests that are refused for now.
        var busy = 0
        /// Percent that are not answered in time, or never; half of them were processed.
        var silent = 0
        /// Percent whose connection ends: before the request is looked at, or after.
        var unprocessed = 0
        var cut = 0
        /// Requests of one process that may be under way at once.
        var window = 16
        var latency = Duration.milliseconds(1) ... .milliseconds(40)
        /// Of those refused for now, percent that are told when to come again.
        var asking = 0
        /// Percent whose credential is refused.
        var refusing = 0
        /// Percent that a proxy answers in the service's place.
        var foreign = 0

        static let good = Mood()
    }

    let machine: SimulatedExecutor
    private let scheduler: Scheduler
    private let ledger: PushLedger
    private let mood: Mutex<Mood>
    private let goodMood: Mood
    /// Devices that are gone, since when.
    private let gone = Mutex<[Int: UnixTime]>([:])
    private let poisoned: Mutex<Int?>
    private let learns: Bool
    private let isKeyBound: Bool
    private let phoneQuota: Int?
    /// What each phone has taken in which minute.
    private let taken = Mutex<[Int: (minute: Int, count: Int)]>([:])
    /// How often connections without a request were closed.
    private let closings = Mutex(0)
    /// How often connections that stood began to hear nothing.
    private let deafenings = Mutex(0)
    private let habits = Mutex(Habits())
    /// The tokens that devices have now, and since when.
    private let tokens = Mutex<[Int: (number: Int, since: UnixTime)]>([:])

    init(_ scheduler: Scheduler, ledger: PushLedger, traits: Traits) {
        self.scheduler = scheduler
        self.ledger = ledger
        machine = scheduler.machine()
        goodMood = traits.mood
        mood = Mutex(traits.mood)
        poisoned = Mutex(traits.poisoned)
        learns = traits.learns
        isKeyBound = traits.isKeyBound
        phoneQuota = traits.phoneQuota
    }

    /// - Parameter new: `nil`: as on good days.
    func turn(_ new: Mood?) { mood.withLock { $0 = new ?? goodMood } }
    var window: Int { mood.withLock(\.window) }

    /// No device is poisoned any more.
    func heal() { poisoned.withLock { $0 = nil } }

    /// Whether it is a device of the sandbox where an app has both.
    static func isInSandbox(_ device: Int) -> Bool { device % 4 == 3 }

    /// Which of Apple's environments a device is in.
    func environment(of device: Int) -> Environment {
        learns && !isKeyBound && Self.isInSandbox(device) ? .sandbox : .production
    }

    /// Whether a phone takes one more in this minute.
    private func takes(_ device: Int) -> Bool {
        guard let phoneQuota else { return true }
        let minute = Int(scheduler.elapsed.components.seconds / 60)
        return taken.withLock { taken in
            var phone = taken[device] ?? (minute, 0)
            if phone.minute != minute { phone = (minute, 0) }
            guard phone.count < phoneQuota else { return false }
            phone.count += 1
            taken[device] = phone
            return true
        }
    }

    /// Closes connections on which nothing is under way, without a word.
    func closeIdle() { closings.withLock { $0 += 1 } }
    var timesClosed: Int { closings.withLock(\.self) }

    /// No request is heard any more on the connections that stand, and no word said of it.
    func deafen() { deafenings.withLock { $0 += 1 } }
    var timesDeafened: Int { deafenings.withLock(\.self) }

    func behave(_ change: (inout Habits) -> Void) { habits.withLock { change(&$0) } }

    /// A device gets another token: the one before is dead from now on.
    ///
    /// - Returns: which one it is.
    func renewToken(of device: Int) -> Int {
        tokens.withLock { tokens in
            let number = (tokens[device]?.number ?? 0) + 1
            tokens[device] = (number, scheduler.now)
            return number
        }
    }

    func token(of device: Int) -> Int { tokens.withLock { $0[device]?.number ?? 0 } }

    func remove(device: Int) { gone.withLock { $0[device] = $0[device] ?? scheduler.now } }

    /// What the network and the service make of one request.
    enum Fate: Sendable {
        case answered(WireAnswer)
        case unprocessed
        /// The connection ended, or nothing came, and the request may have been processed.
        case unknown
        /// Nothing comes.
        case silence
    }

    /// Processes a request whose bytes have left.
    ///
    /// - Parameter arrives: called when the service takes the request up.
    func process(_ push: OwedPush, _ target: Peers.Read, arrives: () -> Void) async -> Fate {
        let (mood, habits) = (mood.withLock(\.self), habits.withLock(\.self))
        await scheduler.pause(push.custody == .volatile ? Self.slow : mood.latency)
        if scheduler.chance(mood.unprocessed) { return .unprocessed }
        if scheduler.chance(mood.foreign) { return .answered(somePage) }
        let isSilent = scheduler.chance(mood.silent)
        if isSilent, scheduler.chance(50) { return .silence }
        let isCut = scheduler.chance(mood.cut)
        if isCut, scheduler.chance(50) { return .unknown }
        if habits.pages > 0, scheduler.chance(habits.pages) {
            return .answered(somePage)
        }
        arrives()
        let answer = judge(push, target, mood, habits)
        await scheduler.pause(mood.latency)
        if isSilent {
            guard scheduler.chance(50) else { return .silence }
            await scheduler.pause(Self.afterAll)
            return .answered(answer)
        }
        if isCut || habits.cut > 0 && scheduler.chance(habits.cut) { return .unknown }
        if habits.late > 0, scheduler.chance(habits.late) { await scheduler.pause(Habits.lateness) }
        return .answered(answer)
    }

    private var somePage: WireAnswer {
        .page(Habits.statuses[scheduler.random(in: 0...Habits.statuses.count - 1)])
    }

    private func judge(_ push: OwedPush, _ target: Peers.Read, _ mood: Mood, _ habits: Habits) -> WireAnswer {
        let (number, device, service) = (target.number, target.device, push.lane.service)
        if scheduler.chance(mood.busy) {
            let after =
                scheduler.chance(mood.asking) ? scheduler.random(in: .seconds(1) ... .seconds(20)) : nil
            return .busy(service, after: after)
        }
        if scheduler.chance(mood.refusing) || poisoned.withLock({ $0 == device }) {
            return .refusedCredential(service)
        }
        if habits.stray > 0, scheduler.chance(habits.stray) { return .refusedCredential(service) }
        if service == .apns, let key = habits.key, key != push.lane.environment {
            // Where only the other environment has refused the address, its word is the last.
            if push.custody == .durable {
                ledger.unregistered(device)
                ledger.refused(number)
            }
            return .otherKey
        }
        if isKeyBound, service == .apns, push.lane.environment == .sandbox { return .otherKey }
        if device >= Traits.MadeUp.byService {
            ledger.refused(number)
            return .unknownAddress(service)
        }
        if service == .apns, environment(of: device) != push.lane.environment {
            ledger.tell(device: device, "refused in \(push.lane.environment), push \(number)")
            // While the other environment refuses the key, this word is the last.
            if habits.key != nil, push.custody == .durable {
                ledger.unregistered(device)
                ledger.refused(number)
            }
            return .unknownAddress(service)
        }
        if let since = gone.withLock({ $0[device] }) {
            if push.custody == .durable {
                ledger.unregistered(device)
                ledger.refused(number)
            }
            return .gone(service, since: since)
        }
        if let (current, since) = tokens.withLock({ $0[device] }), target.token < current {
            // It is about the old token, and says nothing of the device.
            if push.custody == .durable { ledger.refused(number) }
            return service == .apns && scheduler.chance(50)
                ? .unknownAddress(service) : .gone(service, since: since)
        }
        if habits.limited == device {
            let after = scheduler.chance(50) ? scheduler.random(in: .seconds(1) ... .seconds(20)) : nil
            return .overQuota(service, after: after)
        }
        guard takes(device) else { return .overQuota(service, after: nil) }
        if push.custody == .durable { ledger.accepted(number, push.id, at: scheduler.now) }
        return .accepted
    }

    /// When half of the answers come that were waited for in vain: before the repeat or behind it.
    private static let afterAll = Duration.seconds(20) ... .seconds(110)
    /// Volatile pushes are dealt with so slowly that they overlap.
    private static let slow = Duration.milliseconds(200) ... .seconds(1)
}
