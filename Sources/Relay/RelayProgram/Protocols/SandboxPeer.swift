import NIOCore
import PushModel
import Simulators

/// A simulated server that stands beside a sandbox for one protocol.
protocol SandboxPeer: Sendable {
    /// Its name in the run file, and its address.
    var urls: [String: String] { get }
    /// Points an instance of the protocol at it; leaves others as they are.
    func point(_ instance: inout InstanceConfiguration)
    func stop() async
}

/// What a sandbox gives to those who stand in it.
struct SandboxGround: Sendable {
    let authority: CertificateAuthority
    /// PEM of the authority.
    let authorityFile: String
    let group: any EventLoopGroup
    let world: World
}
