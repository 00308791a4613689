@testable import Delivery
import PushModel
import PushTesting
import Synchronization

/// A volatile push whose address is `t<number>`.
func volatilePush(
    _ number: Int, bundle: String? = nil, custody: Duration = .seconds(600), at now: UnixTime
) -> VolatilePush {
    let token = Secret("t\(number)".utf8)
    let message: ProviderMessage =
        if let bundle {
            .apns(
                APNsMessage(
                    token: token, bundle: bundle, pushType: .background, priority: 5,
                    payload: Secret(#"{"aps":{"content-available":1}}"#.utf8)))
        } else {
            .fcm(FCMMessage(address: token, priority: .high, data: Secret("{}".utf8)))
        }
    return VolatilePush(message: message, pushClass: .normal, custodyEnds: now + custody)
}

extension Rig {
    /// Takes volatile pushes in.
    @discardableResult
    func admitVolatile(
        _ numbers: some Sequence<Int>, bundle: String? = nil, custody: Duration = .seconds(600)
    ) -> VolatileAdmission {
        let pushes = numbers.map { volatilePush($0, bundle: bundle, custody: custody, at: clock.now) }
        return service.volatileIntake.admit(
            VolatileVerdict<Void>(pushes: pushes), instance: Names.instance)
    }

    /// Lets time pass until nothing volatile is owed.
    func passUntilNothingOwed() async {
        while service.volatileOwed > 0, !Task.isCancelled {
            await pass(.milliseconds(100))
            for _ in 0..<50 where service.volatileOwed > 0 { await Task.yield() }
        }
    }
}

/// What is asked of a store, by the calls through which content could reach it.
final class EngineSpy: ForwardingEngine {
    let base: any Engine
    /// Calls that write, or that look something up by a name made of content.
    let calls = Trace()

    init(_ base: any Engine) { self.base = base }

    func find(_ keys: [Digest16], often: Int, now: UnixTime) async throws(StoreError) -> [StoredRecord?] {
        calls.add("find")
        return try await base.find(keys, now: now)
    }

    func page(
        _ index: StoredIndex, after: UInt64, limit: Int, now: UnixTime
    ) async throws(StoreError) -> [StoredRecord] {
        calls.add("page")
        return try await base.page(index, after: after, limit: limit, now: now)
    }

    func apply(_ changes: [StoredChange], now: UnixTime) async throws(StoreError) -> Applied {
        calls.add("apply")
        return try await base.apply(changes, now: now)
    }

    func accept(
        _ pushes: [StoredPush], changes: [StoredChange], now: UnixTime
    ) async throws(StoreError) -> StoredAccepted {
        calls.add("accept \(pushes.count)")
        return try await base.accept(pushes, changes: changes, now: now)
    }

    func settle(
        _ steps: [StoredSettlement], feedback: [StoredChange], now: UnixTime
    ) async throws(StoreError) -> [Bool] {
        calls.add("settle \(steps.count)")
        return try await base.settle(steps, feedback: feedback, now: now)
    }
}
