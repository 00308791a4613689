import Primitives
import PushModel
import PushTesting
import SessionPush
import Testing
import WireFormats

/// What members of a swarm tell of one message, some of whom may lie.
@Suite("Reports of one message", .timeLimit(.minutes(30)))
struct ReportTests {
    private let alice: PeerAccount
    private let truth = Array("sealed for the account".utf8)
    private let lie = Array("what nobody has written".utf8)

    init() throws { alice = try PeerAccount(seed: 1) }

    private func rig() async throws -> SessionRig {
        let rig = try await SessionRig()
        _ = try await rig.ask("/subscribe", PeerCall(alice).subscribe)
        return rig
    }

    /// A message under its true hash.
    private func push(
        _ told: [UInt8]?, by node: UInt64, lasts: Duration = .seconds(86_400), namespace: Int16 = 0
    ) -> StorageNotice {
        var push = StorageNotice.sample(
            alice, hash: Self.hash(alice, namespace, truth), namespace: namespace, lasts: lasts, data: told)
        push.teller = node
        return push
    }

    /// As storage servers make it.
    private static func hash(_ account: PeerAccount, _ namespace: Int16, _ data: [UInt8]) -> String {
        let text = namespace == 0 ? "" : String(namespace)
        let all = account.id.bytes.reveal { Array($0) } + Array(text.utf8) + data
        let hash = all.withUnsafeBytes { Blake2b.digest32([$0]) }.reveal { Array($0) }
        return String(decoding: Base64.encode(hash).prefix(43), as: UTF8.self)
    }

    private func count(_ rig: SessionRig, _ push: StorageNotice) async throws -> Int {
        try await rig.relay.receive(.notified(push)).pushes.count
    }

    /// A message of the storage server's own unit test ("message hashing"), and the hash that it expects
    /// there.
    private static let published = (
        account: "05ffba630924aa1224bb930dde21c0d11bf004608f2812217f8ac812d6c7e3ad48",
        hash: "4sMyAuaZlMwww3oFvfhazfw7ASx/7TDtO+TVc8aAjHs",
        data: """
        CAES1gIKA1BVVBIPL2FwaS92MS9tZXNzYWdlGrsCCAYovfqZv4YvQq8CVwutUBbhRzZw80TvR6uTYMKg9DSagrtpeEpY31L7VxawfS8a\
        Sya0SiDa4J025SkjP13YX8g5pxgQ8Z6hgfNArMqr/tSijJ9miVKVDJ63YWE85O8kyWF8tdtZR5j0Vxb+JH5U8Rg1bp7ftKk3OSf7JJMc\
        rUUrDnctQHe540zJ2OTDJ03DfubkX5NmKqEu5nhXGxeeDv3mTiL63fjtCvZYcikfjf6Nh1AX++HTgJ9SGoEIMastGUorFrmmXb2sbjHx\
        NiJn0Radj/VzcA9VxYwBW5+AbGQ2d9+vvm7X+8vh+jIenJfjxf+8CWER+9adNfb4YUH07I+godNCV0O0J05gzqfKdT7J8MBZzFBtKrbk\
        8oCagPpTsq/wZyYFKFKKD+q+zh704dYBILvs5yXUA96pIAA=
        """
    )

    @Test("A message's hash is the one that the storage server's own test expects, and no other byte fits it")
    func published() throws {
        let account = try #require(AccountID(Secret(try Hex.decode(Array(Self.published.account.utf8)))))
        func push(_ data: [UInt8]?, namespace: Int16 = 0, hash: String) -> StorageNotice {
            StorageNotice(
                account: account, hash: Secret(hash.utf8), namespace: namespace, timestamp: SessionRig.now,
                expiry: SessionRig.now, data: data.map { Secret($0) })
        }
        var data = try Base64.decode(Self.published.data)
        #expect(StorageHash.fits(push(data, hash: Self.published.hash)))
        #expect(!StorageHash.fits(push(data, namespace: 1, hash: Self.published.hash)))
        #expect(!StorageHash.fits(push(nil, hash: Self.published.hash)))
        #expect(!StorageHash.fits(push(data, hash: Self.published.hash + "=")))
        data[0] ^= 1
        #expect(!StorageHash.fits(push(data, hash: Self.published.hash)))
        for namespace: Int16 in [-11, 11, 1_000] {
            let told = self.push(truth, by: 1, namespace: namespace)
            #expect(StorageHash.fits(told), "\(namespace)")
        }
    }

    @Test("A node that lies about a message hides nothing of what the others say")
    func lieFirst() async throws {
        let rig = try await rig()
        #expect(try await count(rig, push(lie, by: 1)) == 1)
        #expect(try await count(rig, push(truth, by: 2)) == 1)
        // Its own word, told again.
        #expect(try await count(rig, push(lie, by: 1)) == 0)
    }

    @Test("Nor one that leaves the message out, or says that it is over in a second")
    func halfLies() async throws {
        for half in [push(nil, by: 1), push(truth, by: 1, lasts: .seconds(1))] {
            let rig = try await rig()
            #expect(try await count(rig, half) == 1)
            #expect(try await count(rig, push(truth, by: 2)) == 1)
        }
    }

    @Test("What agrees is a repeat, whoever says it, and so is what says less")
    func agreement() async throws {
        let rig = try await rig()
        #expect(try await count(rig, push(truth, by: 1)) == 1)
        for node: UInt64 in 1...5 {
            #expect(try await count(rig, push(truth, by: node)) == 0)
            #expect(try await count(rig, push(nil, by: node)) == 0)
        }
    }

    @Test("A node is heard once beside the first, so that it cannot flood a phone under one hash")
    func flood() async throws {
        let rig = try await rig()
        var taken = 0
        for number in 0..<50 {
            taken += try await count(rig, push(Array("lie \(number)".utf8), by: 1))
        }
        #expect(taken == 2)
        #expect(try await count(rig, push(truth, by: 2)) == 1)
    }

    @Test("A phone gets the truth behind a lie, and what all others say of it once")
    func delivered() async throws {
        let rig = try await rig()
        try await rig.running { rig in
            try await rig.notify(push(lie, by: 1))
            for node: UInt64 in 2...6 { try await rig.notify(push(truth, by: node)) }
            try await rig.notify(push(truth, by: 7, namespace: 2))
            await rig.services.sent(atLeast: 3)
            let told = try rig.services.sent.map {
                try OpenedPush($0.message, key: String(repeating: "5c", count: 32)).data
            }
            #expect(told == [lie, truth, truth])
        }
    }

    @Test("Two relays on one store: the lie that one of them hears hides nothing of what the other hears")
    func relays() async throws {
        let rig = try await rig()
        let other = try await SessionRig()
        _ = try await other.ask("/subscribe", PeerCall(alice).subscribe)
        func identity(_ rig: SessionRig, _ push: StorageNotice) async throws -> String? {
            try await rig.relay.receive(.notified(push)).pushes.first?.repeatIdentity.map {
                PeerAccount.hex($0)
            }
        }
        let first = try await identity(rig, push(lie, by: 1))
        let second = try await identity(other, push(truth, by: 2))
        let third = try await identity(rig, push(truth, by: 3))
        #expect(first != second && second == third)
    }
}
