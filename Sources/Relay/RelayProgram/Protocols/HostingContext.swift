import AdminIngress
import Delivery
import NIOCore
import PushModel

/// What instances stand on, the same before and after a reload.
struct HostingContext: Sendable {
    let delivery: DeliveryService
    let registry: any Registry
    let web: any WebFetch
    /// The same, for servers behind an authority of the configuration's own: a PEM file.
    let webTrusting: @Sendable (_ authorityFile: String) -> any WebFetch
    /// What else stands in this relay, once the instance is in force.
    let neighbours: @Sendable () -> [any HostedInstance]
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
