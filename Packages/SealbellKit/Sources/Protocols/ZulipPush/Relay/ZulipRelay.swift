import Primitives
package import PushModel
import WireFormats

/// Who may sign up (docs/configuration.md).
package enum ZulipAdmission: Sendable, Hashable {
    case open
    /// Host names without port, in lower case.
    case allowList(Set<String>)
    /// Hosts with an invitation, once each.
    case invitation
}

/// Says whether a mail domain has a mail exchanger. Asked only where the configuration wants it.
package protocol MailDomains: Sendable {
    /// - Returns: `nil` when it cannot be told now.
    func takesMail(_ domain: String) async -> Bool?
}

/// The relay of this protocol, which Zulip calls the bouncer.
///
/// It reads the registry and writes nothing: the verdict has all changes. By reference, because copying its
/// fields would cost more than a call's work with them.
package final class ZulipRelay: AnsweringRole {
    package typealias Inbound = ZulipInbound
    package typealias Reply = ZulipReply
    package typealias Failure = ZulipError
    package typealias ZulipVerdict = Verdict<ZulipReply, ZulipError>

    let registry: any Registry
    let keys: ZulipRecordNames
    let bouncerKeys: BouncerKeys
    let admission: ZulipAdmission
    let web: (any WebFetch)?
    let mailDomains: (any MailDomains)?
    let fallbacks: FallbackAlerts
    let defaultAppID: String?
    let replyDeadline: Duration
    let world: World
    let charge: @Sendable (Toll) -> Duration?
    let allowances: ZulipAllowances
    let memory: CallerMemory
    let bounds: ZulipBounds
    let counts: RegistrationCounts
    let asked = HostsAsked()
    let uses = KeyUses()

    /// - Parameter web: for transfers of a host name; without it they are refused.
    /// - Parameter mailDomains: `nil`: contact addresses are checked by their syntax only.
    /// - Parameter fallbacks: of apps that have words of their own.
    /// - Parameter defaultAppID: the topic of an Apple device that names none (§14.3); `nil`: such a one is
    ///   refused.
    /// - Parameter charge: called right before this relay asks a host of a stranger's choice, or a name
    ///   server about one; how long to wait, or `nil` when it may.
    package init(
        instance: ConfiguredName, bouncerKeys: BouncerKeys, admission: ZulipAdmission, registry: any Registry,
        web: (any WebFetch)?, mailDomains: (any MailDomains)? = nil,
        fallbacks: FallbackAlerts = FallbackAlerts([:]), defaultAppID: String? = nil,
        replyDeadline: Duration = ZulipLimits.replyDeadline,
        bounds: ZulipBounds = ZulipBounds(), allowances: ZulipAllowances = ZulipAllowances(),
        charge: @escaping @Sendable (Toll) -> Duration? = { _ in nil }, world: World
    ) {
        self.bounds = bounds
        counts = RegistrationCounts(bounds)
        keys = ZulipRecordNames(instance)
        self.bouncerKeys = bouncerKeys
        self.admission = admission
        self.registry = registry
        self.web = web
        self.mailDomains = mailDomains
        self.fallbacks = fallbacks
        self.defaultAppID = defaultAppID
        self.replyDeadline = replyDeadline
        self.allowances = allowances
        self.charge = charge
        self.world = world
        memory = CallerMemory(world)
    }

    /// Rows of the outcome table that this protocol reads differently (§6, "Dead tokens").
    ///
    /// - `DeviceTokenNotForTopic` ends a registration: the device named the topic itself.
    /// - `SENDER_ID_MISMATCH` and a malformed FCM token drop the push only: just `UNREGISTERED` is dead.
    package static func override(_ answer: Answer) -> Outcome? {
        switch answer.reason {
        case .deviceTokenNotForTopic: .unregistered(since: nil)
        case .senderIdMismatch, .invalidRegistrationToken: .rejected
        default: nil
        }
    }

    /// Callers with credentials pay through their pushes.
    package func mayCost(_ inbound: ZulipInbound) -> Bool { inbound.credentials == nil }

    /// A sign-up with a server's key comes from that server, and is charged to it.
    package func toll(
        of inbound: ZulipInbound, from client: ClientKey
    ) async throws(ZulipError) -> Toll? {
        guard inbound.credentials == nil else { return nil }
        if case .signUp(let form) = inbound.call, try await vouches(for: form) {
            return Toll(allowances.changes, of: .peer(Digest16(high: form.id.high, low: form.id.low)))
        }
        return Toll(allowances.signUps, of: .client(client))
    }

    /// A message: what is not answered 200 is gone (docs/conformance/zulip.md).
    package static func isAskedOnce(_ inbound: ZulipInbound) -> Bool {
        if case .notify = inbound.call { true } else { false }
    }

    /// Judges one request.
    ///
    /// - Returns: what to push, write and answer.
    /// - Throws: the refusal to answer with; `.overloaded` when the store is out.
    package func receive(_ inbound: ZulipInbound) async throws(ZulipError) -> ZulipVerdict {
        guard case .notify(let request) = inbound.call else { return try await receiveOther(inbound) }
        return try await notify(request, try credentials(inbound), inbound.references)
    }

    /// Not part of ``receive(_:)``: nearly all requests are notifications, and each of their tasks would hold
    /// some KiB for what the other calls keep while they wait.
    @inline(never)
    private func receiveOther(_ inbound: ZulipInbound) async throws(ZulipError) -> ZulipVerdict {
        switch inbound.call {
        case .signUp(let form): return try await signUp(form)
        case .transfer(let form): return try await transfer(form)
        case .verifyChallenge(let form): return try await verifyChallenge(form)
        case .deactivate: return try await deactivate(try await authorise(inbound))
        case .analyticsStatus:
            let caller = try await authorise(inbound)
            let server = caller.server
            return Verdict(
                changes: caller.endings(keys, now: world.now()),
                reply: .now(
                    .analyticsStatus(
                        realmCount: server.lastRealmCount, installationCount: server.lastInstallationCount,
                        auditLog: server.lastAuditLog)))
        case .analytics(let form): return try await analytics(form, inbound)
        case .register(let form): return try await register(form, try credentials(inbound))
        case .notify: return try await receive(inbound)
        case .staleDevices(let form): return try await staleDevices(form, try credentials(inbound))
        case .legacyNotify(let tokens): return try await legacy(.legacyDeleted(tokens), inbound)
        case .legacyUnregister: return try await legacy(.done(ignored: []), inbound)
        case .refused(let error):
            _ = try await authorise(inbound)
            throw error
        }
    }

    /// Judges who asks before what is asked has been read.
    ///
    /// - Throws: what ``receive(_:)`` throws for these credentials, whatever the call is.
    package func prove(_ credentials: ServerCredentials) async throws(ZulipError) {
        _ = try await authorise(credentials, try await find([serverKey(credentials)])[0])
    }

    /// A call that an origin makes because of an old row (§5.7). Only the caller is looked up.
    private func legacy(
        _ reply: ZulipReply, _ inbound: ZulipInbound
    ) async throws(ZulipError) -> ZulipVerdict {
        let caller = try await authorise(inbound)
        return Verdict(
            changes: caller.endings(keys, now: world.now()), reply: .now(reply),
            notes: [NoteCode("zulip.legacy-answered")])
    }

    // MARK: shared steps

    func credentials(_ inbound: ZulipInbound) throws(ZulipError) -> ServerCredentials {
        guard let credentials = inbound.credentials else { throw ZulipError(.missingAuthorization) }
        return credentials
    }

    func authorise(_ inbound: ZulipInbound) async throws(ZulipError) -> AuthorisedServer {
        let credentials = try credentials(inbound)
        return try await authorise(credentials, try await find([serverKey(credentials)])[0])
    }

    /// Judges the caller by its record. Only where its key was rotated lately, and another one is shown, is
    /// there a second look-up.
    func authorise(
        _ credentials: ServerCredentials, _ record: Record?
    ) async throws(ZulipError) -> AuthorisedServer {
        do throws(ZulipError) {
            return try AuthorisedServer.authorise(credentials, record)
        } catch {
            guard error.code == .wrongServerKey, let record, let server = ZulipServer(body: record.body),
                let end = server.oldKeyEnds, end > world.now()
            else { throw error }
            let oldKey = try await find([keys.oldKey(of: server.id, before: server.keyHash)])[0]
            return try AuthorisedServer.authorise(credentials, record, oldKey: oldKey)
        }
    }

    /// What an `Authorization` field shows; one that was good lately is not read again.
    ///
    /// - Throws: what ``ServerCredentials`` throws.
    package func credentials(shownBy field: String?) throws(ZulipError) -> ServerCredentials {
        try memory.credentials(shownBy: field)
    }

    /// Judges the caller and the realm, whose records stand first in `found`.
    ///
    /// - Parameter sights: how those two stood.
    func authorise(
        _ realm: UUIDText, _ credentials: ServerCredentials, _ found: [Record?],
        _ sights: [RecordSight?] = []
    ) async throws(ZulipError) -> AuthorisedRealm {
        let caller = try await authorise(credentials, found[0])
        let owned = try AuthorisedRealm.authorise(realm, found[1], for: caller)
        // A key that ends within minutes is not worth remembering.
        if !caller.isByOldKey { memory.note(owned, of: credentials, sights) }
        return owned
    }

    /// A malformed id is looked up too, under a name that no server can have, so that it costs the same.
    func serverKey(_ credentials: ServerCredentials) -> RecordKey {
        keys.server(credentials.id ?? UUIDText(high: 0, low: 0))
    }

    /// To be called right before something is asked of a host of a stranger's choice.
    func chargeFetch() throws(ZulipError) {
        guard let wait = charge(Toll(allowances.fetches, of: .everybody)) else { return }
        throw .rateLimited(retryAfter: wait)
    }

    func find(_ names: [RecordKey]) async throws(ZulipError) -> [Record?] {
        do { return try await registry.find(names) } catch { throw ZulipError(.overloaded) }
    }

    /// The same, and how the first two stood.
    func findSeeing(
        _ names: [RecordKey]
    ) async throws(ZulipError) -> (records: [Record?], sights: [RecordSight?]) {
        do { return try await registry.find(names, seeing: 2) } catch { throw ZulipError(.overloaded) }
    }
}
