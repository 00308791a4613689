import PushModel
import PushTesting
import Testing
import WireFormats
import ZulipPush

/// What a relay remembers of a caller spares it work and decides nothing: it judges as one does that has just
/// started on the same store.
@Suite("What is remembered of Zulip callers", .timeLimit(.minutes(30)))
struct CallerMemoryTests {
    private static let now = UnixTime(seconds: 1_800_000_000)
    private static let other = "a247ce6a-4a56-4f69-ac0e-09fe4537d3ce"
    private static let otherRealm = "4fd2ef1b-5c5e-4d32-b0bd-1b1d1b0c6d11"
    private static let second = String(repeating: "s", count: 64)

    private struct Judged: Equatable {
        var pushes = 0
        var dead = 0
        var code: ZulipError.Code?
        var endings = 0
    }

    private func judge(
        _ relay: ZulipRelay, _ id: TokenID, _ authorization: String, realm: String = RealmRig.realm
    ) async throws -> Judged {
        let body = Array(RealmRig.body([RealmRig.item(id.text)], realm: realm).utf8)
        do throws(ZulipError) {
            let inbound = try withBytes(body) { (bytes) throws(ZulipError) in
                try ZulipInbound.parse(
                    method: "POST", path: ZulipPath.notify.rawValue, authorization: authorization,
                    body: bytes, credentials: relay.credentials(shownBy:))
            }
            let verdict = try await relay.receive(inbound)
            return Judged(
                pushes: verdict.pushes.count, dead: verdict.charge?.units ?? 0,
                endings: verdict.changes.count)
        } catch {
            return Judged(code: error.code)
        }
    }

    /// One that has just started.
    private func fresh(_ bench: RealmRig) -> ZulipRelay {
        ZulipRelay(
            instance: TestRelay.instance, bouncerKeys: BouncerKeys([bench.pair]), admission: .open,
            registry: bench.relay.store, web: nil, world: bench.relay.world)
    }

    private enum Step: CaseIterable, CustomTestStringConvertible {
        case nothing, suspended, lifted, quota, rotated, rotatedAndUsed, deactivated, takenOver
        case realmGone, deviceGone, deviceForgotten, unreadable, other

        var testDescription: String { "\(self)" }
    }

    @Test("Whatever has changed, it judges as one that has just started", arguments: Step.allCases)
    private func asAnew(_ step: Step) async throws {
        let bench = try await RealmRig(now: Self.now)
        let servers = ZulipServers(TestRelay.instance, bench.relay.store, world: bench.relay.world)
        let id = try await bench.register("ab12", timestamp: Self.now.seconds)
        let uuid = try #require(UUIDText(RealmRig.server))
        let basic = RealmRig.basic(RealmRig.server)
        let warm = bench.relay.relay
        for _ in 0..<3 { #expect(try await judge(warm, id, basic) == Judged(pushes: 1)) }
        func rotate() async {
            let answer = await bench.relay.post(
                .signUp,
                [
                    ("zulip_org_id", RealmRig.server), ("zulip_org_key", RealmRig.key),
                    ("new_org_key", Self.second), ("hostname", "chat.example.org"),
                    ("contact_email", "admin@example.org")
                ])
            #expect(answer.status == 200)
        }
        func deactivate() async {
            let answer = await bench.relay.ask(
                "POST", ZulipPath.deactivate.rawValue, authorization: basic, body: Array("{}".utf8))
            #expect(answer.status == 200)
        }
        switch step {
        case .nothing: break
        case .suspended: #expect(try await servers.set(suspended: true, uuid) == .done)
        case .lifted:
            #expect(try await servers.set(suspended: true, uuid) == .done)
            #expect(try await judge(warm, id, basic).code == .deactivatedServer)
            #expect(try await servers.set(suspended: false, uuid) == .done)
        case .quota: #expect(try await servers.set(quota: 7, uuid) == .done)
        case .rotated: await rotate()
        case .rotatedAndUsed:
            await rotate()
            let used = try await judge(warm, id, RealmRig.basic(RealmRig.server, Self.second))
            #expect(used == Judged(pushes: 1, endings: 1))
        case .deactivated: await deactivate()
        case .takenOver:
            await deactivate()
            #expect(await bench.signUp(Self.other, host: "chat.example.org").status == 200)
            #expect(await bench.reportRealm(RealmRig.realm, by: Self.other).status == 200)
        case .realmGone:
            #expect(await bench.reportRealms([Self.otherRealm], by: RealmRig.server).status == 200)
        case .deviceGone:
            let key = try await bench.relay.deviceKey(try #require(UUIDText(RealmRig.realm)), id)
            _ = try await bench.relay.store.apply([.expire(key, at: Self.now, if: .any)])
        case .deviceForgotten:
            let key = try await bench.relay.deviceKey(try #require(UUIDText(RealmRig.realm)), id)
            _ = try await bench.relay.store.apply([.delete(key, if: .any)])
        case .unreadable: try await bench.makeUnreadable(RealmRig.server)
        case .other:
            #expect(await bench.signUp(Self.other, host: "b.example.org").status == 200)
            _ = await bench.reportRealm(Self.otherRealm, by: Self.other)
        }
        let callers = [
            basic, RealmRig.basic(RealmRig.server, Self.second), RealmRig.basic(Self.other),
            RealmRig.basic(Self.other, Self.second), "Basic ", "Bearer x"
        ]
        // Twice: what the first call has made known is no truth either.
        for round in 0..<2 {
            for (place, caller) in callers.enumerated() {
                for realm in [RealmRig.realm, Self.otherRealm] {
                    let (known, anew) = (
                        try await judge(warm, id, caller, realm: realm),
                        try await judge(fresh(bench), id, caller, realm: realm)
                    )
                    #expect(known == anew, "round \(round), caller \(place), realm \(realm)")
                }
            }
        }
    }

    @Test("A known caller costs one look-up, and who is not known learns nothing by it")
    func lookups() async throws {
        let bench = try await RealmRig(now: Self.now)
        let id = try await bench.register("ab12", timestamp: Self.now.seconds)
        let (warm, basic) = (bench.relay.relay, RealmRig.basic(RealmRig.server))
        let room = TestRelay.instance.text
        let whole = ["\(room)/server", "\(room)/realm", "\(room)/device"]
        _ = try await judge(warm, id, basic)
        bench.relay.store.forget()
        for _ in 0..<3 { _ = try await judge(warm, id, basic) }
        #expect(bench.relay.store.lookups == [whole, whole, whole])
        bench.relay.store.forget()
        #expect(
            try await judge(warm, id, RealmRig.basic(RealmRig.server, Self.second)).code == .wrongServerKey)
        #expect(bench.relay.store.lookups == [Array(whole.prefix(2))])
    }
}
