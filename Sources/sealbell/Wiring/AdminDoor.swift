import CoreMetrics
import Delivery
import HTTPIngress
import PushModel

/// The admin listener's face.
struct AdminDoor: Sendable {
    let delivery: DeliveryService
    let store: OpenStore
    let metrics: any MetricsFactory
    let world: World

    func face(_ listener: ListenerConfiguration) throws(CommandFailure) -> any HTTPFace {
        throw CommandFailure(.software, "no admin face")
    }
}
