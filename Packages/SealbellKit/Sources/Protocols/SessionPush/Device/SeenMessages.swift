import Primitives
import PushModel
import WireFormats

/// The messages that came last, by (account, namespace, hash), so that a repeat is told: several storage
/// servers report each message, and a push service may deliver one twice.
struct SeenMessages: Sendable {
    /// The oldest first; what is added beyond ``SessionLimits/rememberedMessages`` takes its place.
    private var digests: [Digest16] = []
    private var known: Set<Digest16> = []

    func contains(_ message: SessionMessage, key: Secret) -> Bool {
        known.contains(Self.digest(message, key))
    }

    mutating func insert(_ message: SessionMessage, key: Secret) { insert(Self.digest(message, key)) }

    private mutating func insert(_ digest: Digest16) {
        guard known.insert(digest).inserted else { return }
        digests.append(digest)
        if digests.count > SessionLimits.rememberedMessages { known.remove(digests.removeFirst()) }
    }

    private static func digest(_ message: SessionMessage, _ key: Secret) -> Digest16 {
        KeyedHash.digest16(key: key) { hash in
            hash.update(message.account.bytes)
            // Counts are not negative, and namespaces may be.
            hash.update(count: message.namespace.map { Int($0) + 32_768 } ?? Int.max)
            hash.update(message.hash)
        }
    }

    // MARK: keeping

    var row: [Secret] { digests.map { Secret(Hex.encode($0.bytes).utf8) } }

    /// - Returns: `nil` for a row that ``row`` has not written.
    init?(_ row: [Secret]) {
        guard row.count <= SessionLimits.rememberedMessages else { return nil }
        for text in row {
            // What is no hex was written by somebody else.
            guard let bytes = text.reveal({ try? Hex.decode($0) }), let digest = Digest16(bytes) else {
                return nil
            }
            insert(digest)
        }
    }

    init() {}
}
