package import PushModel

/// An organization of the origin; the relay is told of it as a whole.
package struct OriginRealm: Sendable, Hashable {
    /// From 1, in the order in which they were added.
    package let id: Int64
    /// Canonical lower-case UUID.
    package let uuid: String
    /// Unique, ``OriginPeople/isName(_:)``.
    package let name: String
    /// Base of what clients know the realm by, without a slash at the end.
    package var url: String
    package let createdAt: UnixTime
    package var requiresEncryption: Bool
    /// Known only to the relay's operator: shows that a realm that moves is the same.
    package let ownerSecret: Secret

    private static let format: UInt8 = 0x61

    var body: Secret {
        let size =
            3 * StoredSize.byte + 2 * StoredSize.word + StoredSize.of(uuid) + StoredSize.of(name)
            + StoredSize.of(url) + StoredSize.of(ownerSecret)
        return Secret(stored: size) { writer in
            writer.put(Self.format)
            writer.put(Int64?.some(id))
            writer.put(uuid)
            writer.put(name)
            writer.put(url)
            writer.put(Int64?.some(createdAt.milliseconds))
            writer.put(requiresEncryption ? 1 : 0 as UInt8)
            writer.put(ownerSecret)
        }
    }

    /// - Returns: `nil` for a body that ``body`` did not write.
    init?(body: Secret) {
        let read: OriginRealm? = body.reveal { bytes in
            var reader = StoredReader(bytes)
            guard reader.byte() == Self.format, let id = reader.optionalWord() ?? nil,
                let uuid = reader.text(), let name = reader.text(), let url = reader.text(),
                let createdAt = reader.optionalWord() ?? nil, let requires = reader.byte(), requires <= 1,
                let ownerSecret = reader.secret(), reader.isAtEnd
            else { return nil }
            return OriginRealm(
                id: id, uuid: uuid, name: name, url: url, createdAt: UnixTime(milliseconds: createdAt),
                requiresEncryption: requires == 1, ownerSecret: ownerSecret)
        }
        guard let read else { return nil }
        self = read
    }

    init(
        id: Int64, uuid: String, name: String, url: String, createdAt: UnixTime, requiresEncryption: Bool,
        ownerSecret: Secret
    ) {
        self.id = id
        self.uuid = uuid
        self.name = name
        self.url = url
        self.createdAt = createdAt
        self.requiresEncryption = requiresEncryption
        self.ownerSecret = ownerSecret
    }

    package static func == (left: Self, right: Self) -> Bool { left.body == right.body }
    package func hash(into hasher: inout Hasher) { hasher.combine(uuid) }
}
