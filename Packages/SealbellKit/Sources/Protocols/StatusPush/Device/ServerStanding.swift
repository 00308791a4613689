import PushModel
import Secp256k1Keys
import WireFormats

/// How one account stands with one server: which version it is to have, which it has said to have, and when
/// it is told again.
struct ServerStanding: Sendable {
    enum Goal: String, Sendable { case registered, unregistered }

    /// Why a server is not asked again before something changes.
    enum Halt: String, Sendable {
        /// It said MALFORMED_MESSAGE: the same text would be refused again.
        case malformed
        /// It said UNSUPPORTED_TOKEN_TYPE.
        case unsupportedToken
        /// It said VERSION_MISMATCH more often than versions can have been lost.
        case versionMismatch
    }

    let server: PublicPoint
    var goal: Goal
    /// Whether it is one of those that the app names now.
    var isListed = true
    /// The version that it is to have.
    var target: UInt64
    /// The version that it took last; 0: none.
    var reached: UInt64 = 0
    var attempts = 0
    var lastAttempt: UnixTime?
    var mismatches = 0
    var halt: Halt?
    /// `request_id` of each attempt at ``target``.
    var requests: [Secret] = []

    init(_ server: PublicPoint, _ goal: Goal, target: UInt64) {
        self.server = server
        self.goal = goal
        self.target = target
    }

    var isLevel: Bool { reached == target }
    var isGivenUp: Bool { attempts >= StatusLimits.registrationAttempts }

    /// When it is to be told; `nil`: it has the version, or nothing is to be said before something changes.
    var dueAt: UnixTime? {
        guard !isLevel, halt == nil, !isGivenUp else { return nil }
        guard let lastAttempt else { return .distantPast }
        return lastAttempt + Self.pause(after: attempts)
    }

    /// Whether it is to be told now. A clock that was set back must not put it off.
    func isDue(_ now: UnixTime) -> Bool {
        guard let dueAt else { return false }
        return dueAt <= now || dueAt.since(now) > Self.pause(after: attempts)
    }

    /// Something has changed: it is told at once, and old answers no longer count.
    mutating func aim(_ goal: Goal, at version: UInt64) {
        self.goal = goal
        target = version
        attempts = 0
        lastAttempt = nil
        mismatches = 0
        halt = nil
        requests = []
    }

    /// It holds a higher version: told again at once the first time, then by the same pauses.
    mutating func raise(to version: UInt64) {
        mismatches += 1
        target = version
        requests = []
        if mismatches == 1 { lastAttempt = nil }
        if mismatches > StatusLimits.versionMismatches { halt = .versionMismatch }
    }

    mutating func note(_ request: Secret, at now: UnixTime) {
        // More than attempts there are only of what was not published.
        if requests.count >= StatusLimits.registrationAttempts { requests.removeFirst() }
        requests.append(request)
        attempts += 1
        lastAttempt = now
    }

    /// The last attempt was none.
    mutating func unsent() {
        attempts = max(0, attempts - 1)
        lastAttempt = nil
    }

    static func pause(after attempts: Int) -> Duration {
        guard attempts > 0 else { return .zero }
        let n = min(attempts, StatusLimits.registrationAttempts)
        return StatusLimits.registrationPause * (n << n)
    }

    // MARK: keeping

    var row: [Secret] {
        [
            Secret(Hex.encode(server.compressed).utf8), Secret(goal.rawValue.utf8),
            Secret(String(target).utf8), Secret(String(reached).utf8), Secret(String(attempts).utf8),
            EndRows.text(lastAttempt), Secret(String(mismatches).utf8), Secret((halt?.rawValue ?? "").utf8),
            Secret((isListed ? "listed" : "left").utf8)
        ] + requests.map(\.hexDigits)
    }

    /// - Returns: `nil` for a row that ``row`` has not written.
    init?(_ row: ArraySlice<Secret>) {
        let row = Array(row)
        guard (9...9 + StatusLimits.registrationAttempts).contains(row.count),
            let server = EndRows.point(row[0]), let goal = Goal(rawValue: row[1].word),
            let target = UInt64(row[2].word), let reached = UInt64(row[3].word),
            let attempts = Int(row[4].word), (0...StatusLimits.registrationAttempts).contains(attempts),
            let mismatches = Int(row[6].word), (0...StatusLimits.versionMismatches + 1).contains(mismatches),
            max(target, reached) <= StatusLimits.highestVersion
        else { return nil }
        self.init(server, goal, target: target)
        self.reached = reached
        self.attempts = attempts
        lastAttempt = EndRows.time(row[5])
        self.mismatches = mismatches
        halt = Halt(rawValue: row[7].word)
        isListed = row[8].word == "listed"
        for text in row[9...] {
            guard let id = text.fromHex, id.count == StatusLimits.hashBytes else { return nil }
            requests.append(id)
        }
    }
}

/// Values in rows of both ends.
enum EndRows {
    static func text(_ time: UnixTime?) -> Secret {
        Secret((time.map { String($0.milliseconds) } ?? "").utf8)
    }

    static func time(_ text: Secret) -> UnixTime? {
        Int64(text.word).map { UnixTime(milliseconds: $0) }
    }

    static func point(_ text: Secret) -> PublicPoint? {
        text.fromHex.flatMap { point(bytes: $0) }
    }

    static func point(bytes: Secret) -> PublicPoint? { bytes.reveal { PublicPoint($0) } }

    static func topicKey(_ text: Secret) -> Secret? {
        text.fromHex.flatMap { $0.count == StatusLimits.keyBytes ? $0 : nil }
    }

    static func text(_ point: PublicPoint) -> Secret { Secret(Hex.encode(point.compressed).utf8) }
}
