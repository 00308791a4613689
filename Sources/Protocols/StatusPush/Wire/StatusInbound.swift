package import PushModel
package import Secp256k1Keys

/// What a topic yields for the relay: a message whose signature named its sender, not yet believed.
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
    /// From a Waku node's store, which was asked for what was missed, or published before this process heard
    /// the network. A relay that starts sees there what the one before it has taken already, and may have
    /// reported as failed.
    package let isStored: Bool

    /// - Returns: `nil` for messages that are not for a server.
    /// - Throws: `.malformedMessage`; nobody is answered.
    package init?(_ message: MetadataMessage, isStored: Bool = false) throws(StatusError) {
        switch message.type {
        // Deployed servers answer nothing to an empty registration.
        case .registration where message.payload.count == 0: throw StatusError(.malformedMessage)
        case .registration: body = .registration(message.payload)
        case .query: body = .query(try PushNotificationQuery(reading: message.payload))
        case .request:
            let request = try PushNotificationRequest(reading: message.payload)
            // Before anything is charged or looked up: what nobody can be answered for costs its sender's
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
    /// What a gateway is given before the reply leaves (``settled(failed:)``); `nil`: nothing.
    package let handover: GatewayHandover?

    package init(to recipient: PublicPoint, _ body: Body, handover: GatewayHandover? = nil) {
        self.recipient = recipient
        self.body = body
        self.handover = handover
    }

    package var topic: WakuTopic { WakuTopic.partitioned(of: recipient) }
}
