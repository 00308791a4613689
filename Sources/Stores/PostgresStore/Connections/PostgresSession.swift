import CPostgres
import Foundation
import PushModel

/// One statement to run: a text from `SQL/` and its parameters.
struct Query {
    let statement: Statement
    var parameters = Parameters()

    init(_ statement: Statement, _ fill: (inout Parameters) -> Void = { _ in }) {
        self.statement = statement
        fill(&parameters)
    }
}

/// The server process behind a connection, told apart from any that had its number before.
struct Backend: Sendable, Hashable {
    let pid: Int64
    /// Microseconds of the server's clock.
    let startedAt: Int64
}

/// One connection, used by one thread.
///
/// Statements go out in pipeline mode, several in an exchange that one `Sync` ends: all statements between
/// two of these are one transaction unless `BEGIN` says otherwise (libpq 15, §34.5).
final class PostgresSession {
    private let connection: OpaquePointer
    /// How long an exchange may take.
    var answerWithin: Duration
    /// Called about once a second while an answer is waited for.
    private let tick: () -> Void
    private let notices = Notices()
    private(set) var isBroken = false
    private(set) var facts = ServerFacts()
    private var prepared: Set<Int> = []
    private var plans = QueryPlanAge(now: .now)
    /// Between two looks at the clock and at what else the thread has to do.
    private static let sliceMilliseconds: Int64 = 500

    /// Takes over an open connection.
    init(_ connection: OpaquePointer, limits: PostgresLimits, tick: @escaping () -> Void) {
        self.connection = connection
        answerWithin = limits.statementTimeout + limits.answerGrace
        self.tick = tick
        PQsetnonblocking(connection, 1)
        PQenterPipelineMode(connection)
        // Receives the server's messages, which libpq would write to standard error.
        PQsetNoticeReceiver(
            connection,
            { context, result in
                guard let context, let result else { return }
                Unmanaged<Notices>.fromOpaque(context).takeUnretainedValue().take(result)
            }, Unmanaged.passUnretained(notices).toOpaque())
    }

    deinit { PQfinish(connection) }

    func stands(for facts: ServerFacts) { self.facts = facts }

    /// Nothing more is sent on it.
    func abandon() { isBroken = true }

    /// False once the server has ended the connection; asked before anything is sent on one that was idle.
    var isAlive: Bool {
        // A farewell may come before the end, so everything that has arrived is read. A server that goes on
        // sending without being asked is refused.
        for _ in 0..<Self.unaskedAtMost where !isBroken {
            var entry = pollfd(
                fd: PQsocket(connection), events: Int16(POLLIN) | Int16(Self.peerClosed), revents: 0)
            guard poll(&entry, 1, 0) > 0 else { return true }
            let isOver = entry.revents & (Int16(POLLHUP | POLLERR) | Int16(Self.peerClosed)) != 0
            if isOver || PQconsumeInput(connection) == 0 || PQstatus(connection) != CONNECTION_OK {
                isBroken = true
            }
        }
        isBroken = true
        return false
    }

    /// Messages between two exchanges: a notice, a changed setting, a farewell.
    private static let unaskedAtMost = 16
    /// `POLLRDHUP`: the other side has closed its direction (poll(2), Linux).
    private static let peerClosed: Int32 = 0x2000

    /// Runs statements and waits for all their results.
    ///
    /// - Parameter commits: whether their success commits something; then a lost answer is uncertain.
    /// - Throws: `.refused` with the first refusal; what follows it was not run, and a transaction that was
    ///   open is undone.
    @discardableResult
    func run(_ queries: [Query], commits: Bool) throws(PostgresFault) -> [Rows] {
        guard !isBroken else { throw .lost(mayStand: false) }
        notices.isUnreplicated = false
        let isReplanning = replans(queries)
        let queries = isReplanning ? [Query(PostgresSQL.forgetPlans)] + queries : queries
        let results = try send(queries)
        // From here on the server may commit.
        guard PQpipelineSync(connection) == 1 else { throw lose(mayStand: commits) }
        let answer = try collect(results, commits: commits)
        if let state = answer.refusal {
            if PQtransactionStatus(connection) != PQTRANS_IDLE { try undo() }
            throw .refused(state)
        }
        // An operator cut short the wait for a standby: the commit stands here, but perhaps not on the
        // standby as promised.
        if notices.isUnreplicated, commits { throw .lost(mayStand: true) }
        return isReplanning ? Array(answer.rows.dropFirst()) : answer.rows
    }

    private func replans(_ queries: [Query]) -> Bool {
        // Some statements that run only once need a separate transaction.
        guard queries.allSatisfy(\.statement.isKept) else { return false }
        return plans.exchanged(at: .now)
    }

    /// Several exchanges in one transaction, undone when `body` throws.
    ///
    /// - Parameter body: ends with an exchange that sends `COMMIT`, or throws.
    func transaction<Value>(
        _ body: (PostgresSession) throws(PostgresFault) -> Value
    ) throws(PostgresFault) -> Value {
        do {
            return try body(self)
        } catch {
            if !isBroken, PQtransactionStatus(connection) != PQTRANS_IDLE { try undo() }
            throw error
        }
    }

