import NIOCore
import PushModel
import Simulators

/// A simulated server that stands beside a sandbox.
protocol SandboxServer: Sendable {
    /// Its name in the run file, and its address.
    var urls: [String: String] { get }
    /// What a person does with an address that is not self-evident, by its name.
    var purposes: [String: String] { get }
    func stop() async
}

extension SandboxServer {
    var purposes: [String: String] { [:] }
}

/// One of a protocol.
protocol SandboxPeer: SandboxServer {
    /// Points an instance of the protocol at it; leaves others as they are.
    func point(_ instance: inout InstanceConfiguration)
    /// Where somebody writes to accounts of its network; `nil`: messages come to it in another way.
    var post: SimulatedPost? { get }
}

extension SandboxPeer {
    var post: SimulatedPost? { nil }
}

/// What a sandbox gives to those who stand in it.
struct SandboxContext: Sendable {
    let authority: CertificateAuthority
    /// PEM of the authority.
    let authorityFile: String
    /// Where the sandbox's own credentials are.
    let folder: String
    let group: any EventLoopGroup
    let world: World

    /// URLs of servers with a certificate of the authority, by their names in the run file.
    static func urls(_ ports: [(name: String, port: Int?)]) -> [String: String] {
        Dictionary(
            ports.compactMap { name, port in port.map { (name, "https://127.0.0.1:\($0)") } },
            uniquingKeysWith: { $1 })
    }
}
