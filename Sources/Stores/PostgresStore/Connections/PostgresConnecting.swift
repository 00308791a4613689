import CPostgres
import Dialling
import Foundation
import PushModel
import Synchronization

/// Making connections, host by host, each address of a host within its time.
///
/// libpq blocks its caller while it looks a name up, and gives all addresses together, one after the other,
/// the time of one. So names are looked up here, and addresses are tried in parallel (RFC 8305).
struct PostgresConnector: Sendable {
    let address: PostgresAddress
    let limits: PostgresLimits
    let purpose: Purpose
    let dialling: DialOptions
    private let memory = DialMemory()

    init(
        address: PostgresAddress, limits: PostgresLimits, purpose: Purpose,
        dialling: DialOptions = DialOptions()
    ) {
        self.address = address
        self.limits = limits
        self.purpose = purpose
        self.dialling = dialling
    }

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
            var ways = ways(to: host, tick)
            // Ends, because each round but the last removes one of the remaining addresses.
            while !ways.isEmpty, !tick() {
                do {
                    var race = PostgresRace(ways, address, dialling.limits)
                    let (connection, way) = try race.run(tick) { start(host, $0) }
                    ways.removeAll { $0 == way }
                    let session = PostgresSession(connection, limits: limits, tick: { _ = tick() })
                    try PostgresOpening.prepare(session, limits: limits, purpose: purpose)
                    if let name = host.name, let way { memory.worked(way, for: name) }
                    return session
                } catch let error as PostgresRace.Lost {
                    fault = worse(fault, error.fault)
                    ways = []
                } catch let error as PostgresFault {
                    fault = worse(fault, error.error)
                } catch let error as StoreError {
                    fault = worse(fault, error)
                } catch {
                    fault = worse(fault, StoreError(.unavailable))
                }
            }
            if tick() { break }
        }
        throw fault
    }

    /// A fault that the operator must fix says more than that one host of several is down.
    private func worse(_ one: StoreError, _ other: StoreError) -> StoreError {
        one.code == .unavailable || one.code == .uncertain
            ? StoreError(other.code == .uncertain ? .unavailable : other.code) : one
    }

    // MARK: Where to

    /// The addresses of a host, best first; `nil`: libpq knows, as for the socket of a server on this
    /// machine.
    private func ways(to host: PostgresAddress.Host, _ tick: () -> Bool) -> [IPAddress?] {
        guard host.numeric == nil, let name = host.name, !name.hasPrefix("/"), !name.hasPrefix("@"),
            IPAddress(name) == nil
        else { return [nil] }
        let found = lookUp(name, tick)
        // A link-local address is useless without the link's name, which only the system's own form has.
        if found.contains(where: \.isLinkLocal) { return [nil] }
        return DialOrder.order(found, preferred: memory.last(name), limit: dialling.limits.addresses)
    }

    /// Blocks, no longer than a host may take to answer.
    private func lookUp(_ name: String, _ tick: () -> Bool) -> [IPAddress] {
        let answer = Mutex<[IPAddress]?>(nil)
        let lookUp = LookUp(name) { found in answer.withLock { $0 = found } }
        dialling.resolver.begin(lookUp)
        let end = ContinuousClock.now + .seconds(address.connectSeconds)
        while answer.withLock({ $0 == nil }), ContinuousClock.now < end, !tick() { Pause.milliseconds(2) }
        lookUp.cancel()
        dialling.resolver.leave(lookUp)
        return answer.withLock(\.self) ?? []
    }

    private func start(_ host: PostgresAddress.Host, _ way: IPAddress?) -> OpaquePointer? {
        var options = address.options
        // The certificate must still carry the name, and the password is still looked up by the name.
        options["host"] = host.name
        options["hostaddr"] = way?.text ?? host.numeric
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
        guard let connection = PQconnectStartParams(names, texts, 0) else { return nil }
        // The message then consists of a severity and a code, without text in any language and without names.
        PQsetErrorVerbosity(connection, PQERRORS_SQLSTATE)
        return connection
    }
}

extension PostgresConnector {
    /// Connects, waiting for a server that is just starting or being replaced.
    func connectPatiently() throws(StoreError) -> PostgresSession {
        let end = ContinuousClock.now + limits.openingPatience
        // Ends, because each round connects, finds a fault that does not pass, or uses up time.
        while true {
            do { return try connect { ContinuousClock.now > end } } catch {
                guard error.code == .unavailable, ContinuousClock.now < end else { throw error }
            }
            Pause.milliseconds(200)
        }
    }
}
