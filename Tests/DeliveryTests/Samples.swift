import Delivery
import PushModel

/// Pushes for tests: small, all alike but for what is named.
func samplePush(
    _ number: Int, origin: UInt64 = 1, pushClass: PushClass = .normal, notBefore: UnixTime = .distantPast,
    custodyEnds: UnixTime = UnixTime(seconds: 1_000_000), touchedAt: UnixTime = .distantPast,
    attempt: Int = 0,
    record: Digest16? = Digest16(high: 9, low: 9)
) -> OwedPush {
    OwedPush(
        id: PushID(Digest16(high: 0, low: UInt64(number))), row: Int64(number), lane: sampleLane,
        pushClass: pushClass, origin: Digest16(high: 0, low: origin), record: record, touchedAt: touchedAt,
        notBefore: notBefore, custodyEnds: custodyEnds, attempt: attempt, epoch: 1, mark: nil,
        instance: ConfiguredName("zulip-main")!,
        message: .fcm(
            FCMMessage(address: Secret("token-\(number)".utf8), priority: .high, data: Secret("{}".utf8))))
}

let sampleLane = LaneName(app: ConfiguredName("acme")!, service: .fcm, environment: .production)

func entry(_ push: OwedPush) -> LaneQueue.Entry {
    LaneQueue.Entry(push: push, isFirst: true, environmentKnown: true)
}
