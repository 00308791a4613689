package import PushModel
package import Secp256k1Keys

/// A message for the relay from a topic: its signature names the sender; nothing else is verified yet.
package struct StatusInbound: Sendable {
    package enum Body: Sendable {
        /// The box, as it was sent.
        case registration(Secret)
        case query(PushNotificationQuery)
        case request(PushNotificationRequest)
    }

    package let body: Body
    package let signer: PublicPoint
    package let messageID: Secret
    /// From a Waku node's store, which was asked for missed messages, or published before this process
    /// listened to the network. A relay that starts sees messages there that the previous one has already
    /// taken, and may have reported as failed.
    package let isStored: Bool

    /// - Returns: `nil` for messages that are not for a server.
    /// - Throws: `.malformedMessage`; no answer is sent.
    package init?(_ message: MetadataMessage, isStored: Bool = false) throws(StatusError) {
        switch message.type {
        // Deployed servers do not answer an empty registration.
        case .registration where message.payload.count == 0: throw StatusError(.malformedMessage)
        case .registration: body = .registration(message.payload)
        case .query: body = .query(try PushNotificationQuery(reading: message.payload))
        case .request:
            let request = try PushNotificationRequest(reading: message.payload)
            // Before anything is charged or looked up: a message that cannot be answered costs its sender the
            // bytes, and nobody else anything.
            guard (1...StatusLimits.messageIDBytes).contains(request.messageID.count),
                request.requests.count <= StatusLimits.notifications
            else { throw StatusError(.malformedMessage) }
            body = .request(request)
        default: return nil
        }
        signer = message.signer
        messageID = message.messageID
        self.isStored = isStored
    }
}

/// What the relay answers, if anything: sealed to the recipient and published on its partitioned topic.
package struct StatusReply: Sendable {
    package enum Body: Sendable {
        case registration(PushNotificationRegistrationResponse)
        case query(PushNotificationQueryResponse)
        case request(PushNotificationResponse)
    }

    package let recipient: PublicPoint
    package let body: Body
    /// What a gateway gets before the reply is sent (``settled(failed:)``); `nil`: nothing.
    package let handover: GatewayHandover?

    package init(to recipient: PublicPoint, _ body: Body, handover: GatewayHandover? = nil) {
        self.recipient = recipient
        self.body = body
        self.handover = handover
    }

    package var topic: WakuTopic { WakuTopic.partitioned(of: recipient) }
}
