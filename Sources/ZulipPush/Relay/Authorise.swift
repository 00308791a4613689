import PushModel
import WireFormats

/// A server that has proved itself: the only way to have one is ``authorise(_:_:)``.
struct AuthorisedServer: Sendable {
    let server: ZulipServer
    let revision: UInt64

    fileprivate init(_ server: ZulipServer, revision: UInt64) {
        self.server = server
        self.revision = revision
    }

    /// Compares what was shown with what is stored.
    ///
    /// - Parameter record: what stands under the id that was shown, if anything.
    /// - Throws: `.unknownServer`, `.wrongServerKey`, `.deactivatedServer` (§5.1).
    static func authorise(_ credentials: ServerCredentials, _ record: Record?) throws(ZulipError)
        -> AuthorisedServer
    {
        // An unknown server costs the same comparison as a wrong key.
        let stored = record.flatMap { ZulipServer(body: $0.body) }
        let isRight = stored?.isKey(credentials.keyHash) ?? (credentials.keyHash == noHash)
        guard let record, let stored, credentials.id == stored.id else { throw ZulipError(.unknownServer) }
        guard isRight else { throw ZulipError(.wrongServerKey) }
        guard stored.standing == .active else { throw ZulipError(.deactivatedServer) }
        return AuthorisedServer(stored, revision: record.revision)
    }

    private static let noHash = Secret(repeatElement(UInt8(0), count: 32))
}

/// A realm that the caller owns.
struct AuthorisedRealm: Sendable {
    let server: ZulipServer
    let realm: UUIDText

    /// - Throws: `.unknownRealm`, `.realmOfOtherServer` (§5.4 step 2).
    static func authorise(
        _ realm: UUIDText, _ record: Record?, for server: AuthorisedServer
    ) throws(ZulipError) -> AuthorisedRealm {
        guard let stored = record.flatMap({ ZulipRealm(body: $0.body) }), stored.id == realm else {
            throw ZulipError(.unknownRealm)
        }
        guard stored.server == server.server.id else { throw ZulipError(.realmOfOtherServer) }
        return AuthorisedRealm(server: server.server, realm: realm)
    }

    private init(server: ZulipServer, realm: UUIDText) {
        self.server = server
        self.realm = realm
    }
}
