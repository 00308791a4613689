import Primitives
package import PushModel

/// The relay of this protocol, which Session calls the push notification server.
///
/// It reads the registry and writes nothing: what is to be written stands in the verdict.
package struct SessionRelay: AnsweringRole {
    package typealias Inbound = SessionInbound
    package typealias Reply = SessionReply
    package typealias Failure = SessionError
    package typealias SessionVerdict = Verdict<SessionReply, SessionError>

    package let keys: SessionKeys
    package let policy: SessionPolicy
    let apps: SessionApps
    let registry: any Registry
    let allowances: SessionAllowances
    let charge: @Sendable (Toll) -> Duration?
    let world: World
    package let seen: SeenNotices

    /// - Parameter seen: what the relay that this one takes the place of has seen.
    /// - Parameter charge: takes a toll; how long to wait, or `nil` when it was taken.
    package init(
        instance: ConfiguredName, apps: SessionApps, policy: SessionPolicy = SessionPolicy(),
        registry: any Registry, allowances: SessionAllowances = SessionAllowances(),
        seen: SeenNotices = SeenNotices(),
        charge: @escaping @Sendable (Toll) -> Duration? = { _ in nil }, world: World
    ) {
        keys = SessionKeys(instance)
        self.policy = policy
        self.apps = apps
        self.registry = registry
        self.allowances = allowances
        self.charge = charge
        self.world = world
        self.seen = seen
    }

    /// The outcome table holds as it stands: `DeviceTokenNotForTopic` may be a fault of our own
    /// configuration, so it is counted and ends no subscription.
    package static func override(_ answer: Answer) -> Outcome? { nil }

    package func toll(
        of inbound: SessionInbound, from client: ClientKey
    ) async throws(SessionError) -> Toll? {
        switch inbound {
        case .subscribe(_, .plain), .unsubscribe(_, .plain):
            Toll(allowances.ofSource, of: .client(client))
        case .subscribe(_, .onion), .unsubscribe(_, .onion): Toll(allowances.ofOnions, of: .everybody)
        case .notified: nil
        }
    }

    /// A message: no storage server tells of it again.
    package static func isAskedOnce(_ inbound: SessionInbound) -> Bool {
        if case .notified = inbound { true } else { false }
    }

    /// Judges one element, or one message.
    ///
    /// - Returns: what to push, write and answer.
    /// - Throws: the refusal to answer with; `.overloaded` when the store is out.
    package func receive(_ inbound: SessionInbound) async throws(SessionError) -> SessionVerdict {
        switch inbound {
        case .subscribe(let form, _): try await subscribe(form)
        case .unsubscribe(let form, _): try await unsubscribe(form)
        case .notified(let push): try await notify(push)
        }
    }

    // MARK: shared steps

    func find(_ name: RecordKey) async throws(SessionError) -> Record? {
        do { return try await registry.find([name])[0] } catch { throw SessionError(.overloaded) }
    }

    /// All of an account's records; more than anybody has are left out.
    @inline(__always)
    func rows(_ account: AccountID) async throws(SessionError) -> [Record] {
        do {
            return try await registry.page(
                .owner(keys.owner(account)), after: 0, limit: SessionLimits.rowsPerLookup)
        } catch {
            throw SessionError(.overloaded)
        }
    }

    /// Counts what an account has signed against its own allowance.
    func charge(_ account: AccountID) throws(SessionError) {
        let digest = SHA256.hash(account.bytes)
        guard let payer = Digest16(digest.prefix(16)) else { return }
        if let wait = charge(Toll(allowances.ofAccount, of: .peer(payer))) {
            throw .rateLimited(retryAfter: wait)
        }
    }
}
