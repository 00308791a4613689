package import PushModel

/// All push services of a test in one value: they accept everything, unless the test says otherwise, and
/// remember it in order.
package final class StubServices: Sendable {
    private struct State {
        var answers: [String: @Sendable (OwedPush) -> Answer] = [:]
        var sent: [OwedPush] = []
        var isHeld = false
    }

    private let state = Noted(State())
    package let now: @Sendable () -> UnixTime

    /// - Parameter now: the time at which, according to the answer, its request was sent.
    package init(now: @escaping @Sendable () -> UnixTime) { self.now = now }

    /// What was sent, in order.
    package var sent: [OwedPush] { state.value.sent }

    /// Returns once this many requests have arrived.
    package func sent(atLeast count: Int, file: String = #fileID, line: Int = #line) async {
        await state.until(for: "request \(count)", file: file, line: line) { $0.sent.count >= count }
    }

    /// Sets the answer to pushes to this address, in either spelling; `nil`: accepted, as at first.
    package func answer(_ address: String, by answer: (@Sendable (OwedPush) -> Answer)?) {
        let name = Self.name(of: APNsMessage.canonical(Secret(address.utf8)))
        state.change { $0.answers[name] = answer }
    }

    /// From now on requests are not answered before ``release()``.
    package func hold() { state.change { $0.isHeld = true } }
    package func release() { state.change { $0.isHeld = false } }

    /// A lane's provider for them, with room for any number of requests.
    package func provider(_ lane: LaneName) -> ScriptedProvider {
        ScriptedProvider(lane, slots: .max) { await self.take($0) }
    }

    private static func name(of address: Secret) -> String {
        APNsMessage.canonical(address).reveal { String(decoding: $0, as: UTF8.self) }
    }

    private func take(_ push: OwedPush) async -> Answer {
        state.change { $0.sent.append(push) }
        await state.until(for: "a release of what is held") { !$0.isHeld }
        let answer = state.value.answers[Self.name(of: push.message.address)]
        return answer?(push) ?? Answer(.accepted, .ok, sentAt: now())
    }
}
