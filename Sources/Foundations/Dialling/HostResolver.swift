package import PushModel
import Synchronization

/// Turns a host name into addresses, best first.
package protocol HostResolver: Sendable {
    /// Begins to look up; the answer may come on any thread, before this returns or later.
    func begin(_ lookUp: LookUp)
    /// The caller no longer waits for it.
    func leave(_ lookUp: LookUp)
}

extension HostResolver {
    package func leave(_ lookUp: LookUp) {}

    /// - Throws: `.unknownHost` when there is no such name, `.unreachable` when no name server answers.
    package func resolve(_ host: String) async throws(WebError) -> [IPAddress] {
        let answer = FirstAnswer<[IPAddress]>()
        let lookUp = LookUp(host) { answer.give($0) }
        let addresses = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                answer.wait(continuation)
                begin(lookUp)
            }
        } onCancel: {
            lookUp.cancel()
            leave(lookUp)
            answer.give([])
        }
        guard !addresses.isEmpty else { throw WebError(lookUp.isUnknown ? .unknownHost : .unreachable) }
        return addresses
    }
}

/// One question for the addresses of a name. It is answered once; further answers are dropped.
package final class LookUp: Sendable {
    private struct State {
        /// `nil`: it has been answered, or nobody waits for it.
        var tell: (@Sendable ([IPAddress]) -> Void)?
        var isUnknown = false
    }

    package let host: String
    private let state: Mutex<State>

    /// - Parameter tell: called with the addresses; with none if there are none or no name server answers.
    package init(_ host: String, _ tell: @escaping @Sendable ([IPAddress]) -> Void) {
        self.host = host
        state = Mutex(State(tell: tell))
    }

    /// Whether it is too late for an answer.
    package var isOver: Bool { state.withLock { $0.tell == nil } }

    /// Whether the answer was that there is no such name.
    package var isUnknown: Bool { state.withLock(\.isUnknown) }

    package func answer(_ addresses: [IPAddress]) { take()?(addresses) }

    /// There is no such name.
    package func answerUnknown() {
        let tell = state.withLock { state in
            if state.tell != nil { state.isUnknown = true }
            defer { state.tell = nil }
            return state.tell
        }
        tell?([])
    }

    package func cancel() { _ = take() }

    private func take() -> (@Sendable ([IPAddress]) -> Void)? {
        state.withLock { state in
            defer { state.tell = nil }
            return state.tell
        }
    }
}
