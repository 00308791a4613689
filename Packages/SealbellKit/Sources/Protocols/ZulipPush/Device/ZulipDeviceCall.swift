package import PushModel
import WireFormats

/// A call to the account's server: a POST of a form, with the user's API key (§3, §14.1).
package struct ZulipDeviceCall: Sendable {
    package enum Kind: Sendable, Hashable {
        /// `register_client_device`: asks for a `device_id` (v12).
        case addDevice
        /// `mobile_push/register`.
        case register
        /// `mobile_push/forget`, or `remove_client_device` in v12. Once, best effort: its answer changes
        /// nothing.
        case forget
        /// `mobile_push/e2ee/test_notification`: its answer changes nothing.
        case test
    }

    package let number: UInt64
    package let kind: Kind
    package let profile: ZulipProfile
    /// Names and values before percent-encoding.
    package let fields: [(name: String, value: Secret)]

    /// Below the realm's URL.
    package var path: String {
        switch kind {
        case .addDevice: "/api/v1/register_client_device"
        case .register: "/api/v1/mobile_push/register"
        case .test: "/api/v1/mobile_push/e2ee/test_notification"
        case .forget: profile == .v12 ? "/api/v1/remove_client_device" : "/api/v1/mobile_push/forget"
        }
    }

    /// The form, percent-encoded: `application/x-www-form-urlencoded`.
    package var body: Secret {
        let plain = fields.map { ($0.name, $0.value.reveal { Array($0) }) }
        var encoded = Form(plain).encoded()
        defer { encoded.withUnsafeMutableBytes { wipe($0) } }
        return Secret(encoded)
    }
}
