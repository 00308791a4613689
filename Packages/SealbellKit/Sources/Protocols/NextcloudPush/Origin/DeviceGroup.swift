/// What kind of app a device has, by the User-Agent of its registration alone (§3.2): one group gets Talk's
/// notifications, the others all the rest.
public enum DeviceGroup: String, Sendable, Hashable, CaseIterable {
    /// Talk's apps, the files apps, and everything else.
    case talk, nextcloud, unknown

    /// Judges by how the text begins: `Mozilla/5.0 (Android) Nextcloud-Talk v` and its like.
    public init(userAgent: String) {
        let starts = { (word: String) in userAgent.utf8.starts(with: ("Mozilla/5.0 " + word).utf8) }
        if ["(Android) Nextcloud-Talk v", "(iOS) Nextcloud-Talk v"].contains(where: starts) {
            self = .talk
        } else if Self.files.contains(where: starts) {
            self = .nextcloud
        } else {
            self = .unknown
        }
    }

    private static let files = [
        "(Android) Nextcloud-android", "(Android) ownCloud-android", "(iOS) Nextcloud-iOS",
        "(iOS) ownCloud-iOS"
    ]
}

/// One row of an origin's registrations: there is one for each user and app password (§4.1).
public struct RegisteredDevice: Sendable, Hashable {
    /// The app password.
    public let tokenID: Int64
    /// Base64, 88 characters. It stays when the device registers again.
    public let deviceIdentifier: String
    /// PEM, as the device sent it.
    public var devicePublicKey: String
    /// 128 hex digits in lower case.
    public var pushTokenHash: String
    /// As the device sent it.
    public var proxyServer: String
    /// Of the User-Agent that it registered with.
    public var group: DeviceGroup

    /// A row as it was kept.
    ///
    /// - Parameter deviceIdentifier: Base64, 88 characters.
    /// - Parameter pushTokenHash: 128 hex digits in lower case.
    public init(
        tokenID: Int64, deviceIdentifier: String, devicePublicKey: String, pushTokenHash: String,
        proxyServer: String, group: DeviceGroup
    ) {
        self.tokenID = tokenID
        self.deviceIdentifier = deviceIdentifier
        self.devicePublicKey = devicePublicKey
        self.pushTokenHash = pushTokenHash
        self.proxyServer = proxyServer
        self.group = group
    }

    /// The proxy without final slashes: what registrations of one proxy have in common.
    public var proxy: String { proxyServer.withoutFinalSlashes }
}
