public import PushModel
public import SealbellKit

/// A storage server on the way of an onion request.
public struct OnionNode: Sendable {
    /// Where the phone reaches it, when it is the first: `https://192.0.2.1:22021`.
    package let address: String
    /// 32 bytes, by which the node before finds it.
    package let ed25519: Secret
    /// 32 bytes, to which its layer is sealed.
    package let x25519: Secret

    /// - Parameter address: an `https://` URL without a path, at most 270 visible ASCII characters: IP
    ///   address and port as the swarm tells them.
    /// - Parameter ed25519: the node's key `pubkey_ed25519`, 32 bytes.
    /// - Parameter x25519: the node's key `pubkey_x25519`, 32 bytes.
    /// - Throws: `.malformedSetup` for an address that is none; `.malformedKey` unless both keys have 32
    ///   bytes.
    public init(address: String, ed25519: Secret, x25519: Secret) throws(DeviceError) {
        let scheme = "https://"
        guard address.hasPrefix(scheme), SessionServer.isAuthority(address.dropFirst(scheme.count)) else {
            throw DeviceError(.malformedSetup)
        }
        do { try self.init(ed25519: ed25519, x25519: x25519, address: address) } catch {
            throw DeviceError(.malformedKey, error.codeText)
        }
    }

    /// - Throws: `.malformedKey` unless both have 32 bytes.
    package init(ed25519: Secret, x25519: Secret, address: String = "") throws(SessionError) {
        guard ed25519.count == 32, x25519.count == 32 else { throw SessionError(.malformedKey) }
        (self.ed25519, self.x25519, self.address) = (ed25519, x25519, address)
    }
}
