package import PushModel
import Primitives
import WireFormats

/// What an app is built with.
package struct ZulipAppBuild: Sendable, Hashable {
    /// Base64 of the relay's public key: what `sealbell keys new zulip` printed.
    package let bouncerKey: String
    /// What the app speaks, in its order of preference.
    package let profiles: [ZulipProfile]

    /// - Throws: `.unknownBouncerKey` for a text that is no key to which a registration can be sealed.
    package init(
        bouncerKey: String, profiles: [ZulipProfile] = ZulipProfile.preference
    ) throws(ZulipError) {
        // The same rule as for a phone's key: canonical base64 of 32 bytes, no weak point.
        do { _ = try PushPublicKey(base64: bouncerKey) } catch { throw ZulipError(.unknownBouncerKey) }
        self.bouncerKey = bouncerKey
        self.profiles = profiles
    }
}

/// A start of the app, with what the system and the server say.
package struct ZulipStart: Sendable {
    /// `nil`: the server did not answer; the route of the last start holds.
    package let serverSettings: ZulipServerSettings?
    package let build: ZulipAppBuild
    /// `nil`: the system has given none yet.
    package let token: DevicePushToken?
    /// The user's setting: no notifications but encrypted ones.
    package let requireEndToEnd: Bool
    /// What the app keeps where no backup reaches: ``ZulipRoutine/newMarker(using:)``, made where there is
    /// none. Data that were made beside another marker are another phone's.
    package let marker: Secret

    package init(
        serverSettings: ZulipServerSettings?, build: ZulipAppBuild, token: DevicePushToken?,
        requireEndToEnd: Bool = false, marker: Secret
    ) {
        self.serverSettings = serverSettings
        self.build = build
        self.token = token
        self.requireEndToEnd = requireEndToEnd
        self.marker = marker
    }
}

/// What a server answered to a call of this device.
package struct ZulipDeviceAnswer: Sendable {
    /// `nil`: nobody answered.
    package let status: Int?
    /// The value of `Retry-After`, if there was one.
    package let retryAfter: String?
    package let body: Secret

    package init(status: Int?, retryAfter: String? = nil, body: Secret = Secret([])) {
        self.status = status
        self.retryAfter = retryAfter
        self.body = body
    }

    /// Nothing came back.
    package static let none = ZulipDeviceAnswer(status: nil)
}

/// What happens to a phone.
package enum ZulipDeviceEvent: Sendable {
    /// The app starts, the user logs in or changes the setting, or the server's settings were fetched again.
    case start(ZulipStart)
    /// The system gave a token, the first or another.
    case token(DevicePushToken)
    /// The answer to ``ZulipDeviceCall`` of that number.
    case answer(call: UInt64, ZulipDeviceAnswer)
    /// The answer to `POST /api/v1/register`, whole, as it came.
    case state(Secret)
    /// The answer to `GET /api/v1/events`, whole, or one event of it.
    case events(Secret)
    /// The time that ``ZulipDeviceAction/timer(_:)`` named has come.
    case tick
    /// Another build of the app runs, which may have another key of the relay.
    case build(ZulipAppBuild)
    /// The user has logged in again: calls have another API key.
    case apiKey
    /// The server has answered 401 to a call of the app's own, such as the one for the state: nothing is
    /// called before ``apiKey``.
    case keyRefused
    /// The user asks to have notifications set up once more, whatever the server said before. In v12 nothing
    /// follows before ``state(_:)`` was given in this run. Fetch the state again behind the answer.
    case again
    /// The account leaves the phone.
    case logout
}

/// What an app has to do.
package enum ZulipDeviceAction: Sendable {
    /// Make this call with the user's API key, and bring its answer to ``ZulipDeviceEvent/answer(call:_:)``.
    case call(ZulipDeviceCall)
    /// Bring ``ZulipDeviceEvent/tick`` at that time; in the place of an earlier one.
    case timer(UnixTime)
    /// Tell the user; in the place of an earlier one.
    case notice(ZulipNotice)
    /// What the user was told is over.
    case endNotice
    /// Register by the older protocol, in plaintext.
    case legacy
    /// Take that registration back.
    case endLegacy
}

/// What a user is told. docs/guides/zulip.md has a sentence for each.
package enum ZulipNotice: String, Sendable, Hashable, CaseIterable {
    case notSetUp = "not_set_up"
    case logInAgain = "log_in_again"
    case serverRefuses = "server_refuses"
    case updateApp = "update_app"
    case cannotEncrypt = "cannot_encrypt"
}
