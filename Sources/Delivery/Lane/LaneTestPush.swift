import PushModel

extension Lane {
    func testPush(_ message: ProviderMessage) async -> TestPushResult {
        let (world, limits) = (core.world, core.limits)
        let now = world.now()
        let nobody = Digest16(high: 0, low: 0)
        let push = OwedPush(
            id: PushID(at: now, random: world.random(), world.random()), row: 0, lane: name,
            pushClass: .normal, origin: nobody, record: nil, touchedAt: now, notBefore: now,
            custodyEnds: now + limits.trialAnswer, attempt: 0, epoch: 0, mark: nil, instance: name.app,
            message: message)
        let end = world.instant() + limits.trialWait
        let answer = await withTaskGroup(of: Answer?.self) { group in
            group.addTask {
                guard let slot = try? await self.provider.reserve() else { return nil }  // Cancelled.
                let end = world.instant() + limits.trialAnswer
                let lease = LeasedPush(granting: push, sendBefore: end, answerBy: end)
                return await self.provider.send(lease, on: slot)
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
        if let answer {
            core.observer.attempted?(Attempt(push, answer, answer.outcome, .ended, at: world.now()))
        }
        return TestPushResult(id: push.id, lane: name, answer: answer)
    }
}
