import PushModel
import Synchronization
import WireFormats

/// Which realms lately proved to be whose.
///
/// Devices of a realm are looked up, and their records opened, only for a caller who has shown that server's
/// key before: else the time of a refusal would tell a stranger which token ids are registered there. It
/// spares the owner a second look-up, and decides nothing: what the store says is checked every time.
final class RealmMemory: Sendable {
    /// Realms remembered; about 200 bytes each. When there are more, all are forgotten, and each owner's next
    /// call takes two look-ups.
    private static let limit = 4_096

    private struct Owner {
        let server: UUIDText
        let keyHash: Secret
        let tenancy: ZulipTenancy
    }

    private let owners = Mutex<[UUIDText: Owner]>([:])

    /// What the realm's devices were named by when these credentials were last good for it; `nil` when they
    /// are not known to have been.
    func tenancy(_ realm: UUIDText, of credentials: ServerCredentials) -> ZulipTenancy? {
        guard let owner = owners.withLock({ $0[realm] }), owner.keyHash == credentials.keyHash,
            owner.server == credentials.id
        else { return nil }
        return owner.tenancy
    }

    /// Forgets what a server has shown: its key is no longer good, or about to be.
    func forget(_ server: UUIDText) {
        owners.withLock { owners in owners = owners.filter { $0.value.server != server } }
    }

    /// Remembers credentials that the store has confirmed.
    func note(_ realm: ZulipRealm, of credentials: ServerCredentials) {
        guard let server = credentials.id, tenancy(realm.id, of: credentials)?.naming != realm.naming else {
            return
        }
        owners.withLock { owners in
            if owners.count >= Self.limit { owners.removeAll(keepingCapacity: true) }
            owners[realm.id] = Owner(
                server: server, keyHash: credentials.keyHash, tenancy: realm.tenancy)
        }
    }
}
