import NextcloudPush
import PushModel
import PushTesting
import Testing

/// A device as an app has it, whose calls are answered by hand.
struct NextcloudKitPhone {
    static let capabilities =
        #"{"ocs":{"data":{"capabilities":{"notifications":{"push":["devices","delete"]}}}}}"#
    static let alert = String(repeating: "b5", count: 32)
    static let calls = String(repeating: "c6", count: 32)

    let ends: Ends
    var device: NextcloudDevice
    var now = Ends.now
    var random = SeededRandom(seed: 21)

    init(_ ends: Ends) throws {
        self.ends = ends
        device = try NextcloudDevice(ends.login, key: ends.deviceKey)
    }

    /// One that is registered.
    static func registered(_ ends: Ends) throws -> NextcloudKitPhone {
        var phone = try NextcloudKitPhone(ends)
        try phone.tell()
        try phone.register()
        return phone
    }

    mutating func tell() throws {
        try device.use(token: .apns(hex: Self.alert), calls: .apns(hex: Self.calls))
    }

    /// The one call that is due.
    mutating func due() throws -> Call {
        let calls = device.due(at: now, using: &random)
        #expect(calls.count == 1)
        return try #require(calls.first)
    }

    /// The call that is due next, which is not made.
    func peek() throws -> Call {
        var copy = self
        return try copy.due()
    }

    /// Whether nothing is due.
    func isIdle() -> Bool {
        var (device, random) = (device, random)
        return device.due(at: now, using: &random).isEmpty
    }

    mutating func answer(_ status: Int?, _ body: String = "", after: String? = nil, to call: Call) {
        let answer: CallAnswer =
            status.map { .http(status: $0, retryAfter: after, body: Secret(body.utf8)) } ?? .none
        device.answered(answer, to: call, at: now, using: &random)
    }

    /// Server and relay take it in.
    mutating func register() throws {
        try register(from: 0)
        #expect(device.status(at: now).state == .active)
    }

    /// - Parameter steps: answers that have come already: what the server can do, its registration.
    mutating func register(from steps: Int) throws {
        let answers = [(200, Self.capabilities), (201, try ends.serverAnswer()), (200, "")]
        for (status, body) in answers.dropFirst(steps) { answer(status, body, to: try due()) }
        #expect(isIdle())
    }

    /// The app ends and starts again, and says what it said before.
    mutating func restart(_ login: NextcloudLogin? = nil, leaves: Bool = false) throws {
        let kept = device.kept
        device = try NextcloudDevice(login ?? ends.login, keeping: kept)
        if login == nil { #expect(device.kept == kept) }
        if leaves { try device.use(token: nil) } else { try tell() }
    }
}

extension Ends {
    /// What a server says to a registration.
    func serverAnswer() throws -> String {
        let verdict = try NextcloudOrigin().register(
            registration(), by: session(), userAgent: "", rows: [])
        return verdict.answer.body(.v2, .json).reveal { String(decoding: $0, as: UTF8.self) }
    }
}

extension Call {
    var path: String { http.map { "\($0.method) \($0.url)" } ?? "" }
    var text: String { http?.body.reveal { String(decoding: $0, as: UTF8.self) } ?? "" }
    func header(_ name: String) -> String? {
        http?.headers.first { $0.name == name }?.value.reveal { String(decoding: $0, as: UTF8.self) }
    }
}
