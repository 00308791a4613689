#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import PushModel

/// Whether each listener's address can be had, or is held by the relay of this very state directory.
struct PortChecks {
    let configuration: RelayConfiguration

    init(_ configuration: RelayConfiguration) { self.configuration = configuration }

    func check() -> [Finding] {
        let running: RunFile?
        // An unreadable run file says no more than an absent one.
        if case .running(let file)? = try? RunFile.find(state: configuration.state) {
            running = file
        } else {
            running = nil
        }
        return configuration.listeners.map { listener in
            let subject = "listeners.\(listener.name) (\(listener.bind))"
            let elsewhere = running.flatMap { port(of: listener, $0) }
            let code = bindFault(listener.bind)
            switch code {
            case 0:
                if let running, let elsewhere {
                    return .warning(
                        .ports, subject,
                        "The running relay, process \(running.pid), listens at port \(elsewhere) instead, so "
                            + "callers of this address are refused. A socket unit's ListenStream= and bind "
                            + "must name the same address; restart both after a change.")
                }
                return .good(.ports, subject, "The address is free.")
            case EADDRINUSE:
                if let running, running.urls[listener.name.text] != nil, elsewhere == nil {
                    return .good(.ports, subject, "The running relay, process \(running.pid), listens there.")
                }
                return .fault(
                    .ports, subject,
                    "Another program listens there; ss -ltnp shows which. Stop it or change bind. "
                        + "The service manager may stay: it keeps the socket of a relay with a socket unit.")
            case EADDRNOTAVAIL:
                return .fault(
                    .ports, subject, "This machine has no such address; ip addr shows those it has.")
            case EACCES:
                return .fault(
                    .ports, subject,
                    "This user may not listen on so low a port; use another, or grant CAP_NET_BIND_SERVICE."
                )
            default:
                return .fault(.ports, subject, "The system does not allow listening on this address.")
            }
        }
    }

    /// Where a running relay has a listener, if that is not where the configuration wants it: at a socket of
    /// the service manager, or of a configuration that has been changed since.
    private func port(of listener: ListenerConfiguration, _ running: RunFile) -> Int? {
        let port = running.urls[listener.name.text]?.split(separator: ":").last.flatMap { Int($0) }
        guard let port, listener.bind.port != 0, port != listener.bind.port else { return nil }
        return port
    }

    /// Listeners whose address another program has.
    func taken() -> [ConfiguredName] {
        configuration.listeners.filter { $0.bind.port != 0 && bindFault($0.bind) == EADDRINUSE }.map(\.name)
    }

    /// Binds for a moment, as a server would. 0, or the system's error number.
    private func bindFault(_ address: BindAddress) -> Int32 {
        let family = address.host.contains(":") ? AF_INET6 : AF_INET
        #if canImport(Glibc)
        let kind = Int32(SOCK_STREAM.rawValue)
        #else
        let kind = SOCK_STREAM
        #endif
        let descriptor = socket(family, kind, 0)
        guard descriptor >= 0 else { return errno }
        defer { close(descriptor) }
        var yes: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
        let port = in_port_t(UInt16(address.port).bigEndian)
        let isBound: Bool
        if family == AF_INET {
            var name = sockaddr_in()
            name.sin_family = sa_family_t(AF_INET)
            name.sin_port = port
            guard inet_pton(family, address.host, &name.sin_addr) == 1 else { return EINVAL }
            isBound = bindName(descriptor, &name)
        } else {
            var name = sockaddr_in6()
            name.sin6_family = sa_family_t(AF_INET6)
            name.sin6_port = port
            guard inet_pton(family, address.host, &name.sin6_addr) == 1 else { return EINVAL }
            isBound = bindName(descriptor, &name)
        }
        // Two sockets may bind with SO_REUSEADDR; only one may listen.
        guard isBound, listen(descriptor, 1) == 0 else { return errno }
        return 0
    }

    private func bindName<Name>(_ descriptor: Int32, _ name: inout Name) -> Bool {
        withUnsafePointer(to: &name) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<Name>.size)) == 0
            }
        }
    }
}
