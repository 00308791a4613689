import Dialling
import PushModel
import Synchronization

/// Where one attempt of a fetch connects to.
struct Way: Sendable, Hashable {
    /// `nil`: where the proxy thinks that the host is.
    var target: IPAddress?
    /// `nil`: there is no proxy.
    var proxy: IPAddress?
}

/// Sends a request over the first of several connections that is ready, and over no other: it is sent once,
/// however many ways are tried.
final class ConnectionGate: Sendable {
    private let winner = Mutex<Int?>(nil)

    /// The attempt whose connection may carry the request.
    var opened: Int? { winner.withLock(\.self) }

    /// Whether a connection of that attempt may carry the request. The first that asks may, and so may a
    /// later connection that replaces it.
    func opens(for attempt: Int) -> Bool {
        winner.withLock { winner in
            if winner == nil { winner = attempt }
            return winner == attempt
        }
    }
}

/// Tries the ways of one fetch beside each other, each a little after the one before (RFC 8305 §5). The
/// result of the way that carried the request is the answer, whatever it is; all others only report that
/// nothing was sent.
struct WayRace {
    /// Goes by one way. It asks before it sends, and sends nothing unless it may.
    typealias Attempt =
        @Sendable (Way, _ mayGo: @escaping @Sendable () -> Bool) async -> Result<WebAnswer, ExchangeFault>

    private enum Event: Sendable {
        case ended(Int, Result<WebAnswer, ExchangeFault>)
        /// The attempt has had its time alone.
        case due(Int)
    }

    let ways: [Way]
    let delay: Duration
    let world: World
    let gate = ConnectionGate()

    /// - Returns: the way that led to the host, and what came of it.
    func run(
        _ attempt: @escaping Attempt
    ) async -> (way: Way?, result: Result<WebAnswer, ExchangeFault>) {
        await withTaskGroup(of: Event.self) { group in
            var (begun, ended) = (0, 0)
            var fault = ExchangeFault.neverConnected
            func begin() {
                guard begun < ways.count, gate.opened == nil else { return }
                let number = begun
                begun += 1
                group.addTask { [gate, ways] in
                    .ended(number, await attempt(ways[number]) { gate.opens(for: number) })
                }
                group.addTask { [world, delay] in
                    // Ends early only when all is over.
                    try? await world.sleep(world.instant() + delay)
                    return .due(number)
                }
            }
            begin()
            defer { group.cancelAll() }
            while let event = await group.next() {
                switch event {
                case .due(let number): if number == begun - 1 { begin() }
                case .ended(let number, let result):
                    if gate.opened == number { return (ways[number], result) }
                    ended += 1
                    if case .failure(let own) = result, own != .neverConnected { fault = own }
                    begin()
                    if ended == begun, gate.opened == nil { return (nil, .failure(fault)) }
                }
            }
            return (nil, .failure(fault))
        }
    }
}
