import AtRest
import Foundation
import MemoryStore
import PostgresStore
import PushModel
import PushTesting
import SQLiteStore
import Testing

/// An engine of each kind, to be opened as several owners.
struct FormBench: Sendable {
    enum Kind: CaseIterable, Sendable { case memory, sqlite, postgres }

    typealias Opened = any Engine & StoreUpkeep

    let clock = ManualClock()
    let open: @Sendable (UInt64) async throws -> Opened
    /// Whether several owners may be alive.
    let isShared: Bool

    /// - Parameter folder: where a file stands that the caller removes.
    init(_ kind: Kind, _ folder: TemporaryStore) async throws {
        let clock = clock
        @Sendable func owner(_ number: UInt64) -> OwnerID { OwnerID(Digest16(high: number, low: 1)) }
        isShared = kind != .sqlite
        switch kind {
        case .memory:
            let shared = MemoryStore.Shared()
            open = { MemoryStore(owner: owner($0), sharing: shared, clock: { clock.now }) }
        case .sqlite:
            let path = folder.path
            open = { try SQLiteStore(path: path, owner: owner($0), world: clock.world(seed: $0)) }
        case .postgres:
            let database = try await PostgresDatabase()
            open = { try await database.open(owner($0)) }
        }
    }
}

@Suite("Addresses are named by instance", .timeLimit(.minutes(30)))
struct AddressFormTests {
    private static let instances = [ConfiguredName("chat")!, ConfiguredName("cloud")!]
    private static let lane = LaneName("acme/apns/production")!
    private static let token = "a1" + String(repeating: "b2", count: 31)
    private let folder: TemporaryStore

    init() throws { folder = try TemporaryStore() }

    /// A relay as the program opens it.
    private struct Relay {
        let engine: FormBench.Opened
        let store: SealedStore
    }

    private static func relay(
        _ engine: FormBench.Opened, _ keys: AtRestKeys, _ bench: FormBench
    ) async throws -> Relay {
        let store = try await SealedStore(
            engine: engine, keys: keys, world: bench.clock.world(seed: 9), upkeep: engine)
        try await store.renew(for: .seconds(3_600))
        return Relay(engine: engine, store: store)
    }

    private static func key(_ instance: ConfiguredName) -> RecordKey {
        RecordKey(Space(instance, "device"), Secret("phone".utf8))
    }

    private static func registration(
        _ instance: ConfiguredName, token: String = token, bundle: String = "org.acme.chat", _ now: UnixTime
    ) -> Record {
        Record(
            key: key(instance), owner: RecordKey(Space(instance, "realm"), Secret("realm".utf8)),
            address: RecordKey(.addresses(of: instance), Secret("\(bundle)\0\(token)".utf8)), touchedAt: now,
            body: Secret("\(bundle) \(token)".utf8))
    }

    private static func item(
        _ instance: ConfiguredName, of registered: Digest16?, parked: Bool, _ now: UnixTime
    ) -> Acceptance.Item {
        let message = APNsMessage(
            token: Secret(token.utf8), bundle: "org.acme.chat", pushType: .alert, priority: 10,
            payload: Secret("{}".utf8))
        let push = Push(
            message: .apns(message), pushClass: .normal, origin: Secret("server".utf8), record: key(instance),
            touchedAt: now, registeredAddress: registered, custodyEnds: now + .seconds(86_400),
            repeatIdentity: Secret("\(instance) \(parked)".utf8))
        return Acceptance.Item(push: push, lane: lane, parked: parked)
    }

    /// A phone registers at both instances, and each owes it two pushes.
    private static func serve(_ relay: Relay, _ now: UnixTime) async throws -> [OwedPush] {
        var owed: [OwedPush] = []
        for instance in instances {
            _ = try await relay.store.apply([.put(registration(instance, now), if: .any)])
            let found = try #require(try await relay.store.find([key(instance)])[0])
            let items = [true, false].map { item(instance, of: found.addressDigest, parked: $0, now) }
            let accepted = try await relay.store.accept(
                Acceptance(instance: instance, items: items, changes: []))
            guard case .committed(let admissions) = accepted else { continue }
            for case .owed(let push) in admissions { owed.append(push) }
        }
        return owed
    }

    private static func rows(_ relay: Relay) async throws -> [StoredRecord] {
        try await relay.engine.records(after: [], limit: 100).rows.filter { $0.space.hasSuffix("/device") }
    }

    /// Whatever a thief of the database compares.
    private static func columns(_ relay: Relay, of instance: ConfiguredName) async throws -> Set<Digest16> {
        var seen: Set<Digest16> = []
        for row in try await rows(relay) where row.space.hasPrefix("\(instance)/") {
            seen.formUnion([row.key] + [row.owner, row.address].compactMap(\.self))
        }
        let keys = try await rows(relay).filter { $0.space.hasPrefix("\(instance)/") }.map(\.key)
        for owed in try await relay.engine.pushes(after: [], limit: 100).rows {
            guard let record = owed.push.record, keys.contains(record) else { continue }
            let (push, id) = (owed.push, owed.push.id.value)
            seen.formUnion([id, push.origin, record] + [push.address, push.mark].compactMap(\.self))
        }
        return seen
    }

