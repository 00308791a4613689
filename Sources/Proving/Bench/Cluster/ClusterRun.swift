import PushModel
import Synchronization

/// One scenario under way: what callers, the collector and anyone who does harm share.
final class ClusterRun: Sendable {
    /// Where one relay is asked.
    struct Target: Sendable {
        var number: Int
        var address: RelayStage.Address
    }

    private struct State {
        var ledger = TrialLedger()
        /// `nil` while a relay is down.
        var addresses: [RelayStage.Address?]
        /// Until when a relay that did not answer is left alone, as a load balancer would.
        var avoided: [ContinuousClock.Instant?]
        /// Most resident bytes of each relay, over all its lives.
        var peaks: [Int]
        var isEnding = false
    }

    let plan: ClusterPlan
    let random: ChaosRandom
    let world: World
    private let state: Mutex<State>

    /// How long a relay that failed is not asked, unless all have.
    private static let avoidance = Duration.seconds(2)

    init(_ plan: ClusterPlan, random: ChaosRandom) {
        self.plan = plan
        self.random = random
        world = random.world()
        state = Mutex(
            State(
                addresses: Array(repeating: nil, count: plan.relays),
                avoided: Array(repeating: nil, count: plan.relays),
                peaks: Array(repeating: 0, count: plan.relays)))
    }

    func ledger<Result: Sendable>(_ body: (inout TrialLedger) -> Result) -> Result {
        state.withLock { body(&$0.ledger) }
    }

    var isEnding: Bool { state.withLock(\.isEnding) }
    func end() { state.withLock { $0.isEnding = true } }

    /// Mean pause of one caller between two requests.
    var spacingMilliseconds: Int {
        plan.workers * (plan.mostItems + 1) * 1000 / (2 * plan.rate)
    }

    func address(of relay: Int) -> RelayStage.Address? { state.withLock { $0.addresses[relay] } }
    func set(_ address: RelayStage.Address?, of relay: Int) {
        state.withLock { $0.addresses[relay] = address }
    }

    /// A relay that is up, one that answers if there is one; `nil` while all are down.
    func choose() -> Target? {
        let now = world.instant()
        let targets = state.withLock { state in
            let up = state.addresses.indices.filter { state.addresses[$0] != nil }
            let good = up.filter { (state.avoided[$0] ?? now) <= now }
            return (good.isEmpty ? up : good).compactMap { number in
                state.addresses[number].map { Target(number: number, address: $0) }
            }
        }
        return targets.isEmpty ? nil : targets[random.below(targets.count)]
    }

    func avoid(_ target: Target) {
        let until = world.instant() + Self.avoidance
        state.withLock { $0.avoided[target.number] = until }
    }

    /// Looks at the memory of the relays until cancelled.
    func weigh() async throws {
        while true {
            for number in 0..<plan.relays {
                guard let pid = address(of: number)?.pid, let usage = ProcessUsage.of(pid) else { continue }
                state.withLock { $0.peaks[number] = max($0.peaks[number], usage.residentBytes) }
            }
            try await pause(milliseconds: 250)
        }
    }

    var peaks: [Int] { state.withLock(\.peaks) }

    func pause(milliseconds: Int) async throws {
        try await world.sleep(world.instant() + .milliseconds(milliseconds))
    }

    func pause(_ span: Duration) async throws { try await world.sleep(world.instant() + span) }
}
