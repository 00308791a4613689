import AtRest
import DeliveryTesting
import PushModel
import PushTesting
import SessionPush
import Testing
import WireFormats

@testable import RelayProgram

@Suite("Ends that an earlier version has kept among Session's subscriptions", .timeLimit(.minutes(30)))
struct FormerEndTests {
    private let keys = SessionKeys(configured("main"))
    private let now = World.live.now()

    private func account(_ number: Int) throws -> AccountID {
        let digits: [UInt8] = withUnsafeBytes(of: number) { Array($0) }
        let bytes: [UInt8] = [3] + [[UInt8]](repeating: digits, count: 4).joined()
        return try #require(AccountID(Secret(bytes)))
    }

    private let token = Secret(Hex.encode([UInt8](repeating: 7, count: 32)).utf8)

    /// As the version before wrote it: named by its content, with the account as its owner.
    private func former(_ number: Int, _ state: Record.State) throws -> Record {
        Record(
            key: keys.former(try account(number), .apns, token), owner: keys.owner(try account(number)),
            version: 7, state: state, touchedAt: now, expiresAt: now + .seconds(1_000),
            body: Secret(state == .live ? [1, 2, 3] : []))
    }

    @Test("They are moved under hashes at a start, with their times; subscriptions stay as they are")
    func moved() async throws {
        let store = try await SealedMemory(.live).store
        var changes: [Change] = []
        for number in 0..<2_100 {
            changes.append(.put(try former(number, number.isMultiple(of: 3) ? .live : .tombstone), if: .any))
        }
        #expect(try await store.apply(changes) == .committed)
        // One that a call has moved, and outranked, since.
        let (one, later) = (try former(1, .tombstone), try former(2, .tombstone))
        let newer = Record(
            key: keys.end(try account(2), .apns, token), version: 9, state: .tombstone,
            touchedAt: later.touchedAt, expiresAt: later.expiresAt, body: Secret([]))
        #expect(try await store.apply([.put(newer, if: .any)]) == .committed)
        try await FormerEnds.move(in: store, keys)
        let left = try await store.page(.space(keys.subscriptions), after: 0, limit: 10_000)
        #expect(left.count == 700 && left.allSatisfy { $0.state == .live })
        let ends = try await store.page(.space(keys.ends), after: 0, limit: 10_000)
        #expect(ends.count == 1_400)
        #expect(ends.allSatisfy { $0.key.name.count == 32 && $0.owner == nil && $0.state == .tombstone })
        let moved = try #require(try await store.find([keys.end(try account(1), .apns, token)])[0])
        #expect(moved.version == 7 && moved.expiresAt == one.expiresAt && moved.touchedAt == one.touchedAt)
        #expect(try await store.find([newer.key])[0]?.version == 9)
    }
}
