import Crypto
import CryptoExtras
import NextcloudPush
package import PushModel
import RSAKeys

/// Measures what sealing a notification costs an origin for each device, beside BoringSSL's own RSA-2048
/// encryption and signature with nothing around them: in one process, turn by turn, by its CPU time. A ratio
/// is the median of the ratios of single rounds.
package struct NextcloudSealBench: Sendable {
    /// Devices sealed to for each bare encryption and signature.
    static let goal = 0.9
    private static let devices = 100

    private let rounds: Int
    private let world: World

    /// - Parameter rounds: 3 to 1,000.
    package init(rounds: Int, world: World) {
        self.rounds = rounds
        self.world = world
    }

    /// - Returns: the report, and whether devices are sealed to at ``goal`` × the library's rate or faster.
    /// - Throws: `BenchError(.badPlan)` for a bad number of rounds; what the measured code throws, which is a
    ///   bug.
    package func run() throws -> (report: BenchReport, hasPassed: Bool) {
        guard (3...NextcloudBench.roundLimit).contains(rounds) else { throw BenchError(.badPlan) }
        let now = world.now()
        let user = NextcloudUser(cloudID: "ada@cloud.example", key: try .generate())
        let keys = try (0..<Self.devices).map { _ in try RSAPrivateKey.generate().publicKey }
        let rows = keys.enumerated().map { number, key in
            RegisteredDevice(
                tokenID: Int64(number + 1), deviceIdentifier: "device \(number)", devicePublicKey: key.pem,
                pushTokenHash: "", proxyServer: "https://proxy.example", group: .nextcloud)
        }
        let conditions = PushConditions(
            appPasswords: Dictionary(
                rows.map { ($0.tokenID, AppPasswordState(lastUsedAt: now)) }, uniquingKeysWith: { $1 }))
        let notification = NextcloudNotification(
            id: 7, app: "files", subject: "Somebody has shared “Plans for the summer” with you",
            objectType: "share", objectID: "1234")
        let audience = conditions.audience(for: notification, of: rows, now: now)
        let origin = NextcloudOrigin()
        let bareKeys = try keys.map { try _RSA.Encryption.PublicKey(pemRepresentation: $0.pem) }
        let bareSigner = try user.key.pem.reveal {
            try _RSA.Signing.PrivateKey(pemRepresentation: String(decoding: $0, as: UTF8.self))
        }
        let plain = world.randomBytes(180)
        var (ours, bare, ratios) = ([Double](), [Double](), [Double]())
        // The first round is for pages and tables.
        for round in 0...rounds {
            let library = try Self.time {
                for key in bareKeys {
                    let sealed = try key.encrypt(plain, padding: .PKCS1_OAEP)
                    _ = try bareSigner.signature(
                        for: SHA512.hash(data: sealed), padding: .insecurePKCS1v1_5)
                }
            }
            let own = try Self.time {
                let sealing = try origin.notify(notification, to: audience, of: user)
                guard sealing.entries.count == Self.devices else { throw BenchError(.setUpRefused) }
            }
            guard round > 0 else { continue }
            bare.append(library)
            ours.append(own)
            ratios.append(library / own)
        }
        var report = BenchReport()
        report.add("rounds", rounds)
        report.add("devices", Self.devices)
        report.add("bare_per_second", Int(Double(Self.devices) / Median.of(bare)))
        report.add("sealed_per_second", Int(Double(Self.devices) / Median.of(ours)))
        let ratio = Median.of(ratios)
        report.add("to_bare", ratio, digits: 3)
        report.add("goal", Self.goal, digits: 1)
        return (report, ratio >= Self.goal)
    }

    private static func time(_ work: () throws -> Void) rethrows -> Double {
        let start = ProcessUsage.own().cpu
        try work()
        return (ProcessUsage.own().cpu - start).inSeconds
    }
}
