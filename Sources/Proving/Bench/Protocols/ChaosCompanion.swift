import NIOCore
import PushModel
import Simulators

/// A protocol that goes beside the load of a chaos trial: it has an instance at the same relay, and books and
/// judges by rules of its own.
protocol ChaosCompanion: ChaosPublishing {
    /// What the trial's help says of it.
    static var discussion: String { get }

    /// Starts what the instance needs outside the relay.
    init(_ setting: ChaosSetting) async throws

    var instance: StagedInstance { get }

    /// Follows what the relay under trial does, until cancelled.
    func watch() async

    /// False when the delivery is none of its own.
    func delivered(_ delivery: Delivery) -> Bool

    /// Writes what was found, in the end.
    ///
    /// - Parameter directory: the trial's, where its relay wrote.
    /// - Returns: whether nothing was violated.
    func report(to report: inout BenchReport, directory: String) -> Bool

    func stop() async
}

/// What such a protocol does while the relay is killed.
protocol ChaosPublishing: Sendable {
    /// Makes traffic until the trial is ending.
    func publish(_ trial: ChaosTrial) async throws

    /// Waits until the relay under trial can be reached.
    func untilListening(_ trial: ChaosTrial) async throws

    /// The relay is gone.
    func killed(_ trial: ChaosTrial) async throws

    /// Makes what must arrive at the last relay, and waits until it has.
    func finish(_ trial: ChaosTrial) async throws
}

/// What stands around a trial.
struct ChaosSetting: Sendable {
    let service: ChaosService
    let authority: CertificateAuthority
    let bundle: String
    let world: World
    let group: any EventLoopGroup
}
