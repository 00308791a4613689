import AppSupport
import Foundation
import MarmotPublishing
import Synchronization

/// Two members of a group: Alice's phone has told its token, and Bob's has kept it and was restarted since.
struct Members {
    let bob: GroupNotifications

    init(
        server: XOnlyKey, inbox: String, tokenOfAlice token: [UInt8], publisher: MarmotPublisher
    ) async throws {
        let (alice, bob) = (try Self.newPair(), try Self.newPair())
        let leaves = [0: alice.publicKey.bytes, 1: bob.publicKey.bytes] as [UInt32: [UInt8]]
        let id = Array("a group".utf8)
        let key = try RelayKey(text: server.hex)
        func member(_ pair: Secp256k1KeyPair, _ mls: Group, kept: Secret?) throws -> GroupNotifications {
            try GroupNotifications(
                identity: pair.secret, server: key, inbox: inbox, kept: kept, publisher: publisher,
                save: mls.save, send: mls.send)
        }

        // Bob's phone hears, Alice's tells the group.
        let (mlsOfAlice, mlsOfBob) = (Group(), Group())
        let other = try member(bob, mlsOfBob, kept: nil)
        let seenByBob = MarmotGroup(id: id, ownLeaf: 1, members: leaves)
        try await other.start(seenByBob, token: nil)
        let phone = try member(alice, mlsOfAlice, kept: nil)
        try await phone.start(
            MarmotGroup(id: id, ownLeaf: 0, members: leaves), token: .apns(bytes: token))
        guard let hear = mlsOfBob.hears.last else { throw Failure("Bob's phone hears") }
        for (index, rumor) in mlsOfAlice.rumors.enumerated() {
            await other.heard(.group(rumor: rumor, leaf: 0, epoch: 1, index: UInt64(index)), for: hear)
        }
        self.bob = try member(bob, mlsOfBob, kept: mlsOfBob.kept)
        try await self.bob.start(seenByBob, token: nil)
        let wake = try Delivered(userInfo: ["aps": ["content-available": 1]])
        guard try await phone.isWake(wake), try await !other.isWake(wake) else {
            throw Failure("Alice wants pushes, Bob wants none")
        }
    }

    /// Bob writes.
    func wakeOthers() async throws(Unreached) { try await bob.wakeOthers() }

    static func newPair() throws -> Secp256k1KeyPair {
        var random = SystemRandomNumberGenerator()
        return try Secp256k1KeyPair(
            secret: Secret((0..<32).map { _ in UInt8.random(in: 0...255, using: &random) }))
    }
}

/// Stands for the MLS library and the keychain of one phone.
final class Group: Sendable {
    private let calls = Mutex<[Call]>([])
    private let text = Mutex<Secret?>(nil)

    var kept: Secret? { text.withLock { $0 } }
    @Sendable func save(_ kept: Secret) { text.withLock { $0 = kept } }

    var hears: [Call] { calls.withLock { $0.filter(\.isStanding) } }
    var rumors: [Secret] {
        calls.withLock { $0.compactMap { if case .say(_, let rumor) = $0.way { rumor } else { nil } } }
    }
    @Sendable func send(_ call: Call) async -> CallAnswer {
        calls.withLock { $0.append(call) }
        return .taken
    }
}

/// What should have been so and was not; ends the program with a status other than 0.
struct Failure: Error {
    let text: String
    init(_ text: String) { self.text = text }
}