    private func undo() throws(PostgresFault) {
        let results = try send([Query(PostgresSQL.rollback)])
        guard PQpipelineSync(connection) == 1 else { throw lose(mayStand: false) }
        _ = try collect(results, commits: false)
    }

    // MARK: sending

    /// What one result of an exchange answers.
    private enum Asked {
        /// To prepare the statement of that number.
        case parse(Int)
        case rows
    }

    /// What was asked, in the order of the results.
    private func send(_ queries: [Query]) throws(PostgresFault) -> [Asked] {
        var asked: [Asked] = []
        var under: Set<Int> = []
        for query in queries {
            let number = query.statement.number
            let isNew = query.statement.isKept && !prepared.contains(number) && under.insert(number).inserted
            asked += isNew ? [.parse(number), .rows] : [.rows]
            if isNew, PQsendPrepare(connection, query.statement.name, query.statement.text, 0, nil) == 0 {
                throw lose(mayStand: false)
            }
            let sent = query.parameters.withPointers { values, lengths, formats in
                let count = Int32(query.parameters.spans.count)
                return query.statement.isKept
                    ? PQsendQueryPrepared(
                        connection, query.statement.name, count, values, lengths, formats, 1)
                    : PQsendQueryParams(
                        connection, query.statement.text, count, nil, values, lengths, formats, 1)
            }
            guard sent == 1 else { throw lose(mayStand: false) }
        }
        return asked
    }

    // MARK: receiving

    private struct Answer {
        var rows: [Rows] = []
        var refusal: SQLState?
        /// Results so far, those of `Parse` included.
        var place = 0
        var isDone = false
    }

    private func collect(_ asked: [Asked], commits: Bool) throws(PostgresFault) -> Answer {
        let end = ContinuousClock.now + answerWithin
        var answer = Answer()
        var lastTick = ContinuousClock.now
        while true {
            try take(&answer, asked, commits: commits)
            if answer.isDone { return answer }
            let unsent = PQflush(connection)
            let now = ContinuousClock.now
            guard unsent >= 0, now < end else { throw lose(mayStand: commits) }
            if now - lastTick > .milliseconds(Self.sliceMilliseconds) {
                lastTick = now
                tick()
            }
            let events = Int16(POLLIN) | (unsent == 1 ? Int16(POLLOUT) : 0)
            var entry = pollfd(fd: PQsocket(connection), events: events, revents: 0)
            let span = min((end - now).wholeMilliseconds + 1, Self.sliceMilliseconds)
            let ready = poll(&entry, 1, Int32(span))
            if ready > 0, PQconsumeInput(connection) == 0 {
                // Messages before the end may say why.
                try take(&answer, asked, commits: commits)
                if answer.isDone { return answer }
                throw lose(mayStand: commits)
            }
        }
    }

    /// Takes the results that have come.
    private func take(_ answer: inout Answer, _ asked: [Asked], commits: Bool) throws(PostgresFault) {
        while !answer.isDone, PQisBusy(connection) == 0 {
            guard let result = PQgetResult(connection) else {
                // The end of one statement's results, or of the connection.
                guard PQstatus(connection) == CONNECTION_OK, answer.place <= asked.count else {
                    throw lose(mayStand: commits)
                }
                continue
            }
            switch PQresultStatus(result) {
            case PGRES_PIPELINE_SYNC:
                PQclear(result)
                answer.isDone = true
            case PGRES_TUPLES_OK, PGRES_COMMAND_OK:
                let rows = Rows(result)
                guard answer.place < asked.count else { throw lose(mayStand: commits) }
                switch asked[answer.place] {
                // It stays prepared whatever becomes of the transaction.
                case .parse(let number): prepared.insert(number)
                case .rows: answer.rows.append(rows)
                }
                answer.place += 1
            case PGRES_PIPELINE_ABORTED:
                PQclear(result)
                answer.place += 1
            default:
                let (state, isFatal) = Self.refusal(result)
                PQclear(result)
                answer.place += 1
                // The server ends the connection, and does not say whether it had committed.
                if isFatal { throw lose(mayStand: commits) }
                answer.refusal = answer.refusal ?? state
            }
        }
    }

    static func refusal(_ result: OpaquePointer) -> (SQLState, isFatal: Bool) {
        func field(_ code: Character) -> String {
            let number = Int32(code.asciiValue ?? 0)
            return PQresultErrorField(result, number).map { String(cString: $0) } ?? ""
        }
        let severity = field("V")
        let state = field("C")
        // libpq's own errors have no state: the connection is gone.
        return (SQLState(text: state), state.isEmpty || severity == "FATAL" || severity == "PANIC")
    }

    private func lose(mayStand: Bool) -> PostgresFault {
        isBroken = true
        return .lost(mayStand: mayStand)
    }
}

/// A message that the server sends unasked. Only one fact of it is kept.
private final class Notices {
    /// A wait for a synchronous standby was cut short, by an operator or at a shutdown: the commit stands on
    /// this server alone (`SyncRepWaitForLSN`, `src/backend/replication/syncrep.c`).
    var isUnreplicated = false

    func take(_ result: OpaquePointer) {
        guard let function = PQresultErrorField(result, Int32(UInt8(ascii: "R"))) else { return }
        if String(cString: function) == "SyncRepWaitForLSN" { isUnreplicated = true }
    }
}
