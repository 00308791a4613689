package import PushModel
import RSAKeys

/// The relay of this protocol, which Nextcloud calls the push proxy.
///
/// It reads the registry and writes nothing: what is to be written stands in the verdict.
package struct NextcloudRelay: AnsweringRole {
    package typealias Inbound = NextcloudInbound
    package typealias Reply = NextcloudReply
    package typealias Failure = NextcloudError
    package typealias NextcloudVerdict = Verdict<NextcloudReply, NextcloudError>

    package let policy: NextcloudPolicy
    package let keys: NextcloudKeys
    let apps: NextcloudApps
    let registry: any Registry
    let web: (any WebFetch)?
    let allowances: NextcloudAllowances
    let charge: @Sendable (Toll) -> Duration?
    let world: World

    /// - Parameter web: for identity proofs; without it a conflict stays one.
    /// - Parameter charge: takes a toll; how long to wait, or `nil` when it was taken.
    /// - Throws: `.digestCheckFailed` with a library that does not verify over given digests.
    package init(
        instance: ConfiguredName, apps: NextcloudApps, policy: NextcloudPolicy = NextcloudPolicy(),
        registry: any Registry, web: (any WebFetch)?,
        allowances: NextcloudAllowances = NextcloudAllowances(),
        charge: @escaping @Sendable (Toll) -> Duration? = { _ in nil }, world: World
    ) throws(NextcloudError) {
        guard RSAPublicKey.verifiesDigests else { throw NextcloudError(.digestCheckFailed) }
        self.policy = policy
        keys = NextcloudKeys(instance)
        self.apps = apps
        self.registry = registry
        self.web = web
        self.allowances = allowances
        self.charge = charge
        self.world = world
    }

    package static func override(_ answer: Answer) -> Outcome? { nil }

    package func toll(
        of inbound: NextcloudInbound, from client: ClientKey
    ) async throws(NextcloudError) -> Toll? {
        nil
    }

    /// A message: what is not taken is gone (§4.7).
    package static func isAskedOnce(_ inbound: NextcloudInbound) -> Bool {
        if case .notify = inbound.call { true } else { false }
    }

    package func receive(_ inbound: NextcloudInbound) async throws(NextcloudError) -> NextcloudVerdict {
        Verdict(reply: .now(.done))
    }
}
