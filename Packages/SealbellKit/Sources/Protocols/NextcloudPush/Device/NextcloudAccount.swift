package import PushModel
import SealbellKit
import WireFormats

/// What an app is built with.
package struct NextcloudAppBuild: Sendable {
    /// Whether an iOS app takes calls, and nothing else, on its VoIP token.
    package enum VoIP: Sendable, Hashable { case none, strict }

    /// The proxy's URL, with the app's own path where it has one. It must reach the proxy by every device
    /// and by every server.
    package let proxyServer: String
    /// The server sorts the device by it (§3.2): `Mozilla/5.0 (iOS) Nextcloud-Talk v…` gets Talk's
    /// notifications, anything else the others.
    package let userAgent: String
    package let voip: VoIP

    package init(proxyServer: String, userAgent: String, voip: VoIP = .none) {
        self.proxyServer = proxyServer
        self.userAgent = userAgent
        self.voip = voip
    }

    /// What the proxy is told.
    var proxyUserAgent: String { voip == .strict ? userAgent + " (Strict VoIP)" : userAgent }
}

/// One login on a phone.
package struct NextcloudAccount: Sendable {
    /// Such as `https://cloud.example.org/nextcloud`.
    package let serverURL: String
    /// The user's id, which need not be the name of the login.
    package let userID: String
    package let loginName: String
    /// An app password: push is refused to a login with the user's own.
    package let appPassword: Secret

    package init(serverURL: String, userID: String, loginName: String, appPassword: Secret) {
        self.serverURL = serverURL
        self.userID = userID
        self.loginName = loginName
        self.appPassword = appPassword
    }

    /// `<user id>@<server>`: what a proxy proves the user's key by (§5.3).
    package var cloudID: String { AppPasswordIdentity.cloudID(user: userID, serverURL: serverURL) }

    /// `Authorization` (RFC 7617).
    var basic: Secret {
        appPassword.reveal { password in
            var plain = Array(loginName.utf8) + [0x3A] + password
            var text = Array("Basic ".utf8)
            Base64.append(plain, to: &text)
            defer {
                plain.withUnsafeMutableBytes { wipe($0) }
                text.withUnsafeMutableBytes { wipe($0) }
            }
            return Secret(text)
        }
    }

    /// A request to the server, which it answers in JSON.
    func call(
        _ method: String, _ path: String, _ app: NextcloudAppBuild, type: String? = nil,
        body: Secret = Secret([])
    ) -> HTTPCall {
        HTTPCall.ocs(
            method, serverURL.withoutFinalSlashes + path + "?format=json", authorization: basic,
            userAgent: app.userAgent, type: type, body: body)
    }
}

extension HTTPCall {
    static func ocs(
        _ method: String, _ url: String, authorization: Secret, userAgent: String, type: String?, body: Secret
    ) -> HTTPCall {
        var headers: [(name: String, value: Secret)] = [
            ("OCS-APIRequest", Secret("true".utf8)), ("Accept", Secret("application/json".utf8)),
            ("User-Agent", Secret(userAgent.utf8)), ("Authorization", authorization)
        ]
        if let type { headers.append(("Content-Type", Secret(type.utf8))) }
        return HTTPCall(
            method: method, url: url, headers: headers, body: body,
            answerLimitBytes: NextcloudLimits.answerBytes)
    }

    static func proxyForm(
        _ method: String, _ proxy: String, userAgent: String, _ fields: [(name: String, value: Secret)]
    ) -> HTTPCall {
        HTTPCall(
            method: method, url: proxy.withoutFinalSlashes + "/devices",
            headers: [
                ("Content-Type", Secret(formType.utf8)), ("User-Agent", Secret(userAgent.utf8))
            ],
            body: form(fields), answerLimitBytes: NextcloudLimits.answerBytes)
    }
}

/// Where Apple or Google reach this phone, as one text (§3.1).
package struct NextcloudPushToken: Sendable {
    let text: Secret

    /// - Parameter text: as the system gives it; of APNs hex digits, whose case stays as it is.
    /// - Throws: `.invalidPushToken` for a text that no proxy takes: empty, above 4,096 characters, or with
    ///   anything but visible ASCII and blanks.
    package init(_ text: Secret) throws(NextcloudError) {
        guard text.reveal({ Self.isAcceptable($0) }) else { throw NextcloudError(.invalidPushToken) }
        self.text = text
    }

    /// Of an iOS app with calls: both tokens, joined by a blank.
    package init(alert: Secret, voip: Secret) throws(NextcloudError) {
        var joined = alert.reveal { Array($0) } + [0x20]
        voip.reveal { joined += $0 }
        defer { joined.withUnsafeMutableBytes { wipe($0) } }
        try self.init(Secret(joined))
    }

    /// SHA-512 over the text, 128 hex digits in lower case: all that the server learns of the token.
    package var hash: String { String(decoding: TokenHash(of: text).hex, as: UTF8.self) }

    private static func isAcceptable(_ text: UnsafeRawBufferPointer) -> Bool {
        !text.isEmpty && text.count <= NextcloudLimits.tokenBytes
            && text.allSatisfy { (0x20..<0x7F).contains($0) }
    }
}

/// What a server says it can do (§2), read before anything is registered.
package struct NextcloudCapabilities: Sendable, Hashable {
    /// `notifications.push`: `devices`, `object-data`, `delete`, later `webpush`.
    package let push: Set<String>
    /// `notifications.ocs-endpoints`.
    package let endpoints: Set<String>

    /// Whether a device can register.
    package var takesDevices: Bool { push.contains("devices") }
    /// Whether notifications are taken off the screen again.
    package var withdraws: Bool { push.contains("delete") }
    /// Whether a device can have itself sent a test.
    package var hasSelfTest: Bool { endpoints.contains("test-push") }

    /// Reads the answer to ``NextcloudRoutine/capabilities()``. A server without the notifications app has
    /// none.
    ///
    /// - Throws: `.malformedAnswer`.
    package init(_ body: Secret) throws(NextcloudError) {
        let json = body.reveal { bytes in
            // Whatever cannot be read is the same to the caller.
            try? JSONValue.parse(bytes, limitBytes: NextcloudLimits.answerBytes)
        }
        guard let all = json?["ocs"]?["data"]?["capabilities"] else {
            throw NextcloudError(.malformedAnswer)
        }
        let words = { (name: String) in
            Set((all["notifications"]?[name]?.array ?? []).compactMap(\.string))
        }
        push = words("push")
        endpoints = words("ocs-endpoints")
    }
}
