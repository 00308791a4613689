import HTTP2Client
import NIOCore
import Primitives
import PushModel

/// What the lanes of push services stand on, and how the number is made that tells whether one must be
/// replaced by a reload.
struct LaneContext: Sendable {
    /// Through which every push service is reached.
    let proxy: OutgoingProxy?
    let group: any EventLoopGroup
    let world: World
    let journal: Journal
    let options: HTTP2Options
    /// What is sent is to reach nobody: for services that can look at a message without delivering it.
    var isTrial = false

    var tunnel: HTTP2Endpoint.Proxy? {
        proxy.map { HTTP2Endpoint.Proxy(host: $0.host, port: $0.port) }
    }

    /// PEM of the authorities to trust; `nil`: the system's.
    func authority(_ file: String?) throws(CommandFailure) -> [UInt8]? {
        guard let file else { return nil }
        return try CredentialCache.read(file).reveal { Array($0) }
    }

    /// What a lane is at its service: a digest of credential, address of the service, and lane, by which a
    /// change is known after a restart too.
    func identity(_ credential: Secret, _ target: String?, _ lane: LaneName) -> Secret {
        let place = Array("\(lane) \(target ?? "")".utf8)
        return credential.reveal { credential in
            place.withUnsafeBytes { Secret(SHA256.hash(joining: [credential, $0])) }
        }
    }

    /// - Parameters:
    ///   - credential: the stamp of the credential's entry.
    ///   - target: what else of the settings its provider is made with.
    func stamp(_ credential: Int, _ target: String?, _ certificates: [UInt8]?) -> Int {
        var hasher = Hasher()
        hasher.combine(credential)
        hasher.combine(target)
        hasher.combine(certificates)
        hasher.combine(proxy)
        return hasher.finalize()
    }
}
