import Delivery
import Primitives
import PushModel

/// Credentials read from their files: one for each, whatever number of lanes it stands behind
/// (docs/architecture.md). Push services say what makes one (``ServiceSettings/laneSpecs(of:on:_:)``).
struct CredentialCache {
    struct Entry<Value: Sendable>: Sendable {
        let credential: Value
        let shared: Credential
        /// Changes with all that the credential is made of.
        let stamp: Int
        /// A digest of the credential itself, the same in every process.
        let identity: Secret
    }

    private struct Key: Hashable {
        let service: PushService
        let name: String
    }

    private static let limitBytes = 1 << 20
    private var entries: [Key: any Sendable] = [:]
    /// Those that take the place of others of the same name, and those that are new beside others.
    private(set) var renewed: [(service: PushService, name: String)] = []
    /// What stood before a reload: a credential that has not changed keeps its token, for services count
    /// tokens.
    private let before: [Key: any Sendable]
    let world: World
    let journal: Journal
    /// A way to fetch tokens, which trusts the authority of a file too.
    let web: @Sendable (String?) -> any WebFetch
    let proxy: OutgoingProxy?

    init(
        replacing old: CredentialCache?, proxy: OutgoingProxy?, world: World, journal: Journal,
        web: @escaping @Sendable (String?) -> any WebFetch
    ) {
        before = old?.entries ?? [:]
        self.world = world
        self.journal = journal
        self.web = web
        self.proxy = proxy
    }

    /// The credential of a service that has that name and that stamp: the one that stands, else a new one.
    mutating func entry<Value: Sendable>(
        _ service: PushService, _ name: String, stamp: Int, identity: Secret,
        make: () throws(CommandFailure) -> Value
    ) throws(CommandFailure) -> Entry<Value> {
        let key = Key(service: service, name: name)
        if let kept = (entries[key] ?? before[key]) as? Entry<Value>, kept.stamp == stamp {
            entries[key] = kept
            return kept
        }
        let entry = Entry(credential: try make(), shared: Credential(), stamp: stamp, identity: identity)
        entries[key] = entry
        if !before.isEmpty { renewed.append((service, name)) }
        return entry
    }

    /// - Parameter name: what the credential is beside its file: ids, and where its tokens are asked for.
    static func identity(_ file: Secret, _ name: String) -> Secret {
        file.reveal { file in
            Array(name.utf8).withUnsafeBytes { Secret(SHA256.hash(joining: [$0, file])) }
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
    static func stamp(
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
