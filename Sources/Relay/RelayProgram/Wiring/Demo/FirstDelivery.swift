import PushModel
import Simulators

extension World {
    /// The first delivery, or `nil` when none comes in time.
    func firstDelivery(within patience: Duration, of deliveries: AsyncStream<Delivery>) async -> Delivery? {
        let end = instant() + patience
        return await withTaskGroup(of: Delivery?.self) { group in
            group.addTask {
                for await delivery in deliveries { return delivery }
                return nil
            }
            group.addTask {
                // Ends early only when the delivery has come.
                try? await sleep(end)
                return nil
            }
            let first = await group.next() ?? nil
            group.cancelAll()
            return first
        }
    }
}
