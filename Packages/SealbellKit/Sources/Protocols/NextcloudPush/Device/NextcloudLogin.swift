import Primitives
public import PushModel
import WireFormats

/// One login on a phone, and what the app is built with. Given at each start, and never kept.
///
/// It prints as nothing: it names a person, and has a password.
public struct NextcloudLogin: Sendable {
    /// Whether an iOS app takes calls, and nothing else, on its VoIP token.
    public enum VoIP: Sendable, Hashable, CaseIterable {
        /// It has no such token, or Android.
        case none
        /// It has one: give both to ``NextcloudDevice/use(token:calls:)``.
        case strict
    }

    package let account: NextcloudAccount
    package let app: NextcloudAppBuild

    /// - Parameter serverURL: such as `https://cloud.example.org/nextcloud`; at most 256 visible ASCII
    ///   characters.
    /// - Parameter userID: the user's id, which need not be the name of the login; with the server's address
    ///   at most 512 bytes.
    /// - Parameter loginName: with the password at most 1,024 bytes, and without a colon (RFC 7617).
    /// - Parameter appPassword: an app password: push is refused to a login with the user's own.
    /// - Parameter proxyServer: the relay's URL, with the app's own path where it has one; at most 256
    ///   visible ASCII characters. Every phone and every server must reach it.
    /// - Parameter userAgent: what the app calls itself, at most 498 ASCII characters. The server sorts
    ///   phones by it (§3.2): `Mozilla/5.0 (iOS) Nextcloud-Talk v…` gets Talk's notifications, anything else
    ///   the others.
    /// - Parameter voip: of an iOS app with calls `.strict`.
    public init(
        serverURL: String, userID: String, loginName: String, appPassword: Secret, proxyServer: String,
        userAgent: String, voip: VoIP = .none
    ) {
        self.init(
            NextcloudAccount(
                serverURL: serverURL, userID: userID, loginName: loginName, appPassword: appPassword),
            NextcloudAppBuild(
                proxyServer: proxyServer, userAgent: userAgent, voip: voip == .strict ? .strict : .none))
    }

    package init(_ account: NextcloudAccount, _ app: NextcloudAppBuild) {
        (self.account, self.app) = (account, app)
    }

    /// `<user id>@<server>`: what a relay proves the user's key by (§5.3).
    public var cloudID: String { account.cloudID }

    /// Hex digits of ``mark(by:)``: 16 bits.
    static let markDigits = 4

    /// Tells this login name and password from others, by a secret of the phone.
    ///
    /// It is kept beside that secret, so it is short: of the passwords that somebody tries who has both, one
    /// in 65,536 fits, and none is shown to be right. The change that goes unnoticed as rarely is noticed by
    /// the registration of the next day.
    func mark(by secret: Secret) -> Secret {
        let code = account.basic.reveal { HMAC256.code(key: secret, $0) }
        return code.reveal { Secret(Hex.encode($0[..<(Self.markDigits / 2)]).utf8) }
    }

    /// Whether requests can be made of it: a line end in a header, or a question mark in an address, would
    /// make others of them.
    var isSound: Bool {
        Self.isAddress(account.serverURL) && Self.isAddress(app.proxyServer)
            && !account.userID.isEmpty && cloudID.utf8.count <= NextcloudLimits.cloudIDBytes
            && account.loginName.utf8.count + account.appPassword.count <= NextcloudLimits.loginBytes
            && account.loginName.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F && $0 != 0x3A }
            && app.userAgent.utf8.count <= NextcloudLimits.ownUserAgentBytes
            && app.userAgent.utf8.allSatisfy { (0x20...0x7E).contains($0) }
    }

    private static func isAddress(_ text: String) -> Bool {
        guard let scheme = ["https://", "http://"].first(where: { text.hasPrefix($0) }) else { return false }
        let rest = text.utf8.dropFirst(scheme.utf8.count)
        return text.utf8.count <= NextcloudLimits.proxyURLBytes && rest.first.map { $0 != 0x2F } ?? false
            && rest.allSatisfy { (0x21...0x7E).contains($0) && !"?#@\\".utf8.contains($0) }
    }
}

extension NextcloudLogin: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// `‹login›`, whatever it is.
    public var description: String { "‹login›" }
    /// The same as ``description``.
    public var debugDescription: String { description }
    /// Without children.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
