import Primitives
public import PushModel
import WireFormats

/// Where Apple or Google reach this phone.
///
/// It is an address of a person, so it prints as nothing. Two APNs tokens of the same bytes are equal
/// whatever the case of their digits; FCM tokens are compared byte for byte, in time that depends on lengths
/// alone.
public struct DeviceToken: Sendable, Equatable {
    /// The push service that gave the token.
    public enum Service: String, Sendable, Hashable, CaseIterable {
        /// Apple's Push Notification service.
        case apns
        /// Google's Firebase Cloud Messaging.
        case fcm
    }

    /// Which of Apple's two services knows the token: the app's entitlement `aps-environment`.
    ///
    /// Session's server has to be told. The relays of the other protocols find out by themselves.
    public enum Entitlement: String, Sendable, Hashable, CaseIterable {
        /// The App Store and TestFlight. With FCM always.
        case production
        /// An app that Xcode has installed.
        case development
    }

    /// The push service that gave the token.
    public let service: Service
    /// `.production` with FCM, which has one service only.
    public let entitlement: Entitlement
    /// As protocols tell it: small hex digits for APNs, two for each byte; Google's own text for FCM.
    package let text: Secret

    private init(_ service: Service, _ entitlement: Entitlement, _ text: Secret) {
        (self.service, self.entitlement, self.text) = (service, entitlement, text)
    }

    /// A token as the system gave it to `application(_:didRegisterForRemoteNotificationsWithDeviceToken:)`.
    ///
    /// - Parameter bytes: 1 to 100 bytes; 32 today. The bytes of a hex text are taken for a token, too: give
    ///   a text to ``apns(hex:_:)``.
    /// - Throws: `.malformedToken` for no bytes, or more than 100.
    public static func apns(
        bytes: some Collection<UInt8>, _ entitlement: Entitlement = .production
    ) throws(DeviceError) -> Self {
        guard KitLimits.apnsTokenBytes.contains(bytes.count) else { throw DeviceError(.malformedToken) }
        return Self(.apns, entitlement, Secret(bytes).hexDigits)
    }

    /// A token that was written in hexadecimal.
    ///
    /// - Parameter hex: 2 to 200 digits of either case, two for each byte; 64 today.
    /// - Throws: `.malformedToken` for anything else.
    public static func apns(
        hex: some StringProtocol, _ entitlement: Entitlement = .production
    ) throws(DeviceError) -> Self {
        guard KitLimits.apnsTokenBytes.contains(hex.utf8.count / 2), let bytes = Secret(hex.utf8).fromHex
        else {
            throw DeviceError(.malformedToken)
        }
        return Self(.apns, entitlement, bytes.hexDigits)
    }

    /// A registration token of Firebase Cloud Messaging, as `onNewToken` gave it.
    ///
    /// - Parameter text: 1 to 4,096 visible ASCII characters (0x21 to 0x7E).
    /// - Throws: `.malformedToken` for anything else.
    public static func fcm(_ text: some StringProtocol) throws(DeviceError) -> Self {
        guard KitLimits.fcmTokenBytes.contains(text.utf8.count) else { throw DeviceError(.malformedToken) }
        let token = Secret(text.utf8)
        guard isFCM(token) else { throw DeviceError(.malformedToken) }
        return Self(.fcm, .production, token)
    }

    private static func isFCM(_ text: Secret) -> Bool {
        KitLimits.fcmTokenBytes.contains(text.count)
            && text.reveal { $0.allSatisfy { (0x21...0x7E).contains($0) } }
    }

    /// What an app shows a person who has no pushes, to read to whoever runs the relay: 12 letters and
    /// digits, such as `7K3M-Q0XD-2HVA`. By it the operator's `sealbell why --code` finds this phone.
    ///
    /// It is a hash of the token and of the day (UTC), and good for 72 hours at least. It does not lead back
    /// to the token, and tomorrow's has nothing in common with today's; so it may be read aloud or written
    /// into a ticket, where a token must not be.
    ///
    /// - Parameter now: the phone's clock. If it is wrong by days, the operator finds nothing.
    public func supportCode(at now: UnixTime) -> String {
        SupportCode(token: text, day: SupportCode.day(of: now)).text
    }

    /// Raw bytes: of APNs what the digits stand for, of FCM the text.
    package var bytes: Secret { service == .apns ? text.fromHex ?? text : text }

    /// Whether a push service takes both for one token.
    public static func == (left: Self, right: Self) -> Bool {
        left.service == right.service && left.entitlement == right.entitlement && left.text == right.text
    }
}

extension DeviceToken {
    /// Cells of a kept row: service, entitlement, text.
    package var cells: [Secret] { [Secret(service.rawValue.utf8), Secret(entitlement.rawValue.utf8), text] }

    /// - Returns: `nil` for what ``cells`` has not written.
    package init?(cells: [Secret]) {
        guard cells.count == 3, let service = Service(rawValue: cells[0].word),
            let entitlement = Entitlement(rawValue: cells[1].word)
        else { return nil }
        let text = cells[2]
        switch service {
        case .apns:
            guard let bytes = text.fromHex, KitLimits.apnsTokenBytes.contains(bytes.count),
                bytes.hexDigits == text
            else { return nil }
        case .fcm:
            guard entitlement == .production, Self.isFCM(text) else { return nil }
        }
        self.init(service, entitlement, text)
    }
}

extension DeviceToken: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// `‹device token›`, whatever the token.
    public var description: String { "‹device token›" }
    /// The same as ``description``.
    public var debugDescription: String { description }
    /// Without children.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
