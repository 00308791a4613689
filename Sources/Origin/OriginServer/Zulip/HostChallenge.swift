import Primitives
package import PushModel
import Synchronization
import WireFormats
import ZulipPush

/// The secret that this host shows while it takes its name back at the relay (§5.2, "Transfer"): one at a
/// time, under a secret path, for ten minutes.
package final class HostChallenge: Sendable {
    private struct Shown: Sendable {
        let token: Secret
        let secret: Secret
        let until: ContinuousClock.Instant
    }

    private let world: World
    private let shown = Mutex<Shown?>(nil)

    private static let tokenBytes = 24

    init(_ world: World) { self.world = world }

    /// - Parameter secret: from the relay.
    /// - Returns: the path element under which it is shown: 48 hex digits.
    package func show(_ secret: Secret) -> Secret {
        var bytes = world.randomBytes(Self.tokenBytes)
        defer { bytes.withUnsafeMutableBytes { wipe($0) } }
        let token = Secret(Hex.encode(bytes).utf8)
        let until = world.instant() + ZulipTransfer.life
        shown.withLock { $0 = Shown(token: token, secret: secret, until: until) }
        return token
    }

    package func hide() { shown.withLock { $0 = nil } }

    /// - Parameter path: of a request; a slash at its end counts for nothing.
    /// - Returns: the body that shows the secret; `nil`: nothing is shown there.
    func body(at path: String) -> [UInt8]? {
        let end = path.dropFirst(ZulipTransfer.path.utf8.count)
        let token = Secret((end.hasSuffix("/") ? end.dropLast() : end).utf8)
        let now = world.instant()
        let secret = shown.withLock { shown in
            // Compared in constant time, as all secrets are.
            shown.flatMap { $0.token == token && now < $0.until ? $0.secret : nil }
        }
        return secret.map { ZulipTransfer.body(showing: $0).reveal { Array($0) } }
    }
}
