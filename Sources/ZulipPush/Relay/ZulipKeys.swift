package import PushModel
package import WireFormats

/// Names of this protocol's records at one instance (DESIGN §3, row Zulip).
package struct ZulipKeys: Sendable {
    private let servers: Space
    private let hosts: Space
    private let realms: Space
    private let devices: Space
    private let challenges: Space
    private let invitations: Space
    private let leavers: Space

    package init(_ instance: ConfiguredName) {
        servers = Space(instance, "server")
        hosts = Space(instance, "host")
        realms = Space(instance, "realm")
        devices = Space(instance, "device")
        challenges = Space(instance, "challenge")
        invitations = Space(instance, "invitation")
        leavers = Space(instance, "leaving")
    }

    package var serverSpace: Space { servers }
    package var realmSpace: Space { realms }
    /// Servers that have deactivated themselves and whose realms are still to be removed.
    package var leavingSpace: Space { leavers }

    package func server(_ id: UUIDText) -> RecordKey { RecordKey(servers, Secret(id.bytes)) }
    package func realm(_ id: UUIDText) -> RecordKey { RecordKey(realms, Secret(id.bytes)) }
    package func leaving(_ id: UUIDText) -> RecordKey { RecordKey(leavers, Secret(id.bytes)) }
    package func host(_ host: ZulipHostname) -> RecordKey { RecordKey(hosts, Secret(host.text.utf8)) }
    package func challenge(_ host: ZulipHostname) -> RecordKey {
        RecordKey(challenges, Secret(host.text.utf8))
    }
    /// An invitation is for a name, whatever the port.
    package func invitation(_ host: ZulipHostname) -> RecordKey {
        RecordKey(invitations, Secret(host.name.utf8))
    }

    /// A device is one token of one realm: realm (16 bytes) ‖ token id (8 bytes).
    package func device(_ realm: UUIDText, _ token: TokenID) -> RecordKey {
        var words = (realm.high.bigEndian, realm.low.bigEndian, token.value.bigEndian)
        return RecordKey(devices, withUnsafeBytes(of: &words) { Secret(copying: UnsafeRawBufferPointer($0)) })
    }

    /// One address of one app, over all realms: app id ‖ 0 ‖ token. Never shown to an origin.
    package func address(_ registration: ZulipRegistration) -> RecordKey {
        let name = registration.token.reveal { token in
            Secret(Array((registration.appID ?? "").utf8) + [0] + token)
        }
        return RecordKey(Space(core: "address"), name)
    }
}
