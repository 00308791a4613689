/// How a phone is to register at a server (§14.13).
public enum ZulipRoute: Sendable, Hashable {
    /// By this protocol, in that profile.
    case encrypted(ZulipProfile)
    /// By the older one, in plaintext; that is for the app to carry out.
    case legacy
    /// Not at all: the user wants encrypted notifications only, and the server has none. The user is told.
    case refused

    var profile: ZulipProfile? { if case .encrypted(let profile) = self { profile } else { nil } }
}

extension ZulipRoutine {
    /// Chooses how to register.
    ///
    /// - Parameter profiles: those that the app speaks, in its order of preference.
    /// - Parameter requireEndToEnd: the user's setting.
    package static func route(
        serverSettings: ZulipServerSettings, profiles: [ZulipProfile] = ZulipProfile.preference,
        requireEndToEnd: Bool
    ) -> ZulipRoute {
        if let profile = profiles.first(where: { serverSettings.has($0) }) { return .encrypted(profile) }
        return requireEndToEnd ? .refused : .legacy
    }
}
