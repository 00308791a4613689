import AdminIngress
import Delivery
import NIOCore
import PushModel

/// What instances stand on, the same before and after a reload.
struct HostingGround: Sendable {
    let delivery: DeliveryService
    let registry: any Registry
    let web: any WebFetch
    let group: any EventLoopGroup
    let world: World
    let journal: Journal
    let metrics: PrometheusMetrics
    let spans: RelaySpans
    /// For what happens one by one.
    let events: EventLog
    /// What is made here never runs, and must write nothing.
    let isRehearsal: Bool
}
