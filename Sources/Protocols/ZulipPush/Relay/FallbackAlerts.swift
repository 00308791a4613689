import PushModel

/// What the devices of an app show where an origin gives no `aps`, for apps that do not keep to the deployed
/// words (``NotifyItem/defaultAps``).
package struct FallbackAlerts: Sendable {
    private let byBundle: [String: [UInt8]]

    /// - Parameter byBundle: for each bundle id without suffix the `aps` object as JSON.
    package init(_ byBundle: [String: [UInt8]]) { self.byBundle = byBundle }

    /// `nil`: the deployed words.
    func aps(for message: APNsMessage) -> [UInt8]? { byBundle[message.bundle] ?? byBundle[message.app] }
}
