import PushModel
import PushTesting
import SessionPush
import Testing
import WireFormats

/// Rows that the version before has left: named by their content, ends among the subscriptions, and no slots.
@Suite("Rows of an earlier version at a Session relay", .timeLimit(.minutes(30)))
struct FormerRowTests {
    private let alice: PeerAccount

    init() throws { alice = try PeerAccount(seed: 1) }

    private func error(_ answer: JSONValue) -> Int64? { answer["error"]?.int64 }

    /// A relay that has one subscription as the version before wrote it.
    private func rig(_ call: PeerCall, state: Record.State = .live) async throws -> SessionRig {
        let rig = try await SessionRig()
        _ = try await rig.ask("/subscribe", call.subscribe)
        let row = try #require(try await rig.records().first)
        let known = try #require(SessionSubscription(row))
        let isEnd = state == .tombstone
        let former = Record(
            key: rig.keys.former(known.account, known.service, known.token),
            owner: rig.keys.owner(known.account), address: isEnd ? nil : row.address,
            version: row.version | (isEnd ? 1 : 0), state: state, touchedAt: row.touchedAt,
            expiresAt: row.expiresAt, body: isEnd ? Secret([]) : row.body)
        let slots = try await rig.store.page(.space(rig.keys.slots), after: 0, limit: 10)
        let changes = [Change.delete(row.key, if: .any)] + slots.map { .delete($0.key, if: .any) }
        #expect(try await rig.store.apply(changes + [.put(former, if: .any)]) == .committed)
        return rig
    }

    @Test("A subscription is pushed to, renewed under its name with what is owed to it, and ended")
    func living() async throws {
        var call = PeerCall(alice)
        let rig = try await rig(call)
        try await rig.running { rig in
            try await rig.notify(.sample(alice))
            await rig.services.sent(atLeast: 1)
        }
        rig.advance(by: .seconds(1))
        call.at += 1
        #expect(try await rig.ask("/subscribe", call.subscribe)["updated"]?.bool == true)
        let rows = try await rig.records()
        #expect(rows.count == 1)
        let name = rig.keys.former(alice.id, .apns, Secret(call.token.utf8)).name
        #expect(rows.first.map { $0.key.name == name } == true)
        #expect(try await rig.ask("/unsubscribe", call.unsubscribe)["removed"]?.bool == true)
        #expect(try await rig.records().isEmpty)
        call.at -= 1
        #expect(error(try await rig.ask("/subscribe", call.subscribe)) == 4)
    }

    @Test("An end holds off what was signed before it, and goes when the phone comes back")
    func ended() async throws {
        var call = PeerCall(alice)
        let rig = try await rig(call, state: .tombstone)
        call.at -= 1
        #expect(error(try await rig.ask("/subscribe", call.subscribe)) == 4)
        call.at += 2
        #expect(try await rig.ask("/subscribe", call.subscribe)["added"]?.bool == true)
        let rows = try await rig.records()
        #expect(rows.map(\.state) == [.live])
        #expect(rows.first?.key.name.count == 32)
    }
}
