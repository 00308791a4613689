import OriginServer
import PushModel
import Synchronization
import WireFormats
import ZulipPush

/// What an origin does by itself: it tells the relay of its realms, and ends what has ended by time.
final class OriginUpkeep: Sendable {
    private let users: ZulipUsers
    private let staleLists: StaleLists?
    private var context: ZulipOriginContext { users.context }
    private let web: any WebFetch
    let credentials: Held<ZulipOrigin?>
    let file: String
    /// When the relay was told of realms last, by the monotonic clock.
    private let told = Mutex<ContinuousClock.Instant?>(nil)
    /// The relay's last answer about realms.
    var lastTold: Told? { last.withLock(\.self) }
    private let last = Mutex<Told?>(nil)
    private let swept = Mutex<ContinuousClock.Instant?>(nil)

    /// From one upload to the next (§5.3), and from one look at what has waited for long to the next.
    private static let interval = Duration.seconds(3_600)

    init(
        _ users: ZulipUsers, _ staleLists: StaleLists?, web: any WebFetch,
        credentials: Held<ZulipOrigin?>, file: String
    ) {
        self.users = users
        self.staleLists = staleLists
        self.web = web
        self.credentials = credentials
        self.file = file
    }

    /// Reads the credentials again; what cannot be read leaves those that are in force.
    func readCredentials() throws(CommandFailure) {
        if let read = try OriginCredentials.read(file) { credentials.value = read.origin }
    }

    /// Once a minute.
    func look() async throws(OriginError) {
        try await context.people.load()
        let now = context.world.instant()
        let isDue = told.withLock { $0.map { now - $0 >= Self.interval } ?? true }
        if isDue { _ = await tellRealms() }
        try await staleLists?.look()
        if swept.withLock({ $0.map { now - $0 >= Self.interval } ?? true }) {
            try await users.sweep()
            swept.withLock { $0 = now }
        }
    }

    /// Asks at once which phones are dead, whatever the settings say.
    func askForStale() async throws(OriginError) {
        try await (staleLists ?? StaleLists(users)).look(atOnce: true)
    }

    /// What became of a call that an administrator waits for.
    enum Told: Sendable {
        case told, notSignedUp, noRealm, unreachable
        case refused(status: Int, code: String)
    }

    /// `server/analytics`: without it the relay knows of no realm, and refuses every encrypted call (§5.3).
    func tellRealms() async -> Told {
        guard let origin = credentials.value else { return .notSignedUp }
        let realms = context.people.realms
        guard !realms.isEmpty else { return .noRealm }
        let answer = await send(
            origin.analytics(
                realms: realms.map { realm in
                    ZulipRealmReport(
                        id: realm.id, uuid: realm.uuid,
                        ownerSecret: realm.ownerSecret.reveal { String(decoding: $0, as: UTF8.self) },
                        host: realm.host, url: realm.url, name: realm.name,
                        createdAt: realm.createdAt.seconds)
                }))
        // What was not told is told with the next look, a minute later.
        if case .told = answer {
            told.withLock { $0 = context.world.instant() }
        } else {
            told.withLock { $0 = nil }
        }
        last.withLock { $0 = answer }
        return answer
    }

    func signUp(_ origin: ZulipOrigin, host: String, mail: String, newKey: Secret? = nil) async -> Told {
        await send(origin.signUp(hostname: host, mail: mail, newKey: newKey))
    }

    /// Asks for the secret that the host must show.
    ///
    /// - Parameter origin: any; neither its id nor its key is sent.
    func transfer(_ origin: ZulipOrigin, host: String) async -> Asked<Secret> {
        await ask(origin.transfer(hostname: host)) { ZulipTransfer.secret(in: $0) }
    }

    /// Has the relay fetch the secret, for which it may take its time.
    func verifyChallenge(
        _ origin: ZulipOrigin, host: String, accessToken: Secret
    ) async -> Asked<(id: String, key: Secret)> {
        await ask(origin.verifyChallenge(hostname: host, accessToken: accessToken), within: .seconds(45)) {
            ZulipTransfer.credentials(in: $0)
        }
    }

    /// What a call for something brought.
    enum Asked<Found> {
        case found(Found)
        case not(Told)
    }

    private func send(_ call: HTTPCall) async -> Told {
        switch await ask(call, reading: { _ in true }) {
        case .found: .told
        case .not(let told): told
        }
    }

    private func ask<Found>(
        _ call: HTTPCall, within deadline: Duration = .seconds(15), reading: (Secret) -> Found?
    ) async -> Asked<Found> {
        var request = WebRequest(
            call.method == "GET" ? .get : .post, url: context.relay + call.url,
            headers: call.headers.map { ($0.name, $0.value.reveal { String(decoding: $0, as: UTF8.self) }) },
            body: call.body, answerLimitBytes: call.answerLimitBytes, deadline: deadline,
            publicAddressesOnly: false)
        request.mayRepeat = true
        do throws(WebError) {
            let answer = try await web.fetch(request)
            if answer.status == 200, let found = reading(answer.body) { return .found(found) }
            let code = ZulipOrigin.errorCode(answer.body)
            return .not(.refused(status: answer.status, code: code ?? ""))
        } catch {
            return .not(.unreachable)
        }
    }
}
