import NIOCore
import PushModel
import Simulators
import Synchronization

/// A trial under way: what its callers, its collector and whoever does harm share.
final class TrialRun: Sendable {
    typealias Part = @Sendable () async throws -> Void

    /// Where one relay is asked.
    struct Target: Sendable {
        var number: Int
        var address: RelayProcess.Address
    }

    private struct State {
        var ledger = TrialLedger()
        /// `nil` while a relay is down.
        var addresses: [RelayProcess.Address?]
        /// Until when a relay that did not answer is left alone, as a load balancer would.
        var avoided: [ContinuousClock.Instant?]
        /// Most resident bytes of each relay, over all its lives.
        var peaks: [Int]
        var isEnding = false
    }

    let random: TrialRandom
    let world: World
    private let state: Mutex<State>

    /// How long a relay that failed is not asked, unless all have.
    private static let avoidance = Duration.seconds(2)

    /// - Parameter world: `nil`: the machine's, with chance of the seed.
    init(seed: UInt64, relays: Int = 1, world: World? = nil) {
        random = TrialRandom(seed: seed)
        self.world = world ?? random.world()
        state = Mutex(
            State(
                addresses: Array(repeating: nil, count: relays),
                avoided: Array(repeating: nil, count: relays), peaks: Array(repeating: 0, count: relays)))
    }

    func ledger<Result: Sendable>(_ body: (inout TrialLedger) -> Result) -> Result {
        state.withLock { body(&$0.ledger) }
    }

    var isEnding: Bool { state.withLock(\.isEnding) }

    func pause(milliseconds: Int) async throws { try await pause(.milliseconds(milliseconds)) }
    func pause(_ span: Duration) async throws { try await world.sleep(world.instant() + span) }

    // MARK: Relays

    func address(of relay: Int) -> RelayProcess.Address? { state.withLock { $0.addresses[relay] } }
    func set(_ address: RelayProcess.Address?, of relay: Int) {
        state.withLock { $0.addresses[relay] = address }
    }

    /// Of the first relay.
    var address: RelayProcess.Address? {
        get { address(of: 0) }
        set { set(newValue, of: 0) }
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
        return targets.count > 1 ? targets[random.below(targets.count)] : targets.first
    }

    func avoid(_ target: Target) {
        let until = world.instant() + Self.avoidance
        state.withLock { $0.avoided[target.number] = until }
    }

    /// Looks at the memory of the relays until cancelled.
    func weigh() async throws {
        while true {
            for number in peaks.indices {
                guard let pid = address(of: number)?.pid, let usage = ProcessUsage.of(pid) else { continue }
                state.withLock { $0.peaks[number] = max($0.peaks[number], usage.residentBytes) }
            }
            try await pause(milliseconds: 250)
        }
    }

    var peaks: [Int] { state.withLock(\.peaks) }

    // MARK: The course of a trial

    /// Callers ask while harm is done; when it is done, each carries its last request to the answer.
    ///
    /// - Parameters:
    ///   - watchers: go on beside all of it, until cancelled.
    ///   - after: what comes when no caller asks any more.
    func live<Result: Sendable>(
        watchers: [Part], callers: [Part], harm: () async throws -> Void,
        after: () async throws -> Result
    ) async throws -> Result {
        try await withThrowingTaskGroup(of: Void.self) { watching in
            for watcher in watchers { watching.addTask { try await watcher() } }
            try await withThrowingTaskGroup(of: Void.self) { asking in
                for caller in callers { asking.addTask { try await caller() } }
                try await harm()
                state.withLock { $0.isEnding = true }
                try await asking.waitForAll()
            }
            let result = try await after()
            watching.cancelAll()
            // They end by being cancelled, and in no other way.
            do { try await watching.waitForAll() } catch is CancellationError {}
            return result
        }
    }

    /// Callers of the same manners.
    ///
    /// - Parameter asks: in which protocol, and as whom, by the caller's number.
    func callers(
        _ count: Int, _ manners: TrialCaller.Manners, _ group: any EventLoopGroup,
        _ asks: (Int) -> (any LoadProtocol, any LoadOrigin)
    ) -> [Part] {
        (0..<count).map { number in
            let ((load, origin), eventLoop) = (asks(number), group.next())
            return {
                var caller = TrialCaller(self, load, origin, manners, eventLoop)
                try await caller.ask()
            }
        }
    }

    /// One request for some of an origin's devices, booked before anybody is asked.
    ///
    /// - Parameter mostItems: pushes in it, one to this many.
    func makeRequest(
        _ load: any LoadProtocol, _ origin: any LoadOrigin, mostItems: Int
    ) throws -> (bytes: ByteBuffer, marks: [String]) {
        let devices = (0...random.below(mostItems)).map { _ in
            origin.devices[random.below(origin.devices.count)]
        }
        let call = try origin.notify(devices, contentBytes: 64 + random.below(300))
        ledger { $0.asked(call.marks, of: load.name) }
        return (ByteBuffer((call.head, call.body)), call.marks)
    }

    /// Moves what arrives into the ledgers until cancelled.
    ///
    /// - Parameters:
    ///   - services: of each relay, those that it alone sends to.
    ///   - loads: the protocols whose pushes are counted here.
    ///   - companions: those that count for themselves.
    func collect(
        _ services: [ChaosService], _ loads: [any LoadProtocol], _ companions: [any ChaosCompanion] = []
    ) async throws {
        var places = services.map { _ in ChaosService.Place() }
        while true {
            var isIdle = true
            for (number, service) in services.enumerated() {
                let (apple, google) = service.deliveries(behind: &places[number])
                if apple.isEmpty, google.isEmpty { continue }
                isIdle = false
                // A wake may carry nothing: it is known by its device.
                func isLoads(_ delivery: Delivery) -> Bool {
                    !companions.contains { $0.delivered(delivery) }
                }
                // FCM names messages itself: its names say nothing about ours.
                let named = apple.filter(isLoads).map { ($0, $0.id) }
                let ours = named + google.filter(isLoads).map { ($0, "") }
                ledger { ledger in
                    for (delivery, id) in ours {
                        ledger.arrived(
                            loads.mark(in: delivery.body),
                            TrialArrival(relay: number, id: id, at: delivery.receivedAt))
                    }
                }
            }
            if isIdle { try await pause(milliseconds: 10) }
        }
    }

    /// Waits until everything that a dead relay had sent has been read, so that what arrives later is its
    /// successor's.
    ///
    /// - Throws: `BenchError(.processFault)` when it is not read in the time that a start may take: what came
    ///   later would be counted as the successor's.
    func untilQuiet(_ service: ChaosService) async throws {
        let until = world.instant() + RelayProcess.startSpan
        while service.openConnections > 0 {
            guard world.instant() < until else { throw BenchError(.processFault) }
            try await pause(milliseconds: 1)
        }
    }

    /// Waits until everything promised has arrived.
    ///
    /// - Returns: how long that took; `nil` when something is still missing at the end of the span.
    func drain(within span: Duration) async throws -> Duration? {
        let began = world.instant()
        while ledger({ $0.missing }) > 0 {
            guard world.instant() - began < span else { return nil }
            try await pause(milliseconds: 50)
        }
        let drained = world.instant() - began
        // A double that is still under way would be seen now.
        try await pause(milliseconds: 500)
        return drained
    }

    /// Waits until something holds, or the span is over.
    func wait(within span: Duration, until holds: () async throws -> Bool) async throws {
        let end = world.instant() + span
        while try await !holds(), world.instant() < end { try await pause(milliseconds: 500) }
    }
}
