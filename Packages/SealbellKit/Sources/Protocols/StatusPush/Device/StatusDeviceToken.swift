package import PushModel

/// Where a push service reaches this phone.
package struct StatusDeviceToken: Sendable {
    package enum Service: String, Sendable, Hashable, CaseIterable { case apns, fcm }

    package let service: Service
    let text: Secret
    /// The app's topic with APNs; empty with FCM.
    let topic: Secret

    /// A token of APNs, and the app's topic (its bundle id), which servers insist on.
    ///
    /// - Throws: `.malformedToken` for an empty text, one that is longer than servers take (200 and 256
    ///   characters), or one with others than visible ASCII.
    package static func apns(_ text: Secret, topic: String) throws(StatusError) -> StatusDeviceToken {
        guard !topic.isEmpty else { throw StatusError(.malformedToken) }
        return try StatusDeviceToken(.apns, text, topic: Secret(topic.utf8))
    }

    /// A token of FCM. It has no topic: gorush would take one for an audience of its own.
    ///
    /// - Throws: `.malformedToken` for an empty or overlong text.
    package static func fcm(_ text: Secret) throws(StatusError) -> StatusDeviceToken {
        try StatusDeviceToken(.fcm, text, topic: Secret([]))
    }

    private init(_ service: Service, _ text: Secret, topic: Secret) throws(StatusError) {
        // The bounds of our relay, so that it takes what was taken here.
        let most = service == .apns ? StatusLimits.appleTokenBytes : StatusLimits.deviceTokenText
        guard (1...most).contains(text.count), topic.count <= StatusLimits.apnTopicBytes,
            [text, topic].allSatisfy({ $0.reveal { $0.allSatisfy { (0x21...0x7E).contains($0) } } })
        else { throw StatusError(.malformedToken) }
        self.service = service
        self.text = text
        self.topic = topic
    }
}
