// guide: begin
import SessionPush

/// Push for all accounts on this phone.
struct AccountWatch {
    /// Keep `device.encoded()` in the keychain, where the notification service extension finds it.
    private(set) var device: SessionDevice
    private let server: SessionServer
    private var random = SystemRandomNumberGenerator()

    /// - Parameter onionKey: of your relay, as `sealbell keys new session` printed it; 32 bytes.
    init(host: String, onionKey: Secret, kept: Secret? = nil) throws {
        server = try SessionServer(host: host, key: onionKey)
        device = try kept.map { try SessionDevice(keeping: $0) } ?? SessionDevice(using: &random)
    }

    /// At each start: the token that the system gave, and the user. Groups are added in the same way, by
    /// `WatchedAccount(Subaccount(signingValue:of:member:))`.
    mutating func start(token: String, seed: Secret) throws {
        device.use(try SessionDeviceToken(.apns, Secret(token.utf8)))
        try device.watch(WatchedAccount(SessionAccountKey(seed: seed)))
    }

    /// What to send now, each to the first node of a path; come back at `device.nextDeadline`.
    mutating func due(
        now: UnixTime, through path: [OnionNode]
    ) throws -> [(call: SessionCall, request: OnionRequest)] {
        var requests: [(call: SessionCall, request: OnionRequest)] = []
        for call in try device.renewal(due: now) {
            requests.append((call, try server.request(call, through: path, using: &random)))
        }
        return requests
    }

    /// What came back for a request; the status is `nil` without network.
    mutating func answered(
        _ call: SessionCall, _ request: OnionRequest, status: Int?, body: Secret, now: UnixTime
    ) -> [SessionVerdict] {
        // Whatever goes wrong on the way, it is tried again.
        let answer = (try? request.answer(status: status, body: body)) ?? .none
        return device.settle(call.id, answer, now: now, using: &random).map(\.verdict)
    }

    /// In the notification service extension: what arrived, as JSON. Once the message is stored, call
    /// `stored`, and keep `device.encoded()` in the same transaction.
    func action(for delivered: Secret, now: UnixTime) throws -> SessionAction {
        try device.open(DeliveredPush(delivered: delivered), now: now)
    }

    mutating func stored(_ message: SessionMessage) { device.remember(message) }
}
// guide: end
