import Delivery
import PushModel

/// Pushes for tests: small, all alike but for what is named.
func samplePush(
    _ number: Int, origin: UInt64 = 1, pushClass: PushClass = .normal, notBefore: UnixTime = .distantPast,
    custodyEnds: UnixTime = UnixTime(seconds: 1_000_000), touchedAt: UnixTime = .distantPast,
    attempt: Int = 0, phone: String? = nil, record: Digest16? = Digest16(high: 9, low: 9),
    lane: LaneName = sampleLane
) -> OwedPush {
    OwedPush(
        id: PushID(Digest16(high: 0, low: UInt64(number))), row: Int64(number), lane: lane,
        pushClass: pushClass, origin: Digest16(high: 0, low: origin), record: record, touchedAt: touchedAt,
        registeredAddress: sampleAddress, notBefore: notBefore, custodyEnds: custodyEnds, attempt: attempt,
        epoch: 1, mark: nil,
        instance: ConfiguredName("zulip-main")!,
        message: .fcm(
            FCMMessage(
                address: Secret((phone ?? "token-\(number)").utf8), priority: .high,
                data: Secret("{}".utf8))))
}

let sampleAddress = Digest16(high: 8, low: 8)
let sampleLane = LaneName(app: ConfiguredName("acme")!, service: .fcm, environment: .production)

func entry(_ push: OwedPush) -> LaneQueue.Entry {
    LaneQueue.Entry(push: push, isFirst: true, environmentKnown: true)
}

/// A push as a role yields it. Its address is `t<number>`; so is what makes a repeat recognisable.
func push(
    _ number: Int, origin: String = "one", _ pushClass: PushClass = .normal, bundle: String? = nil,
    environment: Environment? = nil, app: ConfiguredName? = nil, address: String? = nil,
    record: RecordKey? = nil, touchedAt: UnixTime = .distantPast,
    custodyEnds: UnixTime = UnixTime(seconds: 1_801_000_000)
) -> Push {
    let token = Secret((address ?? "t\(number)").utf8)
    let message: ProviderMessage =
        if let bundle {
            .apns(
                APNsMessage(
                    token: token, bundle: bundle, environment: environment, pushType: .alert, priority: 10,
                    payload: Secret("{\"n\":\(number)}".utf8)))
        } else {
            .fcm(
                FCMMessage(
                    address: token, app: app, priority: .high, data: Secret("{\"n\":\(number)}".utf8)))
        }
    return Push(
        message: message, pushClass: pushClass, origin: Secret(origin.utf8), record: record,
        touchedAt: touchedAt, custodyEnds: custodyEnds, repeatIdentity: Secret("t\(number)".utf8))
}

extension OwedPush {
    /// The same but for what is named.
    func with(attempt: Int? = nil, epoch: Int64? = nil, message other: ProviderMessage? = nil) -> OwedPush {
        OwedPush(
            id: id, row: row, lane: lane, pushClass: pushClass, origin: origin, record: record,
            touchedAt: touchedAt, notBefore: notBefore, custodyEnds: custodyEnds,
            attempt: attempt ?? attempts.stored, epoch: epoch ?? self.epoch, mark: mark, instance: instance,
            message: other ?? message)
    }

    var address: String { message.address.reveal { String(decoding: $0, as: UTF8.self) } }
}

extension FirstOutcome {
    static let accepted = FirstOutcome.known(.accepted)
}
