package import PushModel

/// Names of this protocol's records at one instance.
package struct NextcloudRecordNames: Sendable {
    package let pinSpace: Space
    package let alertSpace: Space
    package let voipSpace: Space
    private let addresses: Space

    package init(_ instance: ConfiguredName) {
        pinSpace = Space(instance, "pin")
        alertSpace = Space(instance, "alert")
        voipSpace = Space(instance, "voip")
        addresses = .addresses(of: instance)
    }

    package func pin(_ identifier: DeviceIdentifier) -> RecordKey { RecordKey(pinSpace, name(identifier)) }
    package func alert(_ identifier: DeviceIdentifier) -> RecordKey {
        RecordKey(alertSpace, name(identifier))
    }
    package func voip(_ identifier: DeviceIdentifier) -> RecordKey { RecordKey(voipSpace, name(identifier)) }

    /// One address of one app: bundle id ‖ 0 ‖ token, with no bundle id for FCM. Never shown to an origin.
    package func address(of token: Secret, bundle: String?) -> RecordKey {
        let token = bundle == nil ? token : APNsMessage.canonical(token)
        let name = token.reveal { Secret(Array((bundle ?? "").utf8) + [0] + $0) }
        return RecordKey(addresses, name)
    }

    private func name(_ identifier: DeviceIdentifier) -> Secret {
        identifier.withBytes { Secret(copying: $0) }
    }
}
