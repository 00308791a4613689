import PushModel

/// A simulated Android device's registration.
public struct FCMDevice: Sendable, Equatable {
    /// The project whose app is on it.
    public var project: String
    /// False: the app was removed, 404 `UNREGISTERED`.
    public var isLive: Bool

    /// - Parameter isLive: the app is there, unless said otherwise.
    public init(project: String, isLive: Bool = true) {
        self.project = project
        self.isLive = isLive
    }
}

/// The judgement of the simulated send endpoint: request and state in, verdict out (docs/push-services.md
/// §5).
struct FCMJudge {
    enum Ruling: Equatable {
        /// HTML, as the real front end answers for unknown paths.
        case page(Int)
        case refused(SimulatedFCMError)
        /// `address`: the token, the installation id, the topic or the condition.
        case accepted(FCMMessage, project: String, address: String)
    }

    static let deviceLimit = 2_000_000

    var tokens = FCMTokens()
    var otherProjects: Set<String> = []
    var learns = false
    var projectRate: Rate?
    var deviceMinute: Rate?
    var deviceHour: Rate?
    private var devices: [String: FCMDevice] = [:]
    private var projectCounts = RateWindows()
    private var minuteCounts = RateWindows()
    private var hourCounts = RateWindows()

    init() {}

    subscript(address: String) -> FCMDevice? {
        get { devices[address] }
        set {
            guard newValue == nil || devices[address] != nil || devices.count < Self.deviceLimit else {
                return
            }
            devices[address] = newValue
        }
    }

    mutating func judge(_ request: SimulatedRequest, now: UnixTime) -> Ruling {
        guard let path = request[.path], let project = Self.project(path) else { return .page(404) }
        guard request[.method]?.elementsEqual("POST".utf8) ?? false else { return .page(405) }
        do throws(SimulatedFCMError) {
            try authorise(request, project: project, now: now)
            // From here on everything counts against the project's quota, including faults (§4.3).
            let isWithin = projectRate.map { projectCounts.allows(project, $0, now: now) } ?? true
            let message = try FCMMessage(request.body)
            let address = try reach(message.target, project: project)
            guard isWithin else { throw SimulatedFCMError.projectQuota(project) }
            try countDevice(message.target, address, now: now)
            return .accepted(message, project: project, address: address)
        } catch {
            return .refused(error)
        }
    }

    private func authorise(_ request: SimulatedRequest, project: String, now: UnixTime)
        throws(SimulatedFCMError)
    {
        let scheme = "bearer "
        guard let field = request[.authorization].map({ String(decoding: $0, as: UTF8.self) }),
            field.prefix(scheme.count).lowercased() == scheme,
            let access = tokens.access(String(field.dropFirst(scheme.count)))
        else { throw SimulatedFCMError.unauthenticated }
        guard now < access.expires else { throw SimulatedFCMError.expired }
        guard access.project != project else { return }
        let isKnown = tokens.projects.contains(project) || otherProjects.contains(project)
        throw isKnown ? SimulatedFCMError.permissionDenied : .projectNotFound
    }

    /// Checks the address's form, its owner, and whether it lives.
    private mutating func reach(_ target: FCMMessage.Target, project: String) throws(SimulatedFCMError)
        -> String
    {
        let address: String
        switch target {
        case .topic(let topic): return topic
        case .condition(let condition): return condition
        case .token(let token):
            guard Self.isRegistrationToken(token) else { throw SimulatedFCMError.malformedToken }
            address = token
        case .fid(let fid):
            guard Self.isInstallationID(fid) else { throw SimulatedFCMError.malformedToken }
            address = fid
        }
        if devices[address] == nil, learns { self[address] = FCMDevice(project: project) }
        guard let device = devices[address] else { throw SimulatedFCMError.unregistered }
        guard device.project == project else { throw SimulatedFCMError.senderMismatch }
        guard device.isLive else { throw SimulatedFCMError.unregistered }
        return address
    }

    private mutating func countDevice(_ target: FCMMessage.Target, _ address: String, now: UnixTime)
        throws(SimulatedFCMError)
    {
        switch target {
        case .topic, .condition: return
        case .token, .fid: break
        }
        if let deviceMinute, !minuteCounts.allows(address, deviceMinute, now: now) {
            throw SimulatedFCMError.deviceQuota
        }
        if let deviceHour, !hourCounts.allows(address, deviceHour, now: now) {
            throw SimulatedFCMError.deviceQuota
        }
    }

    /// `/v1/projects/<project>/messages:send`.
    private static func project(_ path: ArraySlice<UInt8>) -> String? {
        let text = String(decoding: path, as: UTF8.self)
        guard text.hasPrefix("/v1/projects/"), text.hasSuffix("/messages:send") else { return nil }
        let project = text.dropFirst("/v1/projects/".count).dropLast("/messages:send".count)
        return project.isEmpty || project.contains("/") ? nil : String(project)
    }

    /// Base64url characters on both sides of a colon, 32 to 512 in all (§4.2: about 140 to 180).
    private static func isRegistrationToken(_ token: String) -> Bool {
        (32...512).contains(token.utf8.count) && token.utf8.contains(UInt8(ascii: ":"))
            && token.utf8.first != UInt8(ascii: ":") && token.utf8.last != UInt8(ascii: ":")
            && token.utf8.allSatisfy { isURLDigit($0) || $0 == UInt8(ascii: ":") }
    }

    /// 22 base64url characters.
    private static func isInstallationID(_ fid: String) -> Bool {
        fid.utf8.count == 22 && fid.utf8.allSatisfy(isURLDigit)
    }

    private static func isURLDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "_"): true
        default: false
        }
    }
}
