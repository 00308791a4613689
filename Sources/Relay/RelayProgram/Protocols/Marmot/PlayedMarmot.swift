import MarmotPush
import PushModel
import Secp256k1Keys
import WireFormats

/// A phone of Marmot that the command line plays, and what it keeps between two commands: a file of its own,
/// because it holds the account's key and those of its groups.
struct PlayedMarmot: KitParty {
    /// Sixteen groups, each with ids of what was heard and the tokens of a few hundred phones.
    static let limitBytes = 16 << 20
    static let noun = "phone"
    static let groups = 16

    enum Service: String, CaseIterable {
        case apns, fcm
        /// It has no token, and wakes others all the same.
        case none
    }

    let file: HeldFile
    /// The relay through which its groups talk, and where servers' lists are looked up.
    var relay: String
    /// The notification server's key.
    var server: XOnlyKey
    var format: TokenFormat
    var service: Service
    /// As a push service would have given it.
    var token: Secret
    let pair: Secp256k1KeyPair
    var groups: [PlayedGroup] = []
    /// What the publisher keeps.
    var lists: Secret?
    /// File of the sandbox's authority, where the phone was joined in one; `nil`: the system's.
    var authority: String?

    init(
        _ service: Service, relay: String, server: XOnlyKey, format: TokenFormat, token: Secret?,
        _ file: HeldFile, _ world: World
    ) {
        self.file = file
        (self.service, self.relay, self.server, self.format) = (service, relay, server, format)
        self.token = token ?? world.inventToken(isApple: service != .fcm)
        pair = .generate(world)
    }

    /// - Throws: what is wrong with the token; `nil` for a phone that has none.
    func deviceToken() throws(DeviceError) -> DeviceToken? {
        switch service {
        case .apns: try .apns(hex: token.word)
        case .fcm: try .fcm(token.word)
        case .none: nil
        }
    }

    /// The phone in a group as the library has it, not yet told of its token.
    ///
    /// - Parameter group: `nil`: in none, to open what arrives.
    func device(in group: PlayedGroup?) throws(DeviceError) -> MarmotDevice {
        let platform: DevicePlatform =
            switch service {
            case .apns: .apple
            case .fcm: .android
            case .none: .desktop
            }
        let setup = try MarmotSetup(
            identity: pair.secret, platform: platform, server: RelayKey(text: server.hex), format: format)
        var device = try MarmotDevice(setup, keeping: group?.device)
        device.group = group?.view(of: pair.publicKey)
        return device
    }

    // MARK: The file

    init?(_ row: KitObject, _ file: HeldFile) {
        // Whatever is wrong with a member, the file is none of a phone's.
        guard let relay = row.text("relay"), let server = row.text("server").flatMap({ XOnlyKey(hex: $0) }),
            let format: TokenFormat = row.word("format"), let service: Service = row.word("service"),
            let token = row["token"], let kept = row["groups"],
            // As above.
            let scalar = row["key"]?.fromHex, let pair = try? Secp256k1KeyPair(secret: scalar),
            // As above.
            let rows = kept.reveal({ try? JSONValue.parse($0, limitBytes: Self.limitBytes) })?.array
        else { return nil }
        let groups = rows.compactMap { PlayedGroup($0) }
        guard groups.count == rows.count else { return nil }
        (self.relay, self.server, self.format, self.service) = (relay, server, format, service)
        (self.token, self.pair, self.groups, lists) = (token, pair, groups, row["lists"])
        authority = row.text("authority")
        self.file = file
    }

    var row: KitObject {
        var kept = JSONWriter(reserving: 1 << 16)
        kept.beginArray()
        for group in groups { group.write(into: &kept) }
        kept.endArray()
        return [
            "relay": relay, "server": server.hex, "format": format.rawValue, "service": service.rawValue,
            "token": token, "key": pair.secret.hexDigits, "groups": kept.takeSecret(), "lists": lists,
            "authority": authority
        ]
    }
}

extension MarmotDevice: KitTalker {}
