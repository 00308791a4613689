/// Which Nextcloud an origin says that it is.
public struct NextcloudVersion: Sendable, Hashable {
    /// 31, of 31.0.2.
    public let major: Int64
    /// 0, of 31.0.2.
    public let minor: Int64
    /// 2, of 31.0.2.
    public let micro: Int64

    /// The three numbers of `version` in `capabilities`.
    public init(major: Int64, minor: Int64, micro: Int64) {
        self.major = major
        self.minor = minor
        self.micro = micro
    }

    /// The deployed one whose interface this origin speaks.
    public static let assumed = NextcloudVersion(major: 34, minor: 0, micro: 1)

    var text: String { "\(major).\(minor).\(micro)" }
}

extension OCSAnswer {
    static let done = OCSAnswer(status: 200)
    static let nothingThere = OCSAnswer(status: 404, data: .null)

    static func user(_ caller: NextcloudCaller) -> OCSAnswer {
        OCSAnswer(
            status: 200,
            data: [
                ("enabled", .bool(true)), ("id", .text(caller.userID)), ("email", .null),
                ("displayname", .text(caller.displayName)), ("display-name", .text(caller.displayName)),
                ("groups", .list([])), ("language", .text("en")), ("locale", .text(""))
            ])
    }

    private static func words(_ words: [String]) -> OCSValue { .list(words.map { .text($0) }) }

    /// What the server can do: devices register only where `push` lists `devices` (§2). A stranger hears of
    /// no notifications.
    ///
    /// - Parameter version: as `34.0.1`: clients look at its first number for what else they may ask.
    public static func capabilities(
        isLoggedIn: Bool, version: NextcloudVersion = .assumed
    ) -> OCSAnswer {
        let core: OCSValue = .object([
            ("pollinterval", .number(60)), ("webdav-root", .text("remote.php/webdav"))
        ])
        let endpoints = words(["list", "get", "delete", "delete-all", "exists", "test-push"])
        let push = words(["devices", "object-data", "delete"])
        let notifications: [(name: StaticString, value: OCSValue)] = [
            ("ocs-endpoints", endpoints), ("push", push)
        ]
        var all: [(name: StaticString, value: OCSValue)] = [("core", core)]
        if isLoggedIn { all.append(("notifications", .object(notifications))) }
        let told: OCSValue = .object([
            ("major", .number(version.major)), ("minor", .number(version.minor)),
            ("micro", .number(version.micro)), ("string", .text(version.text)), ("edition", .text("")),
            ("extendedSupport", .bool(false))
        ])
        return OCSAnswer(status: 200, data: [("version", told), ("capabilities", .object(all))])
    }
}
