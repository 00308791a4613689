import Foundation
import MarmotPublishing

/// Two members of a group: Alice's phone has told its token, and Bob's has kept it and was restarted since.
struct Members {
    let bob: GroupNotifications
    let seenByBob: Group
    let now: Moment

    init(
        server: XOnlyKey, inbox: String, tokenOfAlice token: [UInt8], publisher: MarmotPublisher
    ) async throws {
        let now = Moment(wall: UnixTime(seconds: Int64(Date().timeIntervalSince1970)), instant: .now)
        let (alice, bob) = (try Self.newPair(), try Self.newPair())
        let seenByAlice = Group(ownLeaf: 0, members: [0: alice.publicKey, 1: bob.publicKey])
        let seenByBob = Group(ownLeaf: 1, members: seenByAlice.members)
        let storeOfBob = TokenStore(Rows())
        func phoneOfBob() async throws -> GroupNotifications {
            try await GroupNotifications(
                seenByBob, server: server, inbox: inbox, identity: bob, store: storeOfBob,
                publisher: publisher, now: now)
        }

        // Alice's phone tells the group; Bob's keeps what it hears.
        var phone = try await GroupNotifications(
            seenByAlice, server: server, inbox: inbox, identity: alice, store: TokenStore(Rows()),
            publisher: publisher, now: now)
        let rumors = try await phone.register(apnsToken: token, hasJoined: true, in: seenByAlice, now: now)
        var other = try await phoneOfBob()
        for (index, rumor) in rumors.enumerated() {
            let arrived = try NostrEvent.parse(rumor.serialized(), .rumor)
            try await other.receive(
                GroupMessage(
                    arrived, senderLeaf: 0, order: MessageOrder(epoch: 1, index: UInt64(index))),
                in: seenByBob, now: now)
        }
        self.bob = try await phoneOfBob()
        self.seenByBob = seenByBob
        self.now = now
    }

    /// Bob writes.
    func wakeOthers() async throws(Unreached) { try await bob.wakeOthers(in: seenByBob, now: now) }

    static func newPair() throws -> Secp256k1KeyPair {
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
