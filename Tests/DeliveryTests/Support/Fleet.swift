import AtRest
import Delivery
import PushModel
import PushTesting
import Synchronization
import Testing

/// Several processes on one store, and one clock for all.
enum Fleet {
    /// Runs as many cores as there are plans until `body` ends.
    static func run(
        _ depot: Depot, _ plans: [DeliveryService.Setup], limits: DeliveryLimits = DeliveryLimits(),
        _ body: ([Rig]) async throws -> Void
    ) async throws {
        try await add([], depot, plans[...], limits, body)
    }

    private static func add(
        _ rigs: [Rig], _ depot: Depot, _ plans: ArraySlice<DeliveryService.Setup>, _ limits: DeliveryLimits,
        _ body: ([Rig]) async throws -> Void
    ) async throws {
        guard let plan = plans.first else { return try await body(rigs) }
        try await Rig.run(depot, plan, limits: limits) { rig in
            try await add(rigs + [rig], depot, plans.dropFirst(), limits, body)
        }
    }
}

extension [Rig] {
    /// Lets time pass for all of them.
    func pass(_ span: Duration, step: Duration = .milliseconds(500)) async {
        await self[0].pass(span, step: step, sleepers: 3 * count)
    }

    /// Lets time pass until together they have ended so many pushes, not faster than the store answers.
    func pass(untilEnded number: Int) async throws {
        for _ in 0..<Rig.patience {
            try Task.checkCancellation()
            if reduce(0, { $0 + $1.outbox.ended.count }) >= number { return }
            await pass(.milliseconds(100), step: .milliseconds(100))
            for rig in self where !rig.outbox.isCut.withLock(\.self) { _ = try await rig.store.load() }
        }
        Issue.record("\(number) ended pushes in vain")
    }

    /// Lets time pass until the store owes so many: what others owe it knows by their last renewals.
    func pass(untilOwed number: Int) async throws {
        guard let living = first(where: { !$0.outbox.isCut.withLock(\.self) }) else { return }
        for _ in 0..<Rig.patience {
            try Task.checkCancellation()
            if try await living.store.load().rows == number { return }
            await pass(.seconds(1), step: .seconds(1))
        }
        Issue.record("\(number) owed pushes in vain")
    }
}
