import Crypto
import EdwardsKeys
import Primitives
import PushModel

/// Results of curve arithmetic that a network's storage servers share. All members of a swarm get the same
/// watches, and here one thread answers for all of them: without this, a hundred thousand accounts would be a
/// million signatures, and the client would only wait for them.
final class CurveMemo {
    /// For valid signatures, SHA-256 of key ‖ signature ‖ text.
    private var held: Set<[UInt8]> = []
    /// The X25519 form of Ed25519 keys.
    private var forms: [[UInt8]: [UInt8]] = [:]

    /// The most entries of either kind, some 15 MiB; then it starts again. Members of a swarm get the same
    /// watches within seconds.
    private static let limit = 1 << 17

    /// - Returns: 32 bytes; `nil` for an invalid key.
    func x25519(of ed25519: [UInt8]) -> [UInt8]? {
        if let known = forms[ed25519] { return known }
        guard let key = Ed25519PublicKey(Secret(ed25519)), let form = EdwardsPoint.x25519(of: key) else {
            return nil
        }
        if forms.count >= Self.limit { forms = [:] }
        let bytes = form.reveal { Array($0) }
        forms[ed25519] = bytes
        return bytes
    }

    func holds(_ signature: [UInt8], over text: [UInt8], by key: [UInt8]) -> Bool {
        let name = Primitives.SHA256.hash(key + signature + text)
        if held.contains(name) { return true }
        // An invalid key has signed nothing.
        guard let key = try? Curve25519.Signing.PublicKey(rawRepresentation: key),
            key.isValidSignature(signature, for: text)
        else { return false }
        if held.count >= Self.limit { held = [] }
        held.insert(name)
        return true
    }
}
