public import PushModel
package import Secp256k1Keys
public import SealbellKit

/// What makes a ``StatusDevice``: one account in this app. Given at each start, and never kept.
public struct StatusSetup: Sendable {
    /// Where registrations go. Deployed servers hear both.
    public enum RegistrationTopic: String, Sendable, Hashable, CaseIterable {
        /// The server's partitioned topic, which it shares with others.
        case partitioned
        /// The server's personal topic, as deployed clients use it.
        case personal
    }

    package let key: Secp256k1KeyPair
    /// The app's bundle id, which servers insist on with APNs; `nil`: Google alone reaches the app.
    public let bundleID: String?
    /// A UUID, the account's name for this phone; `nil`: the device draws one, and keeps it.
    public let installationID: String?
    /// The servers to register at, each once.
    public let servers: [RelayKey]
    /// Where registrations go.
    public let registrationTopic: RegistrationTopic
    package let points: [PublicPoint]

    /// - Parameter key: the account's chat key, 32 bytes of secp256k1. In anonymous mode it is another, which
    ///   the app tells its contacts: then everything here works with it in place of the chat key.
    /// - Parameter bundleID: 1 to 256 visible ASCII characters.
    /// - Parameter installationID: 36 characters, for an account that had one before.
    /// - Parameter servers: at most ``StatusLimits/deviceServers``. One that leaves the list is told to
    ///   forget the account.
    /// - Throws: `.malformedSetup` for a key, a server's key, a bundle id or an installation id that is none;
    ///   `.tooMany` for more servers.
    ///
    /// Spec: "Push notification server", §11.
    public init(
        key: Secret, bundleID: String?, installationID: String? = nil, servers: [RelayKey],
        registrationTopic: RegistrationTopic = .partitioned
    ) throws(DeviceError) {
        guard servers.count <= StatusLimits.deviceServers else {
            throw DeviceError(.tooMany, StatusError.Code.tooManyServers.rawValue)
        }
        do { self.key = try Secp256k1KeyPair(secret: key) } catch {
            throw DeviceError(.malformedSetup, StatusError.Code.malformedKey.rawValue)
        }
        var (keys, points): ([RelayKey], [PublicPoint]) = ([], [])
        for server in servers {
            guard let point = PublicPoint(server.bytes) else {
                throw DeviceError(.malformedSetup, StatusError.Code.malformedKey.rawValue)
            }
            guard !points.contains(point) else { continue }
            keys.append(server)
            points.append(point)
        }
        if let bundleID {
            guard (1...StatusLimits.apnTopicBytes).contains(bundleID.utf8.count),
                bundleID.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
            else { throw DeviceError(.malformedSetup, StatusError.Code.malformedToken.rawValue) }
        }
        if let installationID, !AccessToken.isCanonical(Secret(installationID.utf8)) {
            throw DeviceError(.malformedSetup, StatusError.Code.malformedInstallation.rawValue)
        }
        (self.servers, self.points) = (keys, points)
        (self.bundleID, self.installationID) = (bundleID, installationID)
        self.registrationTopic = registrationTopic
    }

    /// The account's public key, 33 bytes: what senders know a person by.
    public var account: PublicPoint { key.point }
}
