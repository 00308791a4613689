import NIOPosix
import PushModel
import Simulators

/// A relay of a measurement's own with one Zulip instance, as a process.
struct OwnZulipRelay {
    let process: RelayProcess
    let address: RelayProcess.Address
    let bundle: String

    /// A server that knows the relay, and none of whose devices is registered.
    func makeOrigin(_ world: World) -> ZulipLoadOrigin {
        ZulipLoadOrigin(
            host: "\(address.host):\(address.port)", publicKey: process.publicKey, bundle: bundle,
            world: world)
    }

    /// Lets `body` use one, and ends it with all that stands beside it.
    ///
    /// - Parameters:
    ///   - executable: the `sealbell` that is run: absolute path.
    ///   - directory: one of the measurement's own, which is there.
    ///   - sink: a push service that stands already; `nil`: a simulated APNs in this process.
    static func run<Result>(
        executable: String, directory: String, sink: FormsBench.Sink? = nil, world: World,
        _ body: (OwnZulipRelay) async throws -> Result
    ) async throws -> Result {
        let (key, authority) = (APNsKey(), try CertificateAuthority())
        var configuration = APNsSimulatorConfiguration(environment: .production, keys: [key.registration()])
        configuration.keptDeliveries = 16
        let apns = try APNsSimulator(
            configuration, authority: authority, eventLoopGroup: MultiThreadedEventLoopGroup.singleton)
        let simulated = "https://127.0.0.1:\(try await apns.start())"
        var plan = RelayPlan(
            executable: executable, directory: directory, apnsURL: sink?.url ?? simulated,
            authority: sink?.authority ?? authority.certificatePEM, apnsKey: key.privateKeyPEM)
        (plan.team, plan.keyID, plan.loads) = (key.team, key.keyID, [ZulipLoad()])
        let (process, bundle) = (try RelayProcess(plan, world: world), plan.bundle)
        return try await ending {
            await process.kill()
            await apns.stop()
        } after: {
            try process.launch()
            let address = try await process.ready(within: .seconds(60))
            let result = try await body(
                OwnZulipRelay(process: process, address: address, bundle: bundle))
            _ = await process.stop(within: .seconds(30))
            return result
        }
    }
}
