import PushModel

/// A push that is sent to see what comes of it, beside everything that is owed.
extension Provider {
    /// - Returns: the service's answer; `nil`: no connection within ``DeliveryLimits/trialWait``.
    func tryOnce(
        _ message: ProviderMessage, world: World, limits: DeliveryLimits
    ) async -> TestPushResult {
        let now = world.now()
        let nobody = Digest16(high: 0, low: 0)
        let push = OwedPush(
            id: PushID(at: now, random: world.random(), world.random()), row: 0, lane: lane,
            pushClass: .normal, origin: nobody, record: nil, touchedAt: now, notBefore: now,
            custodyEnds: now + limits.trialAnswer, attempt: 0, epoch: 0, mark: nil, instance: lane.app,
            message: message)
        let end = world.instant() + limits.trialWait
        let answer = await withTaskGroup(of: Answer?.self) { group in
            group.addTask {
                guard let slot = try? await self.reserve() else { return nil }  // Cancelled.
                let end = world.instant() + limits.trialAnswer
                let lease = LeasedPush(granting: push, sendBefore: end, answerBy: end)
                return await self.send(lease, on: slot)
            }
            group.addTask {
                // Ends early when the answer is there.
                try? await world.sleep(end)
                return nil
            }
            var found: Answer?
            // The one that ends first ends the other; a request under way is still answered.
            for await answer in group {
                found = found ?? answer
                group.cancelAll()
            }
            return found
        }
        return TestPushResult(id: push.id, lane: lane, answer: answer)
    }

    /// The same for several, one behind the other, where nobody runs the provider.
    func tryEach(
        _ messages: [ProviderMessage], world: World, limits: DeliveryLimits
    ) async -> [TestPushResult] {
        await withTaskGroup(of: Void.self) { group in
            // It ends when cancelled, which is no fault.
            group.addTask { try? await self.run() }
            var results: [TestPushResult] = []
            for message in messages {
                results.append(await self.tryOnce(message, world: world, limits: limits))
            }
            group.cancelAll()
            return results
        }
    }
}
