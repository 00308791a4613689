import PushModel
import SealbellKit

/// A device at work, as it is in every app: it says what is due, that is kept, done and answered, and kept
/// again, until nothing is due.
///
/// It belongs to the task or the actor that made it. While it waits for an answer that actor may change the
/// device.
final class KitPhone<Device: PushDevice> {
    var device: Device
    private let world: World

    init(_ device: Device, _ world: World) { (self.device, self.world) = (device, world) }

    /// Does what is due until nothing is.
    ///
    /// - Parameter most: calls that are made at most; those behind them are not made in this run.
    /// - Parameter keep: writes ``PushDevice/kept`` to where the next run finds it.
    /// - Parameter send: carries a call out; the answers in their order, one as a rule.
    /// - Parameter take: brings the device an answer; that of an app where nothing is said.
    /// - Parameter then: what the person is told of a call, when its answers are kept.
    /// - Throws: what keeping and the parts throw; nothing more is done then.
    func work(
        atMost most: Int = .max, isolation: isolated (any Actor)? = #isolation,
        keep: (Secret) throws(CommandFailure) -> Void = { _ in },
        send: (Call) async throws(CommandFailure) -> [CallAnswer],
        take: (inout Device, CallAnswer, Call, UnixTime) throws(CommandFailure) -> Void = {
            $0.answered($1, to: $2, at: $3)
        },
        then: (Call, [CallAnswer]) throws(CommandFailure) -> Void = { (_, _) in }
    ) async throws(CommandFailure) {
        var made = 0
        while made < most {
            let calls = device.due(at: world.now())
            try keep(device.kept)
            guard !calls.isEmpty else { return }
            for call in calls.prefix(most - made) {
                let answers = try await send(call)
                for answer in answers { try take(&device, answer, call, world.now()) }
                try keep(device.kept)
                try then(call, answers)
            }
            made += calls.count
        }
    }
}
