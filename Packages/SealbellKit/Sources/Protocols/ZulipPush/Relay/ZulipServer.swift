import Primitives
package import PushModel
package import WireFormats

/// What the relay stores about a server that has signed up. Of its key only the hash.
package struct ZulipServer: Sendable {
    package enum Standing: UInt8, Sendable, Hashable, CaseIterable {
        case active = 1
        /// By its own call; for good. Enough is remembered to tell it so (``remains``).
        case deactivated = 2
        /// By the operator; until lifted. To the server it looks like `deactivated`.
        case suspended = 3
    }

    package let id: UUIDText
    /// SHA-256, 32 bytes; of one that is deactivated only a digest of that (``remains``).
    package var keyHash: Secret
    package var standing: Standing
    package var hostname: String
    package var mail: Secret
    /// Highest ids of the rows uploaded so far (§5.3).
    package var lastRealmCount: Int64 = 0
    package var lastInstallationCount: Int64 = 0
    package var lastAuditLog: Int64 = 0
    /// Pushes a minute, where the operator gave this server a quota of its own; 0: no limit.
    package var quota: Int?
    /// Until when the former key is valid, if the new one is not used earlier (§5.2); `nil`: there is none.
    package var oldKeyEnds: UnixTime?

    package init(id: UUIDText, keyHash: Secret, standing: Standing, hostname: String, mail: Secret) {
        self.id = id
        self.keyHash = keyHash
        self.standing = standing
        self.hostname = hostname
        self.mail = mail
    }

    /// What is left of a server that has deactivated itself: its id, that it has, and a digest of its key's
    /// hash, by which it is told so, while a caller with another key is told of that.
    package var remains: ZulipServer {
        ZulipServer(
            id: id, keyHash: farewell(keyHash), standing: .deactivated, hostname: "", mail: Secret([]))
    }

    /// Whether that is the hash of this server's key.
    func isKey(_ shown: Secret) -> Bool {
        (standing == .deactivated ? farewell(shown) : shown) == keyHash
    }

    private func farewell(_ hash: Secret) -> Secret {
        hash.reveal { Secret(SHA256.hash(Array("sealbell/deactivated/".utf8) + id.bytes + $0)) }
    }

    private static let format: UInt8 = 1
    private static let formatWithQuota: UInt8 = 2
    private static let formatWithOldKey: UInt8 = 3

    /// Body of a record: format 1, id, key hash, standing, host name, mail, three ids; format 2 adds the
    /// quota; format 3 the quota, -1 for none, and the old key's end in Unix milliseconds.
    package var body: Secret {
        let withoutOldKey = quota == nil ? Self.format : Self.formatWithQuota
        var writer = BodyWriter(format: oldKeyEnds == nil ? withoutOldKey : Self.formatWithOldKey)
        writer.fixed(id.bytes)
        writer.fixed(keyHash)
        writer.byte(standing.rawValue)
        writer.variable(hostname)
        writer.variable(mail)
        writer.int(lastRealmCount)
        writer.int(lastInstallationCount)
        writer.int(lastAuditLog)
        if let oldKeyEnds {
            writer.int(Int64(quota ?? -1))
            writer.int(oldKeyEnds.milliseconds)
        } else if let quota {
            writer.int(Int64(quota))
        }
        return writer.take()
    }

    /// `nil` for a body that we did not write.
    package init?(body: Secret) {
        guard let server = body.reveal({ Self.read($0) }) else { return nil }
        self = server
    }

    private static func read(_ bytes: UnsafeRawBufferPointer) -> ZulipServer? {
        guard let written = bytes.first, (format...formatWithOldKey).contains(written),
            var reader = BodyReader(bytes, format: written),
            let id = reader.fixed(16).flatMap({ UUIDText(bytes: $0) }),
            let hash = reader.fixed(32), let standing = reader.byte().flatMap(Standing.init(rawValue:)),
            let host = reader.variable(), let mail = reader.variable(), let realmCount = reader.int(),
            let installationCount = reader.int(), let auditLog = reader.int()
        else { return nil }
        var quota: Int64?
        var oldKeyEnds: Int64?
        if written >= formatWithQuota {
            let lowest: Int64 = written == formatWithOldKey ? -1 : 0
            guard let bound = reader.int(), bound >= lowest else { return nil }
            quota = bound < 0 ? nil : bound
        }
        if written == formatWithOldKey {
            guard let end = reader.int() else { return nil }
            oldKeyEnds = end
        }
        guard reader.isAtEnd else { return nil }
        var server = ZulipServer(
            id: id, keyHash: Secret(copying: hash), standing: standing,
            hostname: String(decoding: host, as: UTF8.self), mail: Secret(copying: mail))
        server.lastRealmCount = realmCount
        server.lastInstallationCount = installationCount
        server.lastAuditLog = auditLog
        server.quota = quota.map { Int($0) }
        server.oldKeyEnds = oldKeyEnds.map { UnixTime(milliseconds: $0) }
        return server
    }

    /// The record to write.
    package func record(_ keys: ZulipRecordNames, now: UnixTime) -> Record {
        var current = self
        // An expired time is not written again.
        if let oldKeyEnds, oldKeyEnds <= now { current.oldKeyEnds = nil }
        return Record(key: keys.server(id), touchedAt: now, body: current.body)
    }
}

extension Record {
    /// Of a server's record: how the server stands. One that a newer version wrote is somebody's, and active.
    var serverStanding: ZulipServer.Standing { ZulipServer(body: body)?.standing ?? .active }
}
