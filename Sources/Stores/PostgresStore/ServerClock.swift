import PushModel
import Synchronization

/// Whether the server's clock has jumped, compared with the spans that this process measured.
///
/// Leases end by the server's clock. When a standby takes over whose clock is ahead, or somebody sets the
/// clock, owners that renewed a moment ago would count as dead. So for one lease span after a jump, deaths
/// are judged by the clock as it was before: after that time every living owner has renewed by the new clock.
struct ServerClock: Sendable {
    /// A step that is larger than network delays or clock synchronisation cause.
    private static let least = Duration.seconds(1)

    /// One look at the server's clock.
    struct Look: Sendable {
        var server: UnixTime
        /// When it was asked for, and when it was answered.
        var asked: ContinuousClock.Instant
        var answered: ContinuousClock.Instant
        /// How far a test is ahead of the server, and by which clock of its own.
        var ahead = Duration.zero
        var instant: ContinuousClock.Instant
    }

    private var last: Look?
    private var leap = Duration.zero
    private var leapEnds: ContinuousClock.Instant?
    /// How long a renewal holds.
    var lease = Duration.seconds(20)

    /// - Returns: what to subtract from the server's clock.
    mutating func leap(at look: Look) -> Duration {
        defer { last = look }
        if let leapEnds, look.instant >= leapEnds { (leap, self.leapEnds) = (.zero, nil) }
        guard let last, look.asked >= last.asked else { return leap }
        // The longest that can have passed between the server's two looks at its clock.
        let step = look.server.since(last.server) - last.asked.duration(to: look.answered)
        let ahead = look.ahead - last.ahead - last.instant.duration(to: look.instant)
        let leapt = max(.zero, step) + max(.zero, ahead)
        if leapt >= Self.least {
            leap += leapt
            leapEnds = look.instant + lease
        }
        return leap
    }
}

/// The server by whose clock leases are counted, as noted in the store.
///
/// A process that has just started has measured nothing, but it can see that the server is not the one by
/// whose clock others have renewed. The start time identifies a server: no two start in the same microsecond.
struct ClockServer: Sendable, Equatable {
    static let setting = "lease/server"

    /// Microseconds of its own clock.
    var startedAt: Int64
    /// When it was first seen, by its own clock.
    var seenAt: UnixTime

    var bytes: [UInt8] {
        withUnsafeBytes(of: (startedAt.bigEndian, seenAt.milliseconds.bigEndian)) { Array($0) }
    }

    init(startedAt: Int64, seenAt: UnixTime) {
        self.startedAt = startedAt
        self.seenAt = seenAt
    }

    init?(_ bytes: [UInt8]) {
        guard let words = Digest16(bytes) else { return nil }
        startedAt = Int64(bitPattern: words.high)
        seenAt = UnixTime(milliseconds: Int64(bitPattern: words.low))
    }
}

/// The server's clock, as far as it is trusted to decide who is dead.
final class DeathClock: Sendable {
    private let clock = Mutex(ServerClock())
    private let limits: PostgresLimits
    private let world: World
    private let journal: Journal

    init(limits: PostgresLimits, world: World, journal: Journal) {
        self.limits = limits
        self.world = world
        self.journal = journal
    }

    /// Further back than any lease, and not behind the zero of those who gave theirs up: but for them nobody
    /// is dead by such a clock.
    private static let never = Duration.seconds(50 * 365 * 86_400)

    /// More than a clock that was wrong is set back by.
    private static let longestLeap = Duration.seconds(5 * 365 * 86_400)

    /// The server's clock as deaths are told by it, as what to add to it in milliseconds.
    ///
    /// - Parameter lease: how long renewals hold from now on.
    func ahead(_ session: PostgresSession, lease: Duration? = nil) throws(PostgresFault) -> Int64 {
        let ahead = limits.aheadMilliseconds
        let asked = ContinuousClock.now
        let rows = try session.run(
            [
                Query(OwnerSQL.sightOfServer) { query in
                    query.add(ahead)
                    query.add(ClockServer.setting)
                }
            ], commits: false)[0]
        let now = try rows.time(0, 0)
        let startedAt = try rows.int(0, 1)
        let note = rows.isNull(0, 2) ? nil : ClockServer(rows.bytes(0, 2))
        let look = ServerClock.Look(
            server: now - .milliseconds(ahead), asked: asked, answered: .now, ahead: .milliseconds(ahead),
            instant: world.instant())
        let (leap, span) = clock.withLock { clock in
            if let lease { clock.lease = lease }
            return (clock.leap(at: look), clock.lease)
        }
        if leap > .zero { journal.note("database clock leapt", [.after: leap], level: .warning) }
        // A time that is years ahead was not written by us.
        guard let note, note.startedAt == startedAt, note.seenAt <= now + Self.longestLeap else {
            // If no server is noted, nobody has renewed by another.
            let seen = ClockServer(startedAt: startedAt, seenAt: note == nil ? .distantPast : now)
            try session.run(
                [
                    Query(SettingSQL.replaceSetting) { query in
                        query.add(ClockServer.setting)
                        query.add(seen.bytes)
                    }
                ], commits: true)
            if note != nil { journal.note("database server is another one", level: .warning) }
            return ahead - (note == nil ? leap : Self.never).wholeMilliseconds
        }
        let isNew = now < note.seenAt + span
        return ahead - (isNew ? Self.never : leap).wholeMilliseconds
    }
}
