import PushModel
import Simulators
import Synchronization

/// What has arrived at the push services for some devices since it was made. Each party to a siege has its
/// own.
final class SiegeArrivals: Sendable {
    private struct State {
        var place = ChaosService.Place()
        /// How many for each device token.
        var counts: [String: Int] = [:]
        var marks: Set<String> = []
    }

    private let service: ChaosService
    private let tokens: Set<String>
    private let mark: @Sendable ([UInt8]) -> String?
    private let world: World
    private let state = Mutex(State())

    /// - Parameters:
    ///   - tokens: of the devices that are counted.
    ///   - mark: what names a push in the body that arrived; `nil`: nothing does.
    init(
        _ service: ChaosService, of tokens: Set<String>, world: World,
        mark: @escaping @Sendable ([UInt8]) -> String? = { _ in nil }
    ) {
        (self.service, self.tokens, self.world, self.mark) = (service, tokens, world, mark)
        read()
        state.withLock { ($0.counts, $0.marks) = ([:], []) }
    }

    /// Takes in what has come.
    private func read() {
        state.withLock { state in
            // Ends: what arrives is bounded by what was asked for.
            while true {
                let (apple, google) = service.deliveries(behind: &state.place)
                if apple.isEmpty, google.isEmpty { return }
                for delivery in apple + google where tokens.contains(delivery.token) {
                    state.counts[delivery.token, default: 0] += 1
                    if let mark = mark(delivery.body) { state.marks.insert(mark) }
                }
            }
        }
    }

    /// Pushes that have arrived.
    var count: Int {
        read()
        return state.withLock { $0.counts.values.reduce(0, +) }
    }

    /// Devices that have got so many each.
    func devices(with least: Int) -> Int {
        read()
        return state.withLock { $0.counts.values.count { $0 >= least } }
    }

    func has(_ mark: String) -> Bool {
        read()
        return state.withLock { $0.marks.contains(mark) }
    }

    /// Looks again and again, until it holds or the span is over.
    ///
    /// - Returns: whether it holds.
    func wait(within span: Duration, until holds: (SiegeArrivals) -> Bool) async throws -> Bool {
        let end = world.instant() + span
        while !holds(self) {
            guard world.instant() < end else { return false }
            try await world.sleep(world.instant() + .milliseconds(4))
        }
        return true
    }
}
