import PushModel
import WireFormats

/// A server that has proved itself: the only way to have one is ``authorise(_:_:)``.
struct AuthorisedServer: Sendable {
    let server: ZulipServer
    let revision: UInt64
    /// It showed the former key, which stays valid for a while (§5.2).
    let isByOldKey: Bool

    fileprivate init(_ server: ZulipServer, revision: UInt64, isByOldKey: Bool) {
        self.server = server
        self.revision = revision
        self.isByOldKey = isByOldKey
    }

    fileprivate var withoutPeople: AuthorisedServer {
        var bare = server
        (bare.hostname, bare.mail) = ("", Secret([]))
        return AuthorisedServer(bare, revision: revision, isByOldKey: isByOldKey)
    }

    /// The changes that follow from the key that was shown: the new key ends the old one.
    func endings(_ keys: ZulipRecordNames, now: UnixTime) -> [Change] {
        guard !isByOldKey, let end = server.oldKeyEnds, end > now else { return [] }
        return [.delete(keys.oldKey(of: server.id, before: server.keyHash), if: .any)]
    }

    /// Compares what was shown with what is stored.
    ///
    /// - Parameter record: the record under the id that was shown, if any.
    /// - Parameter oldKey: the record under ``ZulipRecordNames/oldKey(of:before:)``, if it was looked up.
    /// - Throws: `.unknownServer`, `.wrongServerKey`, `.deactivatedServer` (§5.1).
    static func authorise(
        _ credentials: ServerCredentials, _ record: Record?, oldKey: Record? = nil
    ) throws(ZulipError) -> AuthorisedServer {
        // An unknown server costs the same comparison as a wrong key.
        let stored = record.flatMap { ZulipServer(body: $0.body) }
        let isRight = stored?.isKey(credentials.keyHash) ?? (credentials.keyHash == noHash)
        guard let record, let stored, credentials.id == stored.id else { throw ZulipError(.unknownServer) }
        let isOld = oldKey.map { $0.body == credentials.keyHash } ?? false
        guard isRight || isOld else { throw ZulipError(.wrongServerKey) }
        guard stored.standing == .active else { throw ZulipError(.deactivatedServer) }
        return AuthorisedServer(stored, revision: record.revision, isByOldKey: !isRight)
    }

    private static let noHash = Secret(repeatElement(UInt8(0), count: 32))
}

/// A realm that the caller owns.
struct AuthorisedRealm: Sendable {
    let caller: AuthorisedServer
    let realm: ZulipRealm

    /// - Throws: `.unknownRealm`, `.realmOfOtherServer` (§5.4 step 2).
    static func authorise(
        _ realm: UUIDText, _ record: Record?, for server: AuthorisedServer
    ) throws(ZulipError) -> AuthorisedRealm {
        guard let stored = record.flatMap({ ZulipRealm(body: $0.body) }), stored.id == realm else {
            throw ZulipError(.unknownRealm)
        }
        guard stored.server == server.server.id else { throw ZulipError(.realmOfOtherServer) }
        return AuthorisedRealm(caller: server, realm: stored)
    }

    /// The same, without the server's name and its contact's address: what may be remembered.
    var withoutPeople: AuthorisedRealm {
        AuthorisedRealm(caller: caller.withoutPeople, realm: realm)
    }

    private init(caller: AuthorisedServer, realm: ZulipRealm) {
        self.caller = caller
        self.realm = realm
    }
}
