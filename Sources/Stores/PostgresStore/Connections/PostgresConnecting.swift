import CPostgres
import Foundation
import PushModel

/// Making connections, host by host, each within its time.
struct PostgresConnector: Sendable {
    let address: PostgresAddress
    let limits: PostgresLimits
    let purpose: Purpose

    /// What a connection is for.
    enum Purpose: Sendable, Hashable {
        case engine(Synchronous)
        /// Reads, and judges nothing.
        case inspection
    }

    /// Tries each host once.
    ///
    /// - Parameter tick: called while waiting; true ends it.
    /// - Returns: a session whose server is durable and, unless the URL says otherwise, can be written.
    /// - Throws: `.denied` when a server refused us, `.notDurable`, else `.unavailable`.
    func connect(_ tick: @escaping () -> Bool) throws(StoreError) -> PostgresSession {
        var fault = StoreError(.unavailable)
        for host in address.hosts {
            do {
                let session = PostgresSession(
                    try open(host, tick), limits: limits, tick: { _ = tick() })
                try PostgresOpening.prepare(session, limits: limits, purpose: purpose)
                return session
            } catch let error as PostgresFault {
                fault = worse(fault, error.error)
            } catch let error as StoreError {
                fault = worse(fault, error)
            } catch {
                fault = worse(fault, StoreError(.unavailable))
            }
            if tick() { break }
        }
        throw fault
    }

    /// What an operator must mend says more than that one host of several is down.
    private func worse(_ one: StoreError, _ other: StoreError) -> StoreError {
        one.code == .unavailable || one.code == .uncertain
            ? StoreError(other.code == .uncertain ? .unavailable : other.code) : one
    }

    private func open(
        _ host: PostgresAddress.Host, _ tick: () -> Bool
    ) throws(StoreError) -> OpaquePointer {
        guard let connection = start(host) else { throw StoreError(.unavailable) }
        // The message is then a severity and a code, in no language and with no name in it.
        PQsetErrorVerbosity(connection, PQERRORS_SQLSTATE)
        let end = ContinuousClock.now + .seconds(address.connectSeconds)
        var wants = PGRES_POLLING_WRITING
        while PQstatus(connection) != CONNECTION_BAD {
            if wants == PGRES_POLLING_OK { return connection }
            guard wants != PGRES_POLLING_FAILED, ContinuousClock.now < end, !tick() else { break }
            let events = wants == PGRES_POLLING_WRITING ? Int16(POLLOUT) : Int16(POLLIN)
            var entry = pollfd(fd: PQsocket(connection), events: events, revents: 0)
            // A tenth of a second: closing the store waits for this thread.
            if poll(&entry, 1, 100) != 0 { wants = PQconnectPoll(connection) }
        }
        let fault = Self.fault(of: connection)
        PQfinish(connection)
        throw fault
    }

    private func start(_ host: PostgresAddress.Host) -> OpaquePointer? {
        var options = address.options
        options["host"] = host.name
        options["hostaddr"] = host.numeric
        options["port"] = host.port
        var keywords: [UnsafeMutablePointer<CChar>?] = []
        var values: [UnsafeMutablePointer<CChar>?] = []
        for (keyword, value) in options {
            keywords.append(strdup(keyword))
            values.append(strdup(value))
        }
        if let password = address.password {
            keywords.append(strdup("password"))
            values.append(password.reveal { raw in raw.baseAddress.flatMap { strndup($0, raw.count) } })
        }
        defer {
            for case let value? in values {
                wipe(UnsafeMutableRawBufferPointer(start: value, count: strlen(value)))
            }
            for pointer in keywords + values { free(pointer) }
        }
        let names = (keywords + [nil]).map { UnsafePointer($0) }
        let texts = (values + [nil]).map { UnsafePointer($0) }
        return PQconnectStartParams(names, texts, 0)
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

extension PostgresConnector {
    /// Connects, waiting for a server that is just starting or being replaced.
    func connectPatiently() throws(StoreError) -> PostgresSession {
        let end = ContinuousClock.now + limits.openingPatience
        // Ends: each round connects, finds a fault that time does not mend, or comes nearer to the end.
        while true {
            do { return try connect { ContinuousClock.now > end } } catch {
                guard error.code == .unavailable, ContinuousClock.now < end else { throw error }
            }
            Pause.milliseconds(200)
        }
    }
}
