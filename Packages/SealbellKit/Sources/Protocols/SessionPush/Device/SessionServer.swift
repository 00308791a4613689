public import SealbellKit
import PushModel

/// A push server, as an app is built with it. Given at each start, and never kept.
public struct SessionServer: Sendable {
    /// How storage servers reach it.
    public enum Scheme: String, Sendable, Hashable, CaseIterable {
        /// With TLS.
        case https
        /// Without, for a server on this machine or in a test network.
        case http
    }

    /// A name or an address.
    public let host: String
    /// 1 to 65,535.
    public let port: UInt16
    /// How storage servers, or the phone itself, reach it.
    public let scheme: Scheme
    /// `nil`: it is spoken to in the clear.
    package let onion: OnionServer?

    /// - Parameter host: 1 to 253 visible ASCII characters, without slashes.
    /// - Parameter key: the server's onion key, X25519, 32 bytes, as `sealbell keys new session` prints it.
    ///   `nil`: calls go to the server itself, sealed by TLS alone, which tells it the phone's address; for
    ///   tests.
    /// - Throws: `.malformedSetup` for a host or port that is none; `.malformedKey` for a key of another
    ///   length, or one that nothing can be sealed to.
    public init(
        host: String, port: UInt16 = 443, scheme: Scheme = .https, key: RelayKey?
    ) throws(DeviceError) {
        guard Self.isAuthority(host[...]), port > 0 else { throw DeviceError(.malformedSetup) }
        (self.host, self.port, self.scheme) = (host, port, scheme)
        onion = try key.map { (key) throws(DeviceError) in
            do throws(SessionError) {
                let onion = try OnionServer(
                    host: host, port: port, scheme: scheme == .https ? .https : .http, key: Secret(key.bytes))
                var random = SystemRandomNumberGenerator()
                // Whether something can be sealed to it.
                _ = try onion.request(
                    Secret([]), through: [], .xchacha20, chances: [OnionChance(.xchacha20, &random)])
                return onion
            } catch { throw DeviceError(.malformedKey, error.codeText) }
        }
    }

    var url: String { "\(scheme.rawValue)://\(host):\(port)" }

    /// A host, with or without a port.
    static func isAuthority(_ text: Substring) -> Bool {
        (1...SessionLimits.hostBytes).contains(text.utf8.count)
            && text.utf8.allSatisfy { (0x21..<0x7F).contains($0) && !"/?#@\\".utf8.contains($0) }
    }
}
