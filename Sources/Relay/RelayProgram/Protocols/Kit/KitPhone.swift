import PushModel
import SealbellKit

/// What is asked what is due, and is told what came of it: a device, or a sender that is an app itself.
protocol KitTalker {
    mutating func due(at now: UnixTime) -> [Call]
    mutating func answered(_ answer: CallAnswer, to call: Call, at now: UnixTime)
    var kept: Secret { get }
}

/// A device at work, as it is in every app: it says what is due, that is kept, done and answered, and kept
/// again, until nothing is due.
///
/// It belongs to the task or the actor that made it. While it waits for an answer that actor may change the
/// device.
final class KitPhone<Device: KitTalker> {
    var device: Device
    private let world: World
    private let ahead: Duration

    /// - Parameter ahead: what is due in so long counts as due.
    init(_ device: Device, _ world: World, ahead: Duration = .zero) {
        (self.device, self.world, self.ahead) = (device, world, ahead)
    }

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
            let calls = device.due(at: world.now() + ahead)
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
