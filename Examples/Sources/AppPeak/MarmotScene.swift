import AppSupport
import MarmotPush

/// The first of 200 phones of a group, after all the others have told their tokens.
enum MarmotScene {
    private static let leaves = UInt32(0)..<200

    static func fill() throws -> LeftPhone {
        var phone = try makeDevice(0)
        let members = try Dictionary(
            uniqueKeysWithValues: leaves.map { ($0, try pair($0).publicKey.bytes) })
        let calls = try start(&phone, 0, members)
        guard let hear = calls.first(where: \.isStanding) else { throw Failure("it hears") }
        phone.answered(.taken, to: hear, at: now())
        for leaf in leaves.dropFirst() {
            var other = try makeDevice(leaf)
            for case .say(_, let rumor) in try start(&other, leaf, members).map(\.way) {
                let message = CallAnswer.group(rumor: rumor, leaf: leaf, epoch: 1, index: UInt64(leaf))
                phone.answered(message, to: hear, at: now())
            }
        }
        guard phone.tokensToWake(at: now()).count == leaves.count - 1 else {
            throw Failure("the token of each is known")
        }
        return LeftPhone(kept: phone.kept, push: Secret(#"{"aps":{"content-available":1}}"#.utf8))
    }

    static func open(_ left: LeftPhone) throws {
        let device = try makeDevice(0, keeping: left.kept)
        guard case .fetch = try device.open(Delivered(json: left.push), at: now()) else {
            throw Failure("Marmot's push is a wake")
        }
    }

    private static func start(
        _ phone: inout MarmotDevice, _ leaf: UInt32, _ members: [UInt32: [UInt8]]
    ) throws -> [Call] {
        phone.group = MarmotGroup(id: Array("a group".utf8), ownLeaf: leaf, members: members)
        try phone.use(token: .apns(bytes: [UInt8](repeating: UInt8(leaf), count: 32)))
        return phone.due(at: now())
    }

    private static func makeDevice(_ leaf: UInt32, keeping kept: Secret? = nil) throws -> MarmotDevice {
        // The server: any key.
        let server = try RelayKey(text: pair(1_000).publicKey.hex)
        let setup = try MarmotSetup(
            identity: pair(leaf).secret, platform: .apple, server: server,
            relayHint: "wss://relay.example.org", format: .pushV1)
        return try MarmotDevice(setup, keeping: kept)
    }

    private static func pair(_ number: UInt32) throws -> Secp256k1KeyPair {
        let secret = [UInt8](repeating: 1, count: 30) + [UInt8(number >> 8), UInt8(number & 255)]
        return try Secp256k1KeyPair(secret: Secret(secret))
    }
}
