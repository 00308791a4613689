import Foundation
import MarmotPublishing
import Simulators

/// Two members of a group, a relay and the notification server in one process: one registers a phone, the
/// other writes, and the server finds out which phone to wake.
@main
struct MarmotApp {
    static func main() async throws {
        let now = Moment(wall: UnixTime(seconds: Int64(Date().timeIntervalSince1970)), instant: .now)
        let server = try newPair()
        let alice = try newPair()
        let bob = try newPair()
        let seenByAlice = Group(ownLeaf: 0, members: [0: alice.publicKey, 1: bob.publicKey])
        let seenByBob = Group(ownLeaf: 1, members: seenByAlice.members)
        let storeOfBob = TokenStore(Rows())

        // The relay stands for the one at which the server listens, and the server says so there.
        let relay = NostrRelaySimulator()
        try await relay.start()
        guard let inbox = relay.url else { throw Failure("the relay listens") }
        relay.inject(
            RelayList.event(
                relays: [inbox], at: now.wall.seconds, by: server, auxiliary: [UInt8](repeating: 0, count: 32)
            ))
        let publisher = try GroupNotifications.makePublisher(
            relays: [inbox], server: server.publicKey, inbox: inbox, throughTor: false, keeping: nil)

        // Alice's phone tells the group; Bob's keeps what it hears.
        var phone = try await GroupNotifications(
            seenByAlice, server: server.publicKey, inbox: inbox, identity: alice, store: TokenStore(Rows()),
            publisher: publisher, now: now)
        let token = [UInt8](repeating: 0xA1, count: 32)
        let rumors = try await phone.register(apnsToken: token, hasJoined: true, in: seenByAlice, now: now)
        var other = try await GroupNotifications(
            seenByBob, server: server.publicKey, inbox: inbox, identity: bob, store: storeOfBob,
            publisher: publisher, now: now)
        for (index, rumor) in rumors.enumerated() {
            let arrived = try NostrEvent.parse(rumor.serialized(), .rumor)
            try await other.receive(
                GroupMessage(
                    arrived, senderLeaf: 0, order: MessageOrder(epoch: 1, index: UInt64(index))),
                in: seenByBob, now: now)
        }

        // Bob's phone is restarted, and Bob writes.
        other = try await GroupNotifications(
            seenByBob, server: server.publicKey, inbox: inbox, identity: bob, store: storeOfBob,
            publisher: publisher, now: now)
        try await other.wakeOthers(in: seenByBob, now: now)
        let wraps = relay.events.filter { $0.kind == NostrKind.giftWrap }
        guard let wrap = wraps.first, wraps.count == 1 else { throw Failure("there is one trigger") }
        print("Bob's trigger, an event of kind \(wrap.kind), is at \(inbox)")

        // The server opens it. Decoys open for nobody.
        let opened = try GiftWrap.unwrap(wrap, with: server)
        let content = try TriggerContent(reading: opened.event)
        let woken = content.chunks.compactMap { try? TokenBox.decrypt($0, content.format, with: server) }
        print("the server finds \(content.count) tokens, of which \(woken.count) open")
        guard woken.count == 1, woken[0].platform == .apns, woken[0].token == Secret(token) else {
            throw Failure("Alice's phone is to be woken, and nobody else's")
        }
        print("Alice's phone wakes and fetches what is new")

        // The relay goes away: Bob's app is told, and can show it.
        await relay.stop()
        var shown: [String] = []
        do throws(Unreached) { try await other.wakeOthers(in: seenByBob, now: now) } catch {
            shown = error.servers.compactMap(\.sentence)
        }
        guard let sentence = shown.first else { throw Failure("Bob is to hear that nobody was woken") }
        print("and without the relay: \(sentence)")
    }

    private static func newPair() throws -> Secp256k1KeyPair {
        var random = SystemRandomNumberGenerator()
        return try Secp256k1KeyPair(
            secret: Secret((0..<32).map { _ in UInt8.random(in: 0...255, using: &random) }))
    }
}

/// Stands for the MLS library.
struct Group: GroupView {
    let groupID = Array("a group".utf8)
    let ownLeaf: UInt32
    let members: [UInt32: XOnlyKey]

    var activeLeaves: [UInt32] { members.keys.sorted() }
    func member(ofLeaf leaf: UInt32) -> XOnlyKey? { members[leaf] }
}

/// Stands for the app's database.
actor Rows: LeafStorage {
    private var rows: [[UInt8]: [UInt32: LeafRow]] = [:]

    func rows(of group: [UInt8]) -> [LeafRow] { Array(rows[group, default: [:]].values) }

    func write(_ new: [LeafRow], deleting leaves: [UInt32], in group: [UInt8], now: UnixTime) {
        for row in new { rows[group, default: [:]][row.leaf] = row }
        for leaf in leaves { rows[group]?[leaf] = nil }
    }

    func forget(_ group: [UInt8]) { rows[group] = nil }

    func purge(now: UnixTime) -> Int {
        let before = rows.values.reduce(0) { $0 + $1.count }
        rows = rows.mapValues { $0.filter { $0.value.expiresAt > now } }
        return before - rows.values.reduce(0) { $0 + $1.count }
    }
}

/// What should have been so and was not; ends the program with a status other than 0.
struct Failure: Error {
    let text: String
    init(_ text: String) { self.text = text }
}
