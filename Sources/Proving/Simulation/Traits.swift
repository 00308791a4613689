import Delivery
import PushModel

/// What a seed is from its beginning to its end: how the relay is set up, and who else uses it.
struct Traits: Sendable {
    /// Names of made-up addresses, of the lane for APNs and of the other, in turn.
    enum MadeUp {
        /// The push service refuses them.
        static let byService = 10_000
        /// They cannot be addresses, so the provider refuses them itself.
        static let byUs = 20_000
    }

    var limits = Traits.small
    /// The app learns in which of Apple's environments a device is; some are in the sandbox.
    var learns = false
    /// Origins of volatile pushes that never pause for long.
    var volatileStreams = 0
    /// An origin that sends to addresses it has made up, from that number on.
    var madeUp: Int?
    /// Pushes to this device meet a fault of the credential, and no others do.
    var poisoned: Int?
    /// Pushes that come together; `nil`: a few at most.
    var burst: ClosedRange<Int>?
    /// How the push services are on good days.
    var mood = SimulatedPushService.Mood.good
    /// Some senders ask again for what they hear has failed, byte for byte, and such pushes are withdrawn.
    /// Told by the seed itself and not by a draw, so that seeds that were kept run as they did.
    let withdraws: Bool
    /// The app's key is for production alone, and the sandbox refuses it.
    var isKeyBound: Bool { learns && isKeyBoundBySeed }
    private let isKeyBoundBySeed: Bool
    /// Pushes that one phone takes in a minute; `nil`: all. Told by the seed as well.
    private(set) var phoneQuota: Int?
    /// What push services and devices do beside failing outright.
    let misbehaviours: Misbehaviour
    /// Whether some calms are followed by single calls on connections that have been idle.
    var isQuietAfterwards = false

    /// Small, so that a short run meets the bounds; the tick is coarse, so that a long one is cheap.
    private static let small: DeliveryLimits = {
        var limits = DeliveryLimits()
        limits.lanePushes = 12
        limits.claimRows = 8
        limits.tick = .milliseconds(500)
        limits.recountTicks = 10
        limits.backoffCap = .seconds(20)
        limits.settleBatch = 16
        limits.settleBacklog = 64
        limits.sweepRows = 10
        limits.unansweredAfter = .seconds(20)
        return limits
    }()

    init(_ scheduler: Scheduler, devices: Int, seed: UInt64, _ misbehaviours: Misbehaviour) {
        withdraws = [2, 4].contains(seed % 7)
        isKeyBoundBySeed = seed % 3 == 1
        self.misbehaviours = misbehaviours
        learns = scheduler.chance(30) || misbehaviours.contains(.environmentKey)
        if scheduler.chance(12) { volatileStreams = scheduler.random(in: 2...3) }
        if scheduler.chance(20) { madeUp = scheduler.chance(50) ? MadeUp.byService : MadeUp.byUs }
        if scheduler.chance(10) { poisoned = scheduler.random(in: 0...devices - 1) }
        isQuietAfterwards = scheduler.chance(8)
        if scheduler.chance(15) {
            // Often slower than a reply may wait.
            mood.latency = .milliseconds(100) ... .seconds(scheduler.random(in: 1...2))
        }
        // A push that halts its lane lets a few others go in a minute, so there are only a few.
        if poisoned == nil { drawBacklog(scheduler) }
        // Hundreds for a few phones, or a stream that never ends, would take the rest of the day.
        if seed % 8 == 3, burst == nil, volatileStreams == 0, !isQuietAfterwards { phoneQuota = 6 }
    }

    /// Backlogs are long beside the limits; seldom the limits are those of a real relay.
    private mutating func drawBacklog(_ scheduler: Scheduler) {
        switch scheduler.random(in: 1...200) {
        case 1:
            limits = DeliveryLimits()
            limits.tick = .milliseconds(500)
            burst = 700...1_500
        case 2...16:
            // A long memory, and a service that takes it a push at a time, and puts some off.
            limits.lanePushes = 192
            limits.claimRows = 50
            limits.sweepRows = 40
            limits.settleBacklog = 1_024
            mood.window = scheduler.random(in: 1...3)
            mood.latency = .milliseconds(20) ... .milliseconds(80)
            mood.busy = 35
            mood.asking = 100
            burst = 250...400
        case 17...60:
            mood.window = scheduler.random(in: 2...16)
            mood.latency = .milliseconds(20) ... .milliseconds(scheduler.random(in: 50...500))
            burst = 40...150
        default: break
        }
    }

    /// Longer than anything that owes its length to a rule may keep a push from its first attempt.
    var patience: Duration {
        // A poisoned push halts the lanes at each probe that meets it.
        if poisoned != nil {
            // Stray refusals and phones that are full take turns from the others.
            let isAlone = phoneQuota == nil && misbehaviours.isDisjoint(with: [.strayFaults, .quotas])
            return .seconds(isAlone ? 1_200 : 1_800)
        }
        // A phone that takes a few in a minute takes its time.
        if phoneQuota != nil { return .seconds(1_800) }
        // A service that puts off every third push takes its time for hundreds.
        return .seconds(mood.busy > 0 ? 900 : 240)
    }

    /// In a few words, for anyone who reads a failing seed.
    var words: String {
        var words: [String] = []
        if learns { words.append("learns") }
        if volatileStreams > 0 { words.append("volatile") }
        if let madeUp { words.append(madeUp == MadeUp.byUs ? "malformed" : "made-up") }
        if poisoned != nil { words.append("poisoned") }
        if withdraws { words.append("withdraws") }
        if isKeyBound { words.append("bound key") }
        if phoneQuota != nil { words.append("phone quota") }
        words += misbehaviours.words
        if let burst { words.append("burst of \(burst.lowerBound)") }
        if isQuietAfterwards { words.append("quiet") }
        return words.isEmpty ? "plain" : words.joined(separator: ", ")
    }
}
