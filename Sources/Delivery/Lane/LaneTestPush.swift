import PushModel

extension Lane {
    func testPush(_ message: ProviderMessage) async -> TestPushResult {
        let result = await provider.tryOnce(message, world: core.world, limits: core.limits)
        if let answer = result.answer {
            let now = core.world.now()
            core.observer.attempted?(
                Attempt(
                    id: result.id, lane: name, number: 1, sentAt: answer.sentAt, answeredAt: now,
                    outcome: OutcomeKind(answer.outcome), reason: answer.reason, next: .ended))
        }
        return result
    }
}
