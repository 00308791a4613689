package import CoreMetrics
package import PushModel
package import StatusPush
import Synchronization

/// The way out to the Waku network, over one node's REST interface.
///
/// It stands by itself: whoever answers messages holds it, and the ingress holds whoever answers. So nobody
/// holds the ingress.
package final class WakuOutlet: Sendable {
    package let name: ConfiguredName
    package let node: WakuNode
    let calls: WakuCalls
    let metrics: WakuMetrics
    /// The node shows us our own messages too.
    let seen = SeenWakuMessages()
    private let publisher: WakuPublisher
    private let refusals: Mutex<FaultRun>
    private let world: World

    /// - Parameter web: fetches from the node; plain http on this machine, with connections that are kept.
    package init(
        name: ConfiguredName, node: WakuNode, web: any WebFetch, limits: WakuLimits = WakuLimits(),
        world: World, metrics factory: any MetricsFactory
    ) {
        self.name = name
        self.node = node
        self.world = world
        metrics = WakuMetrics(name, factory)
        calls = WakuCalls(node: node, web: web, limits: limits)
        publisher = WakuPublisher(calls: calls, limits: limits, world: world)
        refusals = Mutex(FaultRun(limits.refusals))
    }

    /// Publishes a message, and waits until the node has taken it. It is tried again where the node is away
    /// or cannot; whether the ingress runs does not matter.
    ///
    /// - Throws: `.refused`, `.overloaded`; `.nodeAway` after ``WakuLimits/publishWithin``.
    package func publish(_ message: WakuMessage) async throws(WakuError) {
        _ = seen.note(message.hash(pubsubTopic: node.pubsubTopic))
        do throws(WakuError) {
            try await publisher.publish(message)
            metrics.published(nil)
            refusals.withLock { $0.succeeded() }
        } catch {
            metrics.published(error)
            // That too many wait is no word of the node's.
            if error != WakuError(.overloaded) { refusals.withLock { $0.failed(at: world.instant()) } }
            throw error
        }
    }

    /// Messages under way, or waiting.
    var publishing: Int { publisher.count }
    /// Messages that the node took.
    var published: Int { publisher.published }
    /// Messages in a row that the node did not take; 0: too few to tell of.
    var refused: Int { refusals.withLock { $0.told(at: world.instant()) } }
}
