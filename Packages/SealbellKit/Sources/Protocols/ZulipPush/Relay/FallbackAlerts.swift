import PushModel

/// What the devices of an app show if an origin gives no `aps`, for apps with other words than the deployed
/// ones (``NotifyItem/defaultAps``).
package struct FallbackAlerts: Sendable {
    /// The words of one app, as JSON objects.
    package struct Words: Sendable {
        /// The whole `aps`.
        let aps: [UInt8]
        /// The same alert in what the relay makes for the specification's own form (§14.8): nothing but the
        /// alert is the app's there.
        let ownAps: [UInt8]

        /// - Parameter aps: a JSON object; `alert`: what stands in it under that name.
        package init(aps: [UInt8], alert: [UInt8]) {
            self.aps = aps
            ownAps =
                Array(#"{"mutable-content":1,"alert":"#.utf8) + alert + Array(#","sound":"default"}"#.utf8)
        }
    }

    private let byBundle: [String: Words]

    /// - Parameter byBundle: for each bundle id without suffix.
    package init(_ byBundle: [String: Words]) { self.byBundle = byBundle }

    /// `nil`: the deployed words.
    func words(for message: APNsMessage) -> Words? { byBundle[message.bundle] ?? byBundle[message.app] }
}
