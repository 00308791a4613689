package import PushModel

/// A user of a realm. Of keys and passwords the store has digests alone; both have 128 random bits or more,
/// so that no slow hash is needed.
package struct OriginUser: Sendable {
    /// Unique over all realms, ``OriginPeople/isName(_:)``.
    package let name: String
    /// From 1 over all users.
    package let id: Int64
    /// Of the realm.
    package let realm: String
    package let createdAt: UnixTime
    /// SHA-256 of each credential, with what it opens.
    package internal(set) var credentials: [Credential]

    package struct Credential: Sendable {
        package enum Kind: UInt8, Sendable { case apiKey = 1, appPassword = 2 }
        package let kind: Kind
        /// By which a client's registrations are known: 1 to 2⁵³ − 1, drawn.
        package let id: Int64
        let digest: Secret
    }

    /// App passwords of one user: one for each client.
    static let appPasswords = 32

    private static let format: UInt8 = 0x62

    var body: Secret {
        let size =
            2 * StoredSize.byte + 2 * StoredSize.word + StoredSize.of(name) + StoredSize.of(realm)
            + credentials.reduce(0) { $0 + StoredSize.byte + StoredSize.word + StoredSize.of($1.digest) }
        return Secret(stored: size) { writer in
            writer.put(Self.format)
            writer.put(name)
            writer.put(Int64?.some(id))
            writer.put(realm)
            writer.put(Int64?.some(createdAt.milliseconds))
            for credential in credentials {
                writer.put(credential.kind.rawValue)
                writer.put(Int64?.some(credential.id))
                writer.put(credential.digest)
            }
        }
    }

    /// - Returns: `nil` for a body that ``body`` did not write.
    init?(body: Secret) {
        let read: OriginUser? = body.reveal { bytes in
            var reader = StoredReader(bytes)
            guard reader.byte() == Self.format, let name = reader.text(),
                let id = reader.optionalWord() ?? nil, let realm = reader.text(),
                let createdAt = reader.optionalWord() ?? nil
            else { return nil }
            var user = OriginUser(
                name: name, id: id, realm: realm, createdAt: UnixTime(milliseconds: createdAt),
                credentials: [])
            while !reader.isAtEnd {
                guard let kind = reader.byte().flatMap({ Credential.Kind(rawValue: $0) }),
                    let id = reader.optionalWord() ?? nil, let digest = reader.secret()
                else { return nil }
                user.credentials.append(Credential(kind: kind, id: id, digest: digest))
            }
            return user
        }
        guard let read else { return nil }
        self = read
    }

    init(name: String, id: Int64, realm: String, createdAt: UnixTime, credentials: [Credential]) {
        self.name = name
        self.id = id
        self.realm = realm
        self.createdAt = createdAt
        self.credentials = credentials
    }
}

extension Secret {
    /// A body of stored fields, `size` bytes at most.
    init(stored size: Int, _ write: (inout StoredWriter) -> Void) {
        var bytes = [UInt8](repeating: 0, count: size)
        defer { bytes.withUnsafeMutableBytes { wipe($0) } }
        let count = bytes.withUnsafeMutableBytes { raw in
            var writer = StoredWriter(raw)
            write(&writer)
            return writer.count
        }
        self.init(bytes[..<count])
    }
}
