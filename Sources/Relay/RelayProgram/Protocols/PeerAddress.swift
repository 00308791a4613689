import PushModel

/// Where a push service or an instance's peer is reached, for the doctor.
struct PeerAddress: Hashable {
    var host: String
    var port: Int
    /// PEM file of the authority to trust instead of the system's.
    var caFile: String?
    /// Without TLS: a proxy, or a relay on this machine.
    var isPlain = false
    /// It must speak HTTP/2, and is reached through the proxy where there is one.
    var isPushService = false
    /// Path of a local socket, instead of host and port.
    var socket: String?
}

extension PeerAddress {
    /// A push service's: the one that the configuration names, else its own.
    init(_ base: HTTPSBase?, or own: String, caFile: String?) {
        self.init(
            host: base?.host ?? own, port: base?.port ?? 443, caFile: caFile, isPushService: true)
    }

    init(socket: String) { self.init(host: "", port: 0, isPlain: true, socket: socket) }
}
