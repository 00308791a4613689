package import PushModel
package import WireFormats

/// Names of this protocol's records at one instance.
package struct ZulipRecordNames: Sendable {
    private let servers: Space
    private let hosts: Space
    private let names: Space
    private let realms: Space
    private let devices: Space
    private let accounts: Space
    private let numbers: Space
    private let heldKeys: Space
    private let keyUses: Space
    private let challenges: Space
    private let invitations: Space
    private let leavers: Space
    private let tenancies: Space
    private let vacancies: Space
    private let oldKeys: Space
    private let addresses: Space

    package init(_ instance: ConfiguredName) {
        servers = Space(instance, "server")
        hosts = Space(instance, "host")
        names = Space(instance, "name")
        realms = Space(instance, "realm")
        devices = Space(instance, "device")
        accounts = Space(instance, "account")
        numbers = Space(instance, "number")
        heldKeys = Space(instance, "key")
        keyUses = Space(instance, "key-use")
        challenges = Space(instance, "challenge")
        invitations = Space(instance, "invitation")
        leavers = Space(instance, "leaving")
        tenancies = Space(instance, "tenancy")
        vacancies = Space(instance, "vacated")
        oldKeys = Space(instance, "old-key")
        addresses = .addresses(of: instance)
    }

    package var serverSpace: Space { servers }
    package var hostSpace: Space { hosts }
    package var nameSpace: Space { names }
    package var realmSpace: Space { realms }
    package var invitationSpace: Space { invitations }
    /// Devices, by what their servers name them by.
    package var registrationSpaces: [Space] { [devices, accounts] }
    /// Servers that have deactivated themselves and whose realms are still to be removed.
    package var leavingSpace: Space { leavers }

    /// The relay's own keys, since when they stand in the file.
    var keySpace: Space { heldKeys }
    /// - Parameter publicKey: 32 bytes.
    func heldKey(_ publicKey: Secret) -> RecordKey { RecordKey(heldKeys, publicKey) }
    /// The owner of the records that count a key's uses. No record stands under it.
    func uses(of publicKey: [UInt8]) -> RecordKey { RecordKey(keyUses, Secret(publicKey)) }
    /// Public key (32 bytes) ‖ day (8) ‖ process (16).
    func keyUse(_ publicKey: [UInt8], day: Int64, process: [UInt8]) -> RecordKey {
        RecordKey(keyUses, Secret(publicKey + withUnsafeBytes(of: day.bigEndian) { Array($0) } + process))
    }

    package func server(_ id: UUIDText) -> RecordKey { RecordKey(servers, id.secret) }
    package func realm(_ id: UUIDText) -> RecordKey { RecordKey(realms, id.secret) }
    package func leaving(_ id: UUIDText) -> RecordKey { RecordKey(leavers, Secret(id.bytes)) }
    package func host(_ host: ZulipHostname) -> RecordKey { RecordKey(hosts, Secret(host.text.utf8)) }
    /// A name without its port: its holder, if the policy gives each name to one server only; and the owner
    /// of the name's hosts.
    package func name(_ host: ZulipHostname) -> RecordKey { RecordKey(names, Secret(host.name.utf8)) }
    /// What a day's challenges are made with; no host's name has a slash.
    package func challengeKey(_ day: Int64) -> RecordKey {
        RecordKey(challenges, Secret("key/\(day)".utf8))
    }
    /// An invitation is for a name, whatever the port.
    package func invitation(_ host: ZulipHostname) -> RecordKey {
        RecordKey(invitations, Secret(host.name.utf8))
    }

    /// The devices that a deactivated server left in a realm that another server has now.
    package func vacated(_ realm: ZulipRealm) -> RecordKey {
        RecordKey(vacancies, Secret(realm.id.bytes + realm.server.bytes))
    }

    /// The former key, as long as it is valid, by the key that replaced it: server (16 bytes) ‖ hash of the
    /// new key. So a caller who shows the new key names exactly the key that ends with it.
    package func oldKey(of server: UUIDText, before newKeyHash: Secret) -> RecordKey {
        RecordKey(oldKeys, newKeyHash.reveal { Secret(server.bytes + $0) })
    }

    /// The owner of a tenancy's devices. No record stands under it; with ``ZulipRealm/Naming/byRealm`` it is
    /// the realm's own name.
    package func devices(of tenancy: ZulipTenancy) -> RecordKey {
        RecordKey(tenancy.naming == .byRealm ? realms : tenancies, Secret(tenancy.id.bytes))
    }

    /// A device is one token of one tenancy: tenancy (16 bytes) ‖ token id (8 bytes).
    package func device(_ tenancy: ZulipTenancy, _ token: TokenID) -> RecordKey {
        RecordKey(devices, Self.name(tenancy, token.value))
    }

    /// A device that registered with an account id is one number of one tenancy: tenancy (16 bytes) ‖ number
    /// (8 bytes). In another tenancy the same number is another device, or none.
    package func account(_ tenancy: ZulipTenancy, _ number: Int64) -> RecordKey {
        RecordKey(accounts, Self.name(tenancy, UInt64(bitPattern: number)))
    }

    package func device(_ tenancy: ZulipTenancy, _ name: DeviceName) -> RecordKey {
        switch name {
        case .token(let id): device(tenancy, id)
        case .number(let number): account(tenancy, number)
        }
    }

    /// The input of such a device's number: tenancy (16 bytes) ‖ account id (8) ‖ token. No record stands
    /// under it (decision 0111).
    func number(_ tenancy: ZulipTenancy, account: Int64, token: Secret) -> RecordKey {
        let head = Self.name(tenancy, UInt64(bitPattern: account))
        let name = token.reveal { token in
            head.reveal { head in
                Secret(count: head.count + token.count) { out in
                    out.copyMemory(from: head)
                    UnsafeMutableRawBufferPointer(rebasing: out[head.count...]).copyMemory(from: token)
                }
            }
        }
        return RecordKey(numbers, name)
    }

    private static func name(_ tenancy: ZulipTenancy, _ number: UInt64) -> Secret {
        var words = (tenancy.id.high.bigEndian, tenancy.id.low.bigEndian, number.bigEndian)
        return withUnsafeBytes(of: &words) { Secret(copying: UnsafeRawBufferPointer($0)) }
    }

    /// One address of one app, over all realms of the instance: app id ‖ 0 ‖ token.
    /// Never shown to an origin.
    package func address(_ registration: ZulipRegistration) -> RecordKey {
        // A token id is made of the token as it was spelled (§2), and an address of the one spelling.
        let token =
            registration.kind == .apns ? APNsMessage.canonical(registration.token) : registration.token
        let name = token.reveal { token in
            Secret(Array((registration.appID ?? "").utf8) + [0] + token)
        }
        return RecordKey(addresses, name)
    }
}

extension UUIDText {
    /// Its 16 bytes.
    var secret: Secret {
        withUnsafeBytes(of: (high.bigEndian, low.bigEndian)) { Secret(copying: $0) }
    }
}
