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
    private let book: Book
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

    init(_ scheduler: Scheduler, book: Book, traits: Traits) {
        self.scheduler = scheduler
        self.book = book
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

    /// Which of Apple's environments a device is in.
    func environment(of device: Int) -> Environment {
        learns && !isKeyBound && device % 4 == 3 ? .sandbox : .production
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

    func remove(device: Int) { gone.withLock { $0[device] = $0[device] ?? scheduler.now } }

    /// What the network and the service make of one request.
    enum Fate: Sendable {
        case answered(Outcome, Reason)
        case unprocessed
        /// Not by the service.
        case foreign
        /// The connection ended, or nothing came, and the request may have been processed.
        case unknown
        /// Nothing came in time. With what the service would answer yet, if it has processed the request.
        case silence(late: (outcome: Outcome, reason: Reason)?)
    }

    /// Processes a request whose bytes have left.
    ///
    /// - Parameter arrives: called when the service takes the request up.
    func process(_ push: OwedPush, _ number: Int, device: Int, arrives: () -> Void) async -> Fate {
        let mood = mood.withLock(\.self)
        await scheduler.pause(push.custody == .volatile ? Self.slow : mood.latency)
        if scheduler.chance(mood.unprocessed) { return .unprocessed }
        if scheduler.chance(mood.foreign) { return .foreign }
        let isSilent = scheduler.chance(mood.silent)
        if isSilent, scheduler.chance(50) { return .silence(late: nil) }
        let isCut = scheduler.chance(mood.cut)
        if isCut, scheduler.chance(50) { return .unknown }
        arrives()
        let fate = judge(push, number, device, mood)
        await scheduler.pause(mood.latency)
        if isSilent {
            guard case .answered(let outcome, let reason) = fate else { return .silence(late: nil) }
            return .silence(late: (outcome, reason))
        }
        return isCut ? .unknown : fate
    }

    private func judge(_ push: OwedPush, _ number: Int, _ device: Int, _ mood: Mood) -> Fate {
        if scheduler.chance(mood.busy) {
            let after =
                scheduler.chance(mood.asking) ? scheduler.random(in: .seconds(1) ... .seconds(20)) : nil
            return .answered(.retry(after: after), .serviceUnavailable)
        }
        if scheduler.chance(mood.refusing) || poisoned.withLock({ $0 == device }) {
            return .answered(.misconfigured(.credential), .invalidProviderToken)
        }
        if isKeyBound, push.lane.environment == .sandbox {
            return .answered(.misconfigured(.credential), .badEnvironmentKeyIdInToken)
        }
        let isAPNs = push.lane.service == .apns
        if device >= Traits.MadeUp.byService {
            book.refused(number)
            return isAPNs
                ? .answered(.unregistered(since: nil), .badDeviceToken)
                : .answered(.misconfigured(.target), .senderIdMismatch)
        }
        if isAPNs, environment(of: device) != push.lane.environment {
            book.tell(device: device, "refused in \(push.lane.environment), push \(number)")
            return .answered(.unregistered(since: nil), .badDeviceToken)
        }
        if let since = gone.withLock({ $0[device] }) {
            if push.custody == .durable {
                book.unregistered(device)
                book.refused(number)
            }
            return .answered(.unregistered(since: since), .unregisteredAPNs)
        }
        guard takes(device) else { return .answered(.retry(after: nil), .tooManyRequests) }
        if push.custody == .durable { book.accepted(number, push.id, at: scheduler.now) }
        return .answered(.accepted, .ok)
    }

    /// Volatile pushes are dealt with so slowly that they overlap.
    private static let slow = Duration.milliseconds(200) ... .seconds(1)
}
