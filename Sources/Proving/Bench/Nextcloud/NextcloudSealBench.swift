import Crypto
import CryptoExtras
import NextcloudPush
package import PushModel
import RSAKeys

/// What sealing a notification costs an origin for each device, beside BoringSSL's own RSA-2048 encryption
/// and signature with nothing around them.
package enum NextcloudSealBench: BesidePrimitives {
    /// Devices sealed to for each bare encryption and signature.
    static let goal = 0.9
    private static let devices = 100

    package static let name = "nextcloud-seals"
    package static let abstract = "Measures what an origin's Nextcloud pushes cost beside bare RSA-2048."
    package static let discussion = """
        In one process, turn by turn, by its CPU time: BoringSSL's own encryption and signature for 100 \
        devices (bare), and the origin's way from a notification to the entries of its calls. Passed \
        means: at least 0.9 times the bare rate.
        """
    package static let rounds = (usual: 15, span: "about half a second")

    /// - Returns: whether devices are sealed to at ``goal`` × the library's rate or faster.
    package static func measure(
        _ rounds: Int, _ world: World, _ report: inout BenchReport
    ) async throws -> Bool {
        let now = world.now()
        let user = NextcloudUser(cloudID: "ada@cloud.example", key: try .generate())
        let keys = try (0..<devices).map { _ in try RSAPrivateKey.generate().publicKey }
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
        let times = try await Rounds(
            rounds,
            [
                Contender("bare", batch: devices) { _ in
                    for key in bareKeys {
                        let sealed = try key.encrypt(plain, padding: .PKCS1_OAEP)
                        _ = try bareSigner.signature(
                            for: SHA512.hash(data: sealed), padding: .insecurePKCS1v1_5)
                    }
                },
                Contender("ours", batch: devices) { _ in
                    let sealing = try origin.notify(notification, to: audience, of: user)
                    guard sealing.entries.count == devices else { throw BenchError(.setUpRefused) }
                }
            ])
        let ratio = times["bare"] / times["ours"]
        report.add("devices", devices)
        report.add("bare", perSecond: times["bare"])
        report.add("sealed", perSecond: times["ours"])
        report.add("to_bare", ratio: ratio)
        report.add("goal", goal, digits: 1)
        return ratio.median >= goal
    }
}
