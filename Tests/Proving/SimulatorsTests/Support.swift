import NIOCore
import NIOPosix
import PushModel
import PushTesting

@testable import Simulators

/// A simulated APNs with one key and one device, and what a client needs to reach it.
struct APNsStage {
    static let token = String(repeating: "a1", count: 32)
    static let topic = "org.acme.chat"

    let clock = ManualClock()
    let key = APNsKey()
    let authority: CertificateAuthority
    let simulator: APNsSimulator
    let port: Int
    let group = MultiThreadedEventLoopGroup.singleton

    init(
        environment: APNsEnvironment = .production,
        _ change: (inout APNsSimulatorConfiguration) -> Void = { _ in }
    ) async throws {
        authority = try CertificateAuthority()
        var configuration = APNsSimulatorConfiguration(environment: environment, keys: [key.registration()])
        change(&configuration)
        let clock = clock
        simulator = try APNsSimulator(
            configuration, authority: authority, eventLoopGroup: group, now: { clock.now })
        simulator.register(Self.token, as: APNsDevice(topics: [Self.topic]))
        port = try await simulator.start()
    }

    func client(ignoresLimit: Bool = false) async throws -> RawHTTP2Client {
        try await RawHTTP2Client.connect(
            port: port, trusting: authority, group: group, ignoresLimit: ignoresLimit)
    }

    /// A client, what it sees, and the fields of a request.
    func watched(
        ignoresLimit: Bool = false
    ) async throws -> (client: RawHTTP2Client, watch: Sightings, fields: [(String, String)]) {
        let client = try await client(ignoresLimit: ignoresLimit)
        return (client, Sightings(client), try fields())
    }

    func fields(_ others: [(String, String)] = [], token: String = APNsStage.token) throws -> [(
        String, String
    )] {
        [
            (":method", "POST"), (":scheme", "https"), (":authority", "localhost"),
            (":path", "/3/device/" + token),
            ("authorization", "bearer " + (try key.providerToken(issuedAtSeconds: 1_800_000_000))),
            ("apns-topic", Self.topic), ("apns-push-type", "alert")
        ] + others
    }

    static func id(_ number: Int) -> String {
        PushID(Digest16(high: 0x0190_0000_0000_7000, low: 0x8000_0000_0000_0000 | UInt64(number))).text
    }

    static let body = Array(#"{"aps":{"alert":"x"}}"#.utf8)
}
