import AsyncHTTPClient
import NIOCore
import Synchronization

/// Clients whose connections are kept, one for each server. The operator chooses these servers, so they are
/// few.
///
/// A client uses the address and the authorities that were found when it was made. So a client that fails to
/// reach its server is dropped, and the next call looks them up again.
final class KeptClients: Sendable {
    private struct Kept {
        let client: HTTPClient
        /// Calls that are under way on it.
        var calls = 0
    }

    private struct State {
        var byServer: [String: Kept] = [:]
        /// Let go, with calls under way: as many at most as there are such calls.
        var leaving: [ObjectIdentifier: Kept] = [:]
    }

    private let state = Mutex(State())

    deinit {
        // Nobody calls any more; idle connections end with it, and nobody waits for them.
        let clients = state.withLock { Array($0.byServer.values) + Array($0.leaving.values) }
        for kept in clients { kept.client.shutdown { _ in } }
    }

    /// Takes the client that is kept for a server; ``giveBack(_:of:isGood:)`` follows.
    ///
    /// - Returns: `nil`: there is none.
    func take(_ address: WebAddress) -> HTTPClient? {
        state.withLock { state in
            state.byServer[Self.name(address)]?.calls += 1
            return state.byServer[Self.name(address)]?.client
        }
    }

    /// - Parameter isGood: `false`: it is kept no longer, and ends with the last call under way on it.
    func giveBack(_ client: HTTPClient, of address: WebAddress, isGood: Bool) {
        let id = ObjectIdentifier(client)
        let isOver = state.withLock { state in
            let name = Self.name(address)
            if state.byServer[name]?.client === client {
                state.byServer[name]?.calls -= 1
                if !isGood { state.leaving[id] = state.byServer.removeValue(forKey: name) }
            } else {
                state.leaving[id]?.calls -= 1
            }
            guard state.leaving[id]?.calls == 0 else { return false }
            state.leaving[id] = nil
            return true
        }
        if isOver { client.shutdown { _ in } }
    }

    /// - Returns: `false`: another one is kept already, or there is no room; then the caller ends its own.
    func keep(_ client: HTTPClient, for address: WebAddress) -> Bool {
        state.withLock { state in
            let name = Self.name(address)
            guard state.byServer[name] == nil, state.byServer.count < WebLimits.keptServers else {
                return false
            }
            state.byServer[name] = Kept(client: client)
            return true
        }
    }

    private static func name(_ address: WebAddress) -> String { "\(address.host):\(address.port)" }
}
