/// The relay's paths, under `/api/v1/remotes/` (§5).
package enum ZulipPath: String, Sendable, Hashable, CaseIterable {
    case signUp = "/api/v1/remotes/server/register"
    case deactivate = "/api/v1/remotes/server/deactivate"
    case transfer = "/api/v1/remotes/server/register/transfer"
    case verifyChallenge = "/api/v1/remotes/server/register/verify_challenge"
    case analyticsStatus = "/api/v1/remotes/server/analytics/status"
    case analytics = "/api/v1/remotes/server/analytics"
    case register = "/api/v1/remotes/push/e2ee/register"
    case notify = "/api/v1/remotes/push/e2ee/notify"
    /// Ids of devices that have been dead for a while (§14.7).
    case staleDevices = "/api/v1/remotes/push/e2ee/stale_devices"
    // Legacy plaintext calls: what an origin's leftover rows make it ask is answered (§5.7), the rest refused
    // with one documented error.
    case legacyRegister = "/api/v1/remotes/push/register"
    case legacyUnregister = "/api/v1/remotes/push/unregister"
    case legacyUnregisterAll = "/api/v1/remotes/push/unregister/all"
    case legacyNotify = "/api/v1/remotes/push/notify"
    case legacyTest = "/api/v1/remotes/push/test_notification"

    /// The path as sent. A trailing slash in an origin's `ZULIP_SERVICES_URL` makes `//api/…`, which is
    /// `/api/…` (§5); nothing but leading slashes is left out.
    package init?(sent path: String) {
        guard path.utf8.starts(with: [0x2F, 0x2F]) else {
            self.init(rawValue: path)
            return
        }
        self.init(rawValue: "/" + path.drop { $0 == "/" })
    }

    /// - Parameter place: among ``all``, where a router that has compared the path already says it stands.
    package init?(sent path: String, at place: Int?) {
        if let place, Self.all.indices.contains(place), Self.all[place].rawValue == path {
            self = Self.all[place]
        } else {
            self.init(sent: path)
        }
    }

    package static let all = ZulipPath.allCases

    /// All but two are POST.
    package var method: String { isRead ? "GET" : "POST" }

    /// The methods that are answered, as the deployed relay lists them: a path with GET has HEAD.
    package var methods: [String] { isRead ? ["GET", "HEAD"] : ["POST"] }

    private var isRead: Bool { self == .analyticsStatus || self == .staleDevices }

    /// Whether the caller must be a server that has signed up.
    package var isAuthenticated: Bool {
        switch self {
        case .signUp, .transfer, .verifyChallenge: false
        case .deactivate, .analyticsStatus, .analytics, .register, .notify, .staleDevices, .legacyRegister,
            .legacyUnregister, .legacyUnregisterAll, .legacyNotify, .legacyTest:
            true
        }
    }

    /// Largest body.
    package var bodyLimitBytes: Int {
        switch self {
        case .notify, .legacyNotify: ZulipLimits.notifyBodyBytes
        case .analytics: ZulipLimits.analyticsBodyBytes
        case .signUp, .deactivate, .transfer, .verifyChallenge, .analyticsStatus, .register, .staleDevices,
            .legacyRegister, .legacyUnregister, .legacyUnregisterAll, .legacyTest:
            ZulipLimits.formBodyBytes
        }
    }
}
