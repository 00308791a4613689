import CPostgres
import Dialling
import Foundation
import PushModel

/// Connections to the addresses of one host, made beside each other on one thread; the first that the server
/// has let in wins.
struct PostgresRace {
    /// No address led to a server that let us in.
    struct Lost: Error {
        let fault: StoreError
    }

    private struct Attempt {
        let number: Int
        let connection: OpaquePointer
        /// Its own time, as libpq counts it: each address has as much.
        let end: ContinuousClock.Instant
        var wants = PGRES_POLLING_WRITING
    }

    /// A tenth of a second: closing the store waits for this thread.
    private static let waitAtMost = Duration.milliseconds(100)

    private let ways: [IPAddress?]
    private let span: Duration
    private var race: DialRace
    private var attempts: [Attempt] = []
    private var fault = StoreError(.unavailable)

    init(_ ways: [IPAddress?], _ address: PostgresAddress, _ limits: DialLimits) {
        self.ways = ways
        span = .seconds(address.connectSeconds)
        race = DialRace(count: ways.count, limits: limits, within: span, at: .now)
    }

    /// - Parameters:
    ///   - tick: called while waiting; true ends it.
    ///   - start: begins a connection; `nil` when memory is short.
    /// - Throws: ``Lost``.
    mutating func run(
        _ tick: () -> Bool, _ start: (IPAddress?) -> OpaquePointer?
    ) throws(Lost) -> (connection: OpaquePointer, way: IPAddress?) {
        defer { for attempt in attempts { PQfinish(attempt.connection) } }
        // Ends, because each attempt has a deadline, and there are as many attempts as addresses.
        while !race.isLost, !tick() {
            while let number = race.start(at: .now) {
                guard let connection = start(ways[number]) else {
                    race.fail(number)
                    continue
                }
                attempts.append(Attempt(number: number, connection: connection, end: .now + span))
            }
            wait()
            if let winner = attempts.firstIndex(where: { $0.wants == PGRES_POLLING_OK }) {
                let attempt = attempts.remove(at: winner)
                return (attempt.connection, ways[attempt.number])
            }
            lose()
        }
        throw Lost(fault: fault)
    }

    /// Until a socket is ready or the next attempt is due; then lets libpq go on.
    private mutating func wait() {
        var entries = attempts.map { attempt in
            pollfd(
                fd: PQsocket(attempt.connection),
                events: Int16(attempt.wants == PGRES_POLLING_WRITING ? POLLOUT : POLLIN), revents: 0)
        }
        let now = ContinuousClock.now
        let next = race.nextStart.map { $0 - now } ?? Self.waitAtMost
        let span = min(Self.waitAtMost, max(.zero, next)).wholeMilliseconds
        guard poll(&entries, nfds_t(entries.count), Int32(span) + 1) > 0 else { return }
        for (index, entry) in entries.enumerated() where entry.revents != 0 {
            attempts[index].wants = PQconnectPoll(attempts[index].connection)
            let status = PQstatus(attempts[index].connection)
            if status != CONNECTION_STARTED, status != CONNECTION_NEEDED {
                race.take(attempts[index].number, at: .now)
            }
        }
    }

    /// Ends what has failed or has had its time.
    private mutating func lose() {
        for attempt in attempts {
            let isOver =
                attempt.wants == PGRES_POLLING_FAILED || PQstatus(attempt.connection) == CONNECTION_BAD
            guard isOver || attempt.end <= .now else { continue }
            let own = Self.fault(of: attempt.connection)
            // A server's refusal says more than the silence of another.
            if own.code != .unavailable { fault = own }
            PQfinish(attempt.connection)
            race.fail(attempt.number)
            attempts.removeAll { $0.number == attempt.number }
        }
    }

    private static func fault(of connection: OpaquePointer) -> StoreError {
        if PQconnectionNeedsPassword(connection) == 1 { return StoreError(.denied) }
        let message = PQerrorMessage(connection).map { String(cString: $0) } ?? ""
        // "FATAL:  28P01": the only words in it that are looked at.
        let words = message.split { !$0.isLetter && !$0.isNumber }
        guard let at = words.lastIndex(of: "FATAL"), at + 1 < words.count, words[at + 1].utf8.count == 5
        else {
            return StoreError(.unavailable)
        }
        return StoreError(SQLState(text: String(words[at + 1])).storeCode)
    }
}
