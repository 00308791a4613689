package import PushModel

/// Where a push service reaches this phone.
package struct SessionDeviceToken: Sendable {
    package let service: SessionService
    let text: Secret

    /// - Parameter text: as the system gives it; of APNs 64 hex digits.
    /// - Throws: `.malformedToken` for a text that no server takes: not of visible ASCII, shorter than
    ///   32 characters or longer than 999, and of APNs other than 64 hex digits.
    package init(_ service: SessionService, _ text: Secret) throws(SessionError) {
        guard service.takes(text) else { throw SessionError(.malformedToken) }
        self.service = service
        self.text = text
    }

    static func == (left: SessionDeviceToken, right: SessionDeviceToken) -> Bool {
        left.service == right.service && left.text == right.text
    }
}
