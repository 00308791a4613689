import Delivery
import PushModel

@testable import RelayProgram

/// A push service that nobody has: what one more takes of this program is this folder, and one element of a
/// list (docs/guides/adding-a-push-service.md).
enum PigeonService: HostedService {
    static let word = "pigeon"
    static let title = "Pigeon"
    static let keys = ["ring_file", "url", "greeting"]
    static let message: any ServiceMessage.Type = PigeonMessage.self
    static let sandboxKeys = ["ring_file: pigeon.ring"]

    static func read(_ cursor: MappingCursor) -> PigeonSettings? {
        if cursor.node["ring_file"] == nil { cursor.missing("ring_file", "Name the file of the ring.") }
        let coast = cursor.parsed("url", BindAddress.init, "An address such as 127.0.0.1:7000.")
        let greeting = cursor.text("greeting")?.text ?? "Coo"
        return cursor.file("ring_file", .ring).map {
            PigeonSettings(ringFile: $0, coast: coast, greeting: greeting)
        }
    }

    static func sandboxPeer(
        for apps: [AppConfiguration], on context: SandboxContext
    ) async throws -> any ServicePeer {
        try await PigeonCoast(for: apps, on: context)
    }
}

extension Hosting {
    static let withPigeons: Hosting = {
        var hosting = withToy
        hosting.services.append(PigeonService.self)
        return hosting
    }()
}

extension FileContent {
    static let ring = FileContent(words: "a pigeon's ring", inSandbox: .made) { bytes, _ in
        bytes.trimmed.reveal { $0.starts(with: "ring-".utf8) } ? nil : "A ring begins with ring-."
    }
}

extension AppConfiguration {
    var pigeon: PigeonSettings? {
        get { self[PigeonSettings.self] }
        set { self[PigeonSettings.self] = newValue }
    }
}

struct PigeonSettings: ServiceSettings {
    static let service = PushService.pigeon

    var ringFile: String
    /// `nil`: the coast that all pigeons know.
    var coast: BindAddress?
    var greeting: String

    var environments: [Environment] { [.production] }

    func outlet(of app: ConfiguredName, in instance: InstanceConfiguration) -> any ServiceOutlet {
        PigeonOutlet()
    }

    func laneSpecs(
        of app: ConfiguredName, on context: LaneContext, _ cache: inout CredentialCache
    ) throws(CommandFailure) -> [DeliveryService.LaneSpec] {
        guard let coast else {
            throw CommandFailure(.configuration, "apps.\(app.text).pigeon: Nobody knows that coast.")
        }
        let file = try CredentialCache.read(ringFile)
        let entry = try cache.entry(
            .pigeon, ringFile, stamp: CredentialCache.stamp(file, ringFile),
            identity: CredentialCache.identity(file, "")
        ) {
            file.trimmed.reveal { String(decoding: $0, as: UTF8.self) }
        }
        return lanes(of: app).map { lane in
            let provider = PigeonProvider(
                lane: lane, coast: coast, greeting: greeting, ring: entry.credential, group: context.group,
                world: context.world)
            return DeliveryService.LaneSpec(
                provider, credential: entry.shared,
                stamp: context.stamp(entry.stamp, "\(coast) \(greeting)", nil))
        }
    }

    var places: [PeerAddress] {
        [PeerAddress(host: coast?.host ?? "coast.example.org", port: coast?.port ?? 7, isPlain: true)]
    }
    var reachesNobody: Bool { coast?.isLoopback ?? false }
    static func fit(_ address: Secret) -> AddressFit {
        address.reveal { $0.starts(with: "loft-".utf8) } ? .surely : .no
    }

    func testPushes(_ order: TestPushOrder) throws(DeskRefusal) -> [TestPush] {
        let message = PigeonMessage(loft: order.token, note: Secret(TestPush.text.utf8))
        return try environments(order).map {
            TestPush(environment: $0, message: ProviderMessage(message))
        }
    }
}
