import Primitives
package import PushModel

/// The relay of this protocol, which Session calls the push notification server.
///
/// It reads the registry and writes nothing: the verdict says what to write.
package struct SessionRelay: AnsweringRole {
    package typealias Inbound = SessionInbound
    package typealias Reply = SessionReply
    package typealias Failure = SessionError
    package typealias SessionVerdict = Verdict<SessionReply, SessionError>

    package let keys: SessionRecordNames
    package let policy: SessionPolicy
    let apps: SessionApps
    let registry: any Registry
    let allowances: SessionAllowances
    let charge: @Sendable (Toll) -> Duration?
    let world: World
    package let seen: SeenNotices
    package let proved: ProvedSigners

    /// - Parameters:
    ///   - seen: what the relay that this one replaces has seen.
    ///   - proved: signers that it has verified.
    ///   - charge: charges a toll; returns how long to wait, or `nil` if it was charged.
    package init(
        instance: ConfiguredName, apps: SessionApps, policy: SessionPolicy = SessionPolicy(),
        registry: any Registry, allowances: SessionAllowances = SessionAllowances(),
        seen: SeenNotices = SeenNotices(), proved: ProvedSigners = ProvedSigners(),
        charge: @escaping @Sendable (Toll) -> Duration? = { _ in nil }, world: World
    ) {
        keys = SessionRecordNames(instance)
        self.policy = policy
        self.apps = apps
        self.registry = registry
        self.allowances = allowances
        self.charge = charge
        self.world = world
        self.seen = seen
        self.proved = proved
    }

    /// The outcome table applies unchanged: `DeviceTokenNotForTopic` may be a fault of our own configuration,
    /// so it is counted and ends no subscription.
    package static func override(_ answer: Answer) -> Outcome? { nil }

    package func toll(
        of inbound: SessionInbound, from client: ClientKey
    ) async throws(SessionError) -> Toll? {
        switch inbound {
        case .subscribe(let form, let way): toll(of: form.claim, way, client)
        case .unsubscribe(let form, let way): toll(of: form.claim, way, client)
        case .notified: nil
        }
    }

    /// A signer who has lately proved a key is charged under that key, so that others behind the same
    /// address, such as a storage node's, cannot use up its share; everybody else is charged by address.
    private func toll(of claim: SessionClaim, _ way: SessionInbound.Way, _ client: ClientKey) -> Toll {
        if let payer = proved.known(claim, now: world.instant()) {
            return Toll(allowances.ofProved, of: .peer(payer))
        }
        return switch way {
        case .plain: Toll(allowances.ofSource, of: .client(client))
        case .onion: Toll(allowances.ofNode, of: .client(client))
        }
    }

    /// A message: no storage server reports it again.
    package static func isAskedOnce(_ inbound: SessionInbound) -> Bool {
        if case .notified = inbound { true } else { false }
    }

    /// Judges one element, or one message.
    ///
    /// - Returns: what to push, write and answer.
    /// - Throws: the refusal to answer with; `.overloaded` if the store is down.
    package func receive(_ inbound: SessionInbound) async throws(SessionError) -> SessionVerdict {
        switch inbound {
        case .subscribe(let form, _): try await subscribe(form)
        case .unsubscribe(let form, _): try await unsubscribe(form)
        case .notified(let push, let after): try await notify(push, after: after)
        }
    }

    // MARK: shared steps

    func find(_ names: [RecordKey]) async throws(SessionError) -> [Record?] {
        do { return try await registry.find(names) } catch { throw SessionError(.overloaded) }
    }

    @inline(__always)
    func page(
        _ index: RecordIndex, after revision: UInt64 = 0, limit: Int
    ) async throws(SessionError) -> [Record] {
        do {
            return try await registry.page(index, after: revision, limit: limit)
        } catch {
            throw SessionError(.overloaded)
        }
    }

    /// Verifies a claim and remembers the signer.
    func prove(_ claim: SessionClaim, over text: Secret) throws(SessionError) -> ClaimProof.Signer {
        do throws(SessionError) {
            let signer = try ClaimProof.verify(claim, over: text, takesSubkeys: policy.takesSubkeys)
            proved.enter(claim, now: world.instant())
            return signer
        } catch {
            proved.leave(claim)
            throw error
        }
    }

    /// Charges a verified call to the signer's own allowance.
    func charge(_ signer: ClaimProof.Signer, _ account: AccountID) throws(SessionError) {
        let payer = KeyedHash.digest16(key: signer.key) { $0.update(account.bytes) }
        if let wait = charge(Toll(allowances.ofSigner, of: .peer(payer))) {
            throw .rateLimited(retryAfter: wait)
        }
    }
}
