import Primitives
import PushModel
import SessionPush
import SwarmIngress
import WireFormats

/// What the keys of a Session instance say.
struct SessionSettings: Sendable, Hashable {
    /// Which app a service's tokens belong to.
    var services: [SessionService: ConfiguredName]
    /// The private key that apps encrypt requests to (`SessionKeyFile`).
    var onionKeyFile: String
    /// `nil` in a sandbox alone, which has its own.
    var oxend: OxendAddress?
    /// oxend's X25519 key, 64 hexadecimal digits; `nil`: it is spoken to in the clear, on this machine.
    var oxendKey: String?
    var policy: SessionPolicy
    /// Whether `/subscribe` and `/unsubscribe` are answered outside onion requests too.
    var hasPlainHTTP: Bool
}

extension SessionSettings: InstanceSettings {
    static let plainPaths = ["/subscribe", "/unsubscribe"]
    static let onionPath = "/oxen/v4/lsrpc"
    static let paths = plainPaths + [onionPath]

    func paths(of instance: ConfiguredName) -> [String] {
        (hasPlainHTTP ? Self.plainPaths : []) + [Self.onionPath]
    }

    func app(for service: PushService) -> ConfiguredName? {
        service == .fcm ? services[.firebase] : services[.apns] ?? services[.apnsSandbox]
    }

    var peers: [PeerAddress] { oxend.map { [$0.peer] } ?? [] }

    /// Nodes of the live network, and the simulated one's; a relay that shares them out needs its part alone,
    /// but all when the others have gone.
    private var nodes: Int { oxend == nil ? 16 : 2_000 }
    var descriptors: Int { (nodes + 1) * SwarmLimits.filesPerPeer }

    func makeSandboxKeys() throws(CommandFailure) {
        try SessionKeyFile.make(once: onionKeyFile, .generate(.live))
    }
}

extension InstanceConfiguration {
    var session: SessionSettings? { settings as? SessionSettings }
}

extension FileContent {
    static let onionKey = SessionKeyFile.content("an onion key")
    /// Which the relay makes.
    static let coreKey = SessionKeyFile.content("a core key")
}

extension SessionSettings: KeyMaking {
    func madeKey(of instance: ConfiguredName, state: String) -> (content: FileContent, file: String) {
        (.coreKey, SessionKeyFile.corePath(instance, state: state))
    }
}