    @Test(
        "A thief of the database joins one phone's registrations at two instances by no column",
        arguments: FormBench.Kind.allCases)
    func thief(_ kind: FormBench.Kind) async throws {
        let bench = try await FormBench(kind, folder)
        let keys = AtRestKeys.generate(bench.clock.world(seed: 4))
        let relay = try await Self.relay(try await bench.open(1), keys, bench)
        let owed = try await Self.serve(relay, bench.clock.now)
        #expect(owed.count == 4)
        let chat = try await Self.columns(relay, of: Self.instances[0])
        let cloud = try await Self.columns(relay, of: Self.instances[1])
        // Key, owner, address; of two pushes id, mark, and their origin.
        #expect(chat.count == 8 && cloud.count == 8)
        #expect(chat.isDisjoint(with: cloud))
        let known = Set(owed.map(\.sentAs.value))
        #expect(known.count == 4 && known.isDisjoint(with: chat.union(cloud)))
        guard kind == .sqlite else { return }
        // Apple's records against the files, while pushes are owed and when marks alone are left.
        for isSettled in [false, true] {
            if isSettled {
                let steps = owed.map { Settlement($0, .settle, first: .accepted) }
                #expect(try await relay.store.settle(steps, feedback: []).allSatisfy { $0 })
            }
            let files = try folder.bytes()
            for push in owed {
                #expect(files.range(of: Data(push.id.value.bytes)) != nil, "the search finds what is there")
                #expect(files.range(of: Data(push.sentAs.value.bytes)) == nil)
                #expect(files.range(of: Data(push.sentAs.text.utf8)) == nil)
                #expect(relay.store.row(sentAs: push.sentAs) == push.id, "whoever has the key finds it")
            }
        }
    }

    @Test("A push is sent under one name, by whoever sends it; one without a row under its own")
    func oneName() async throws {
        let bench = try await FormBench(.memory, folder)
        let keys = AtRestKeys.generate(bench.clock.world(seed: 4))
        let first = try await Self.relay(try await bench.open(1), keys, bench)
        let sent = try await Self.serve(first, bench.clock.now)
        #expect(Set(sent.map(\.id.version)) == [8] && Set(sent.map(\.sentAs.version)) == [4])
        // The process is gone, and another one takes over.
        bench.clock.advance(by: .seconds(3_700))
        let second = try await Self.relay(try await bench.open(2), keys, bench)
        _ = try await second.store.takeOver([Self.lane], limit: 10)
        let claimed = try await second.store.claim(Self.lane, due: bench.clock.now, limit: 10)
        #expect(Set(claimed.map(\.sentAs)) == Set(sent.map(\.sentAs)) && claimed.count == 4)
        let old = PushID(at: bench.clock.now, random: 1, 2)
        #expect(old.version == 7 && second.store.row(sentAs: old) == old)
    }

    @Test(
        "The same phone stays the same with each renewal; another token ends what was owed to it",
        arguments: FormBench.Kind.allCases)
    func renewed(_ kind: FormBench.Kind) async throws {
        let bench = try await FormBench(kind, folder)
        let keys = AtRestKeys.generate(bench.clock.world(seed: 4))
        let relay = try await Self.relay(try await bench.open(1), keys, bench)
        let owed = try await Self.serve(relay, bench.clock.now)
        let now = bench.clock.now
        #expect(Set(try await Self.rows(relay).map(\.address)).count == 2)
        #expect(Set(try await Self.rows(relay).map(\.body.count)).count == 1)
        for instance in Self.instances {
            _ = try await relay.store.apply([.put(Self.registration(instance, now), if: .any)])
            let index = RecordIndex.address(Self.registration(instance, now).address!)
            let page = try await relay.store.page(index, after: 0, limit: 9)
            #expect(page.map(\.key.space) == [Self.key(instance).space])
        }
        #expect(try await relay.store.load().rows == 4)
        #expect(try await relay.store.claim(Self.lane, due: now, limit: 10).count == 2)
        let held = owed.filter { $0.instance == Self.instances[0] }
        #expect(held.count == 2)
        let other = Self.registration(Self.instances[0], token: String(repeating: "c3", count: 32), now)
        _ = try await relay.store.apply([.put(other, if: .any)])
        #expect(try await relay.store.load().rows == 2)
    }

    @Test("The size of a registration does not tell Apple's device from Google's")
    func sizes() async throws {
        let bench = try await FormBench(.memory, folder)
        let keys = AtRestKeys.generate(bench.clock.world(seed: 4))
        let relay = try await Self.relay(try await bench.open(1), keys, bench)
        let phones = [(64, "org.acme.chat"), (142, ""), (152, ""), (163, ""), (64, "org.acme.a-longer-name")]
        var sizes: [Int] = []
        for (length, bundle) in phones {
            let record = Self.registration(
                Self.instances[0], token: String(repeating: "d", count: length), bundle: bundle,
                bench.clock.now)
            _ = try await relay.store.apply([.put(record, if: .any)])
            sizes.append(try #require(try await Self.rows(relay).first).body.count)
            let found = try #require(try await relay.store.find([Self.key(Self.instances[0])])[0])
            let (address, known) = (try #require(found.address), try #require(record.address))
            #expect(address.name == known.name && address.space == known.space)
            #expect(found.body == record.body)
        }
        #expect(Set(sizes).count == 1, "\(sizes)")
    }
}
