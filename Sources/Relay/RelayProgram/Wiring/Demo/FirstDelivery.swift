import PushModel
import Simulators

extension World {
    /// The first delivery, or `nil` when none comes in time.
    func firstDelivery(within patience: Duration, of deliveries: AsyncStream<Delivery>) async -> Delivery? {
        await untilEnd(instant() + patience) {
            for await delivery in deliveries { return delivery }
            return nil
        } ?? nil
    }
}
