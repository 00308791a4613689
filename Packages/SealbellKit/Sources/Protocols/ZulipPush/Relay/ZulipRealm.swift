import Primitives
package import PushModel
package import WireFormats

/// What the relay remembers of one realm: whose it is.
package struct ZulipRealm: Sendable, Hashable {
    /// How the realm's devices are named.
    package enum Naming: UInt8, Sendable, Hashable {
        /// By the realm alone: realms that were known before ``byServer`` was.
        case byRealm = 1
        /// By the realm and the server that has it, so that another server that takes the realm over reaches
        /// none of them (decision 0044).
        case byServer = 2
    }

    package let id: UUIDText
    package let server: UUIDText
    package let naming: Naming
    /// The server no longer reports it. It keeps its devices.
    package var isLocallyDeleted: Bool

    package init(
        id: UUIDText, server: UUIDText, isLocallyDeleted: Bool, naming: Naming = .byServer
    ) {
        self.id = id
        self.server = server
        self.naming = naming
        self.isLocallyDeleted = isLocallyDeleted
    }

    /// The realm in the hands of its server.
    package var tenancy: ZulipTenancy { ZulipTenancy(id, of: server, naming) }

    /// Format 1 (devices named by the realm) or 2 (by realm and server), realm, server, deleted (0 or 1).
    package var body: Secret {
        var writer = BodyWriter(format: naming.rawValue)
        writer.fixed(id.bytes)
        writer.fixed(server.bytes)
        writer.byte(isLocallyDeleted ? 1 : 0)
        return writer.take()
    }

    package init?(body: Secret) {
        let realm = body.reveal { bytes -> ZulipRealm? in
            guard let naming = bytes.first.flatMap(Naming.init(rawValue:)),
                var reader = BodyReader(bytes, format: naming.rawValue),
                let id = reader.fixed(16).flatMap({ UUIDText(bytes: $0) }),
                let server = reader.fixed(16).flatMap({ UUIDText(bytes: $0) }), let deleted = reader.byte(),
                reader.isAtEnd
            else { return nil }
            return ZulipRealm(id: id, server: server, isLocallyDeleted: deleted == 1, naming: naming)
        }
        guard let realm else { return nil }
        self = realm
    }

    package func record(_ keys: ZulipRecordNames, now: UnixTime) -> Record {
        Record(key: keys.realm(id), owner: keys.server(server), touchedAt: now, body: body)
    }

    /// What is left for ``ZulipServers/sweep()`` to find when another server takes the realm over. It hangs
    /// on the note that there is something to sweep, not on the server, which may have realms still.
    package func vacancy(_ keys: ZulipRecordNames, now: UnixTime) -> Record {
        Record(key: keys.vacated(self), owner: keys.leaving(server), touchedAt: now, body: body)
    }
}

/// A realm in the hands of one server: what its devices are named by.
package struct ZulipTenancy: Sendable, Hashable {
    package let naming: ZulipRealm.Naming
    /// 16 bytes, written as a UUID is: the realm's own, or a digest of realm and server.
    let id: UUIDText

    package init(_ realm: UUIDText, of server: UUIDText, _ naming: ZulipRealm.Naming) {
        self.naming = naming
        switch naming {
        case .byRealm: id = realm
        case .byServer:
            let digest = SHA256.hash(realm.bytes + server.bytes)
            func word(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
            id = UUIDText(high: word(digest[..<8]), low: word(digest[8..<16]))
        }
    }
}
