import Primitives
public import PushModel
public import SealbellKit
import WireFormats

/// One login on a phone, and what the app was built with: what a ``ZulipDevice`` is made from at each start.
///
/// It is never kept, and prints as nothing.
public struct ZulipLogin: Sendable {
    /// When a device asks its server for the state, which opens an event queue, and for events (§3.5).
    public enum Asking: Sendable, Hashable {
        /// Never: the app has an event queue of its own, and brings what it fetches to
        /// ``ZulipDevice/see(state:at:)`` and ``ZulipDevice/see(events:at:)``.
        case never
        /// At each start, and for as long as the server has not said what became of a registration, for five
        /// minutes at most; then its queue is closed.
        case whilePending
        /// From each start on, until ``ZulipDevice/closeEvents()``: for an app that is to hear at once what
        /// becomes of a registration that was active.
        case always
    }

    /// Absolute URL of the organization, by which notifications name it.
    public let realmURL: String
    /// Absolute URL at which its server is called, without a slash at the end; as a rule ``realmURL``.
    public let serverURL: String
    /// The user's number (`user_id`).
    public let userID: Int64
    /// The login, as the server's Basic authentication takes it.
    public let email: String
    /// The user's API key, as text.
    public let apiKey: Secret
    /// The relay's public key that is built into the app: 32 bytes.
    public let relayKey: RelayKey
    /// The app's bundle id, which a relay of Apple's tokens has to know.
    public let bundleID: String
    /// What the app keeps where no backup reaches: 16 to 64 bytes.
    public let marker: Secret?
    /// What the app speaks, in its order of preference.
    public let profiles: [ZulipProfile]
    /// The user's setting: no notifications but encrypted ones.
    public let requireEndToEnd: Bool
    /// When the device asks for state and events by itself.
    public let asksForEvents: Asking

    let account: ZulipAccount
    let build: ZulipAppBuild

    /// A login.
    ///
    /// - Parameter realmURL: absolute http or https URL of the organization (`realm_url` of
    ///   `server_settings`), without user part, query and fragment; at most 2,048 visible ASCII characters.
    /// - Parameter userID: the user's number, from 1.
    /// - Parameter email: 1 to 254 bytes of UTF-8 without colon, blank and control characters.
    /// - Parameter apiKey: 1 to 1,024 bytes.
    /// - Parameter relayKey: what `sealbell keys new zulip` printed.
    /// - Parameter bundleID: 1 to 255 bytes.
    /// - Parameter serverURL: where the server is called, where that is another URL than `realmURL`.
    /// - Parameter profiles: what the app speaks, in its order of preference; at least one.
    /// - Parameter requireEndToEnd: the user's setting; then there is no ``ZulipRoute/legacy``.
    /// - Parameter marker: 16 to 64 random bytes that the app keeps where no backup reaches, made once per
    ///   phone. What was kept beside another marker is another phone's, out of a backup: the device begins
    ///   anew, with an id and keys of its own (§14.12). `nil`: the app restores no such data.
    /// - Parameter asksForEvents: `.never` where the app has an event queue of its own.
    /// - Throws: `.malformedSetup` for anything else, and for a key to which nothing can be sealed.
    public init(
        realmURL: String, userID: Int64, email: String, apiKey: Secret, relayKey: RelayKey, bundleID: String,
        serverURL: String? = nil, profiles: [ZulipProfile] = ZulipProfile.preference,
        requireEndToEnd: Bool = false, marker: Secret? = nil, asksForEvents: Asking = .whilePending
    ) throws(DeviceError) {
        let server = serverURL ?? realmURL
        guard Self.isAddress(realmURL), Self.isAddress(server), userID > 0, Self.isName(email),
            ZulipLimits.apiKeyBytes.contains(apiKey.count),
            (1...ZulipLimits.appIDBytes).contains(bundleID.utf8.count), !profiles.isEmpty,
            marker.map({ ZulipLimits.markerBytes.contains($0.count) }) ?? true, relayKey.bytes.count == 32
        else { throw DeviceError(.malformedSetup) }
        do throws(ZulipError) {
            build = try ZulipAppBuild(bouncerKey: Base64.text(relayKey.bytes), profiles: profiles)
        } catch { throw DeviceError(.malformedSetup, error.codeText) }
        account = ZulipAccount(realmURL: realmURL, userID: userID)
        self.serverURL = server.hasSuffix("/") ? String(server.dropLast()) : server
        (self.realmURL, self.userID, self.email, self.apiKey) = (realmURL, userID, email, apiKey)
        (self.relayKey, self.bundleID, self.profiles) = (relayKey, bundleID, profiles)
        (self.requireEndToEnd, self.marker, self.asksForEvents) = (requireEndToEnd, marker, asksForEvents)
    }

    /// A marker to be made once for each phone: 16 random bytes, which tell nothing.
    public static func newMarker() -> Secret {
        var generator = SystemRandomNumberGenerator()
        return ZulipRoutine.newMarker(using: &generator)
    }

    private static func isAddress(_ url: String) -> Bool {
        WebOrigin(url) != nil && url.utf8.count <= ZulipLimits.serverURLBytes
            && url.utf8.allSatisfy { (0x21...0x7E).contains($0) } && !url.contains("?") && !url.contains("#")
    }

    private static func isName(_ email: String) -> Bool {
        (1...ZulipLimits.mailBytes).contains(email.utf8.count)
            && email.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F && $0 != 0x3A }
    }

    /// `Basic …` (RFC 7617).
    var authorization: Secret {
        let pair = userAndKey
        let scheme = Array("Basic ".utf8)
        return Secret(count: scheme.count + Base64.encodedCount(pair.count)) { room in
            room.copyBytes(from: scheme)
            pair.reveal {
                Base64.encode($0, into: UnsafeMutableRawBufferPointer(rebasing: room[scheme.count...]))
            }
        }
    }

    /// Tells this user and key from others, and not what they are: 32 hex digits.
    var digest: Secret { Secret(Hex.encode(SHA256.hash(userAndKey)[..<16]).utf8) }

    private var userAndKey: Secret {
        let user = Array((email + ":").utf8)
        return Secret(count: user.count + apiKey.count) { room in
            room.copyBytes(from: user)
            apiKey.reveal { UnsafeMutableRawBufferPointer(rebasing: room[user.count...]).copyBytes(from: $0) }
        }
    }
}

extension ZulipLogin: CustomStringConvertible, CustomReflectable {
    /// `‹login›`, whoever it is.
    public var description: String { "‹login›" }
    /// Without children.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
