import Primitives
package import PushModel
import RSAKeys

/// The relay of this protocol, which Nextcloud calls the push proxy.
///
/// It reads the registry and writes nothing: the verdict has all changes.
package struct NextcloudRelay: AnsweringRole {
    package typealias Inbound = NextcloudInbound
    package typealias Reply = NextcloudReply
    package typealias Failure = NextcloudError
    package typealias NextcloudVerdict = Verdict<NextcloudReply, NextcloudError>

    package let policy: NextcloudPolicy
    package let keys: NextcloudRecordNames
    let apps: NextcloudApps
    let registry: any Registry
    let web: (any WebFetch)?
    let allowances: NextcloudAllowances
    let charge: @Sendable (Toll) -> Duration?
    let note: @Sendable (NoteCode) -> Void
    let heard: @Sendable (ProofFault) -> Void
    let world: World
    let work: KeyWork
    let words = InstanceWords()
    let parsed: ParsedKeys
    /// In the place of the key of a device that is not there.
    let standInKey: ParsedKey
    let standIn = StandIn()
    let sights = HashSights()
    let told = ToldIdentifiers()

    /// - Parameter web: for identity proofs; without it a conflict stays one.
    /// - Parameter charge: takes a toll; how long to wait, or `nil` when it was taken.
    /// - Parameter note: counts what is refused, of which there is no verdict.
    /// - Parameter heard: is told of each instance that was asked and proved nothing.
    /// - Parameter work: what is done with users' keys.
    /// - Throws: `.digestCheckFailed` with a library that does not verify over given digests.
    package init(
        instance: ConfiguredName, apps: NextcloudApps, policy: NextcloudPolicy = NextcloudPolicy(),
        registry: any Registry, web: (any WebFetch)?,
        allowances: NextcloudAllowances = NextcloudAllowances(),
        charge: @escaping @Sendable (Toll) -> Duration? = { _ in nil },
        note: @escaping @Sendable (NoteCode) -> Void = { _ in },
        heard: @escaping @Sendable (ProofFault) -> Void = { _ in }, work: KeyWork = .real, world: World
    ) throws(NextcloudError) {
        guard RSAPublicKey.verifiesDigests, let standIn = RSAPublicKey.nobodys else {
            throw NextcloudError(.digestCheckFailed)
        }
        standInKey = ParsedKey(standIn)
        parsed = ParsedKeys(work)
        self.work = work
        self.policy = policy
        keys = NextcloudRecordNames(instance)
        self.apps = apps
        self.registry = registry
        self.web = web
        self.allowances = allowances
        self.charge = charge
        self.note = note
        self.heard = heard
        self.world = world
    }

    /// The outcome table holds as it stands (§5.7, §5.8): `DeviceTokenNotForTopic` may be a fault of our own
    /// configuration, so it is counted and ends no registration.
    package static func override(_ answer: Answer) -> Outcome? { nil }

    package func toll(
        of inbound: NextcloudInbound, from client: ClientKey
    ) async throws(NextcloudError) -> Toll? {
        if inbound.isRepeated { return nil }
        return switch inbound.call {
        case .register, .unregister: Toll(allowances.registrations, of: .client(client))
        case .notify(let call):
            Toll(allowances.notifications, of: .client(client), units: call.units)
        }
    }

    /// A message: what is not taken is gone (§4.7).
    package static func isAskedOnce(_ inbound: NextcloudInbound) -> Bool {
        if case .notify = inbound.call { true } else { false }
    }

    /// Judges one request.
    ///
    /// - Returns: what to push, write and answer.
    /// - Throws: the refusal to answer with; `.overloaded` when the store is out.
    package func receive(_ inbound: NextcloudInbound) async throws(NextcloudError) -> NextcloudVerdict {
        switch inbound.call {
        case .register(let form): return try await register(form, inbound)
        case .unregister(let form): return try await unregister(form, inbound)
        case .notify(let call):
            guard policy.admits(inbound.subscriptionKey) else { throw NextcloudError(.wrongSubscriptionKey) }
            var verdict = try await notify(call, from: inbound.source)
            verdict.turns = policy.turns(inbound.subscriptionKey)
            return verdict
        }
    }

    // MARK: shared steps

    func find(_ names: [RecordKey]) async throws(NextcloudError) -> [Record?] {
        do { return try await registry.find(names) } catch { throw NextcloudError(.overloaded) }
    }

    /// Counts a call of one device against its allowance. The device is its identifier with the key that has
    /// signed it: anybody can guess an identifier, which must not use up another's share.
    func chargeDevice(_ form: OwnershipForm) throws(NextcloudError) {
        let digest = form.identifier.withBytes { identifier in
            form.key.der.withUnsafeBytes { SHA256.hash(joining: [identifier, $0]) }
        }
        guard let payer = Digest16(digest.prefix(16)) else { return }
        try take(Toll(allowances.ofDevice, of: .peer(payer)))
    }

    func take(_ toll: Toll) throws(NextcloudError) {
        if let wait = charge(toll) { throw .rateLimited(retryAfter: wait) }
    }
}
