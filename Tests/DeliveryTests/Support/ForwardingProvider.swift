import PushModel
import PushTesting

/// A provider that hands pushes to another relay: all that a scripted one does, but it is not direct.
struct ForwardingProvider: Provider {
    let inner: ScriptedProvider

    var lane: LaneName { inner.lane }
    func run() async throws { try await inner.run() }
    func reserve() async throws(CancellationError) -> ScriptedProvider.Slot { try await inner.reserve() }
    func send(_ leased: LeasedPush, on slot: ScriptedProvider.Slot) async -> Answer {
        await inner.send(leased, on: slot)
    }
}
