import AdminIngress
import Delivery
import AtRest
import NIOCore
import PushModel
import SQLiteStore
import WebClient

/// What a relay stands in, the same before and after a reload.
struct Surroundings: Sendable {
    var hosting: Hosting
    var group: any EventLoopGroup
    var world: World
    var journal: Journal
    var metrics: PrometheusMetrics
    var limits = DeliveryLimits()
    var rotation = SealKeyRotation.Limits()
    var spans = RelaySpans()
    /// For the proof that the proof can fail.
    var synchronous: Synchronous = .full
    /// Addresses that a peer's URL may reach although they are not public: for tests and the sandbox.
    var web = WebOptions()
    /// Bytes that are free at a path; `nil`: the system does not tell.
    var freeBytes: @Sendable (String) -> Int64? = { DiskSpace.free(at: $0) }
    /// Files and sockets that this process may open; `nil`: as many as anybody asks for.
    var openFiles: Int?
    /// The relay is made to see whether it could be, and never runs: it keeps nothing in the state directory.
    var isRehearsal = false
    /// Sockets that listen already, of each listener.
    var sockets: [ConfiguredName: [CInt]] = [:]
    /// Stands between the sealed store and its engine: for tests that watch what is asked of it.
    var engine: @Sendable (any Engine) -> any Engine = { $0 }
}
