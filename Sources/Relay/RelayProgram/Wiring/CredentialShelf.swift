import APNs
import Delivery
import FCM
import HTTP2Client
import NIOCore
import PushModel

/// Credentials read from their files: one for each APNs key and each service account, whatever number of
/// lanes it stands behind (docs/architecture.md).
struct CredentialShelf {
    struct APNsEntry {
        let credential: APNsCredential
        let shared: Credential
        /// Changes with the key.
        let stamp: Int
    }

    struct FCMEntry {
        let credential: FCMCredential
        let shared: Credential
        let stamp: Int
    }

    private static let limitBytes = 1 << 20
    private var apns: [String: APNsEntry] = [:]
    private var fcm: [String: FCMEntry] = [:]
    /// What stood before a reload: a key that has not changed keeps its token, for Apple counts tokens.
    private let before: (apns: [String: APNsEntry], fcm: [String: FCMEntry])
    private let world: World
    private let journal: Journal
    private let web: @Sendable (FCMAppConfiguration) -> any WebFetch
    private let proxy: OutgoingProxy?

    init(
        replacing old: CredentialShelf?, proxy: OutgoingProxy?, world: World, journal: Journal,
        web: @escaping @Sendable (FCMAppConfiguration) -> any WebFetch
    ) {
        before = (old?.apns ?? [:], old?.fcm ?? [:])
        self.world = world
        self.journal = journal
        self.web = web
        self.proxy = proxy
    }

    /// - Throws: `CommandFailure` that names the file.
    mutating func entry(_ app: APNsAppConfiguration) throws(CommandFailure) -> APNsEntry {
        let file = try Self.read(app.keyFile)
        let name = "\(app.team)/\(app.keyID)"
        let stamp = Self.stamp(file, name)
        if let standing = apns[name] ?? before.apns[name], standing.stamp == stamp {
            apns[name] = standing
            return standing
        }
        do throws(APNsError) {
            let credential = try APNsCredential(team: app.team, keyID: app.keyID, key: file, world: world)
            let entry = APNsEntry(credential: credential, shared: Credential(), stamp: stamp)
            apns[name] = entry
            return entry
        } catch {
            throw CommandFailure(.configuration, "\(app.keyFile): \(error.sentence)")
        }
    }

    mutating func entry(_ app: FCMAppConfiguration) throws(CommandFailure) -> FCMEntry {
        let file = try Self.read(app.serviceAccountFile)
        let name = "\(app.serviceAccountFile) \(app.tokenURL?.text ?? "")"
        // Where tokens are asked for, and by which way, is as much part of it as the key.
        let authority = try app.caFile.map { (file) throws(CommandFailure) in try Self.read(file) }
        let stamp = Self.stamp(file, name, authority, proxy)
        if let standing = fcm[name] ?? before.fcm[name], standing.stamp == stamp {
            fcm[name] = standing
            return standing
        }
        do throws(FCMError) {
            let account = try FCM.ServiceAccount(file: file, tokenURL: app.tokenURL?.text)
            let credential = FCMCredential(account: account, fetch: web(app), world: world, journal: journal)
            let entry = FCMEntry(credential: credential, shared: Credential(), stamp: stamp)
            fcm[name] = entry
            return entry
        } catch {
            throw CommandFailure(.configuration, "\(app.serviceAccountFile): \(error.sentence)")
        }
    }

    static func read(_ path: String) throws(CommandFailure) -> Secret {
        do throws(FileFault) {
            return try readSecret(path, limitBytes: limitBytes)
        } catch {
            throw CommandFailure(.configuration, "\(path): \(error.sentence)")
        }
    }

    /// A number of this process alone: `Hasher` is seeded anew at each start.
    private static func stamp(
        _ file: Secret, _ name: String, _ authority: Secret? = nil, _ proxy: OutgoingProxy? = nil
    ) -> Int {
        var hasher = Hasher()
        hasher.combine(name)
        hasher.combine(proxy)
        authority?.reveal { hasher.combine(bytes: $0) }
        file.reveal { hasher.combine(bytes: $0) }
        return hasher.finalize()
    }
}
