import Primitives
import PushModel
import Synchronization
import WireFormats

/// Which callers lately proved to be whom, and to have which realms.
///
/// Devices of a realm are looked up, and their records opened, only for a caller who has shown that server's
/// key before: else the time of a refusal would tell a stranger which token ids are registered there. It
/// spares the owner a second look-up; and where the store says that both records stand as they stood then,
/// they are not opened again. It decides nothing: what the store says is checked every time.
///
/// It keeps only digests of what callers show, and neither name nor mail of servers (decision 0132).
final class CallerMemory: Sendable {
    /// Realms and callers remembered, of each; about 1 KiB for both, of which the store's own memory shares
    /// the half. When there are more, all are forgotten, and each owner's next call takes two look-ups.
    private static let limit = 4_096

    /// What was known when these credentials were last good for a realm.
    ///
    /// A class, because every call takes it out, and it is large.
    final class Owner: Sendable {
        fileprivate let credentials: ServerCredentials
        /// Without what it holds of people.
        let realm: AuthorisedRealm
        let tenancy: ZulipTenancy
        /// How the server's and the realm's record stood; `nil`: the store keeps no sights.
        let sights: [RecordSight]?

        fileprivate init(
            _ credentials: ServerCredentials, _ realm: AuthorisedRealm, _ tenancy: ZulipTenancy,
            _ sights: [RecordSight]?
        ) {
            self.credentials = credentials
            self.realm = realm
            self.tenancy = tenancy
            self.sights = sights
        }
    }

    private let owners = Mutex<[UUIDText: Owner]>([:])
    /// By the digest of the field that showed them.
    private let callers = Mutex<[Digest16: ServerCredentials]>([:])
    private let field: ShortDigest

    init(_ world: World) {
        field = ShortDigest(key: Secret(world.randomBytes(16)))
    }

    /// What an `Authorization` field shows. One that was good lately is not read again.
    ///
    /// - Throws: what ``ServerCredentials`` throws.
    func credentials(shownBy text: String?) throws(ZulipError) -> ServerCredentials {
        guard let text else { return try ServerCredentials(authorization: nil) }
        let digest = field.digest(of: text)
        if let known = callers.withLock({ $0[digest] }) { return known }
        return try ServerCredentials(authorization: text, digest: digest)
    }

    /// `nil` when these credentials are not known to have been good for the realm.
    func owner(_ realm: UUIDText, _ credentials: ServerCredentials) -> Owner? {
        guard let owner = owners.withLock({ $0[realm] }) else { return nil }
        if owner.credentials === credentials { return owner }
        guard owner.credentials.keyHash == credentials.keyHash, owner.credentials.id == credentials.id else {
            return nil
        }
        return owner
    }

    /// Forgets what a server has shown: its key is no longer good, or about to be.
    func forget(_ server: UUIDText) {
        owners.withLock { owners in owners = owners.filter { $0.value.credentials.id != server } }
        callers.withLock { callers in callers = callers.filter { $0.value.id != server } }
    }

    /// Remembers credentials that the store has confirmed.
    ///
    /// - Parameter sights: how the server's and the realm's record stood.
    func note(_ realm: AuthorisedRealm, of credentials: ServerCredentials, _ sights: [RecordSight?]) {
        guard credentials.id != nil else { return }
        let known = owner(realm.realm.id, credentials)
        let whole = sights.count == 2 ? sights.compactMap(\.self) : []
        let seen = whole.count == 2 ? whole : nil
        if seen == nil, let known, known.sights == nil, known.tenancy.naming == realm.realm.naming { return }
        // One object for all realms of a caller: to compare it is to compare references.
        let caller = known?.credentials ?? remembered(credentials)
        owners.withLock { owners in
            if owners.count >= Self.limit { owners.removeAll(keepingCapacity: true) }
            owners[realm.realm.id] = Owner(caller, realm.withoutPeople, realm.realm.tenancy, seen)
        }
    }

    private func remembered(_ credentials: ServerCredentials) -> ServerCredentials {
        guard let digest = credentials.digest else { return credentials }
        return callers.withLock { callers in
            if let known = callers[digest] { return known }
            if callers.count >= Self.limit { callers.removeAll(keepingCapacity: true) }
            callers[digest] = credentials
            return credentials
        }
    }
}
