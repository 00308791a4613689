package import PushModel
import Secp256k1Keys
import WireFormats

/// Pushes of one request that a gateway (gorush) sends; the relay does not owe them.
///
/// The request is remembered before the gateway is called; afterwards ``StatusReply/settled(failed:)`` gives
/// the reply.
package struct GatewayHandover: Sendable {
    /// One notification of a gateway's `POST /api/push`.
    package struct Push: Sendable {
        /// The JSON object.
        package let notification: Secret
        /// The gateway names it by this in `logs`, and may hide a part of it.
        package let token: Secret
        /// Whether the token is Apple's; else it is Google's.
        package let isApple: Bool
        /// Whether it has a topic, which gateways may count.
        package let hasTopic: Bool
        /// The registration, which ends when its token does.
        package let record: RecordKey
        /// Whether it is still the registration that this was made from.
        package let isUnchanged: Condition

        package init(
            notification: Secret, token: Secret, isApple: Bool, hasTopic: Bool, record: RecordKey,
            isUnchanged: Condition
        ) {
            self.notification = notification
            self.token = token
            self.isApple = isApple
            self.hasTopic = hasTopic
            self.record = record
            self.isUnchanged = isUnchanged
        }
    }

    /// Apple's first, then Google's.
    package let pushes: [Push]
    /// The report for each, by its place in the response.
    let places: [Int]
    /// The changes to make if nothing was sent: the same bytes may then come again. If only a part failed, a
    /// sender asks again with other bytes, because the relay cannot know what the gateway has sent.
    package let reopening: Change
}

extension StatusReply {
    /// The reply once the gateway has answered. Before that it reports all as failed.
    ///
    /// - Parameters:
    ///   - failed: places in the handover of the notifications that the gateway did not take.
    ///   - dead: those of them whose token is dead, so that the registration has ended.
    package func settled(failed: Set<Int>, dead: Set<Int> = []) -> StatusReply {
        guard let handover, case .request(var response) = body else { return self }
        for (index, place) in handover.places.enumerated() {
            if dead.contains(index) {
                response.reports[place].error = .notRegistered
            } else if !failed.contains(index) {
                response.reports[place].success = true
                response.reports[place].error = .unknown
            }
        }
        return StatusReply(to: recipient, .request(response))
    }
}

/// Delivery through the operator's own gateway.
extension StatusRelay {
    func handOver(
        _ judged: [JudgedEntry], of request: PushNotificationRequest, to sender: PublicPoint,
        _ memory: RequestMemory, refusal: @escaping @Sendable (Int) -> StatusError
    ) -> StatusVerdict {
        var pushes: [GatewayHandover.Push] = []
        var places: [Int] = []
        for isApple in [true, false] {
            for (place, judged) in judged.enumerated() {
                guard let device = judged.device,
                    (device.row.registration.tokenType == .apn) == isApple,
                    let push = StatusPayload(judged.entry).gatewayPush(to: device, policy, id: pushes.count)
                else { continue }
                pushes.append(push)
                places.append(place)
            }
        }
        let reports = judged.map { $0.device == nil ? $0.report : $0.failed }
        let handover = GatewayHandover(pushes: pushes, places: places, reopening: memory.reopened)
        let reply = StatusReply(
            to: sender,
            .request(PushNotificationResponse(messageID: request.messageID, reports: reports)),
            handover: pushes.isEmpty ? nil : handover)
        return Verdict(
            changes: [memory.taken], reply: .now(reply), refusal: refusal,
            notes: [NoteCode(pushes.isEmpty ? "status.request-unwanted" : "status.request")])
    }
}

extension StatusPayload {
    /// As deployed servers write it, with the members in the same order. The seed's keys and a number of our
    /// own are added, unless the instance is to copy the deployed servers literally.
    ///
    /// - Parameter id: the gateway names it by this in `logs`.
    /// - Returns: `nil` for a kind of token for which gateways have no number, and for an app that the
    ///   instance does not serve.
    func gatewayPush(
        to device: StatusRelay.JudgedEntry.Device, _ policy: StatusPolicy, id: Int
    ) -> GatewayHandover.Push? {
        let registration = device.row.registration
        let isApple = registration.tokenType == .apn
        guard isApple || registration.tokenType == .firebase else { return nil }
        // A topic with Google's platform would be sent to everybody who follows it.
        let topic = isApple ? Self.bundle(registration, policy) ?? "" : ""
        guard policy.serves(registration) else { return nil }
        let notification = fitting { withMessage in
            let message = withMessage ? entry.message : Secret([])
            var writer = JSONWriter(
                reserving: 2_048 + 6 * registration.deviceToken.count
                    + 4 * (message.count + entry.chatID.count + entry.publicKey.count)
                    + 6 * (entry.installationID.count + topic.utf8.count))
            writer.beginObject()
            if !policy.isStatusGo {
                writer.member("notif_id", String(id))
            }
            writer.beginArray("tokens")
            registration.deviceToken.reveal { writer.string(utf8: $0) }
            writer.endArray()
            writer.member("platform", isApple ? 1 : 2)
            writer.member("message", "\(text)")
            writer.member("topic", topic)
            writer.beginObject("data")
            members(message, &writer)
            if !policy.isStatusGo { seedMembers(withMessage: message.count > 0, asTexts: false, &writer) }
            writer.endObject()
            writer.endObject()
            return writer.takeSecret()
        }
        let record = device.record
        return GatewayHandover.Push(
            notification: notification, token: registration.deviceToken, isApple: isApple,
            hasTopic: !topic.isEmpty, record: record.key,
            isUnchanged: .madeFrom(touchedAt: record.touchedAt, address: record.addressDigest))
    }
}
