import PushModel
import PushTesting
import Testing
import WireFormats
import ZulipPush

/// `manage.py register_server --rotate-key` uploads once more with the old key before it writes the new one
/// down (docs/conformance/zulip.md).
@Suite("Zulip key rotation", .timeLimit(.minutes(30)))
struct KeyRotationTests {
    private static let second = String(repeating: "2", count: 64)
    private static let third = String(repeating: "3", count: 64)
    private static let realms = #"[{"uuid":"\#(RealmRig.realm)","id":1}]"#

    private func rotate(_ bench: RealmRig, _ key: String, to newKey: String) async -> TestAnswer {
        await bench.relay.post(
            .signUp,
            [
                ("zulip_org_id", RealmRig.server), ("zulip_org_key", key), ("hostname", "chat.example.org"),
                ("contact_email", "admin@example.org"), ("new_org_key", newKey)
            ])
    }

    private func status(_ bench: RealmRig, _ key: String) async -> Int {
        await bench.relay.ask(
            "GET", ZulipPath.analyticsStatus.rawValue,
            authorization: RealmRig.basic(RealmRig.server, key)
        ).status
    }

    /// The one call of a rotation that brings realms.
    private func upload(_ bench: RealmRig, _ key: String) async -> Int {
        await bench.relay.post(
            .analytics, [("realm_counts", "[]"), ("installation_counts", "[]"), ("realms", Self.realms)],
            authorization: RealmRig.basic(RealmRig.server, key)
        ).status
    }

    private func notify(_ bench: RealmRig, _ key: String) async -> Int {
        await bench.relay.ask(
            "POST", ZulipPath.notify.rawValue, authorization: RealmRig.basic(RealmRig.server, key),
            body: Array(RealmRig.body([RealmRig.item("AAAAAAAAAAE=")]).utf8)
        ).status
    }

    @Test("The old key is good until the new one is used, whatever it is used for", arguments: 0..<6)
    func untilUsed(use: Int) async throws {
        let bench = try await RealmRig()
        #expect(await rotate(bench, RealmRig.key, to: Self.second).status == 200)
        for _ in 0..<2 {
            #expect(await status(bench, RealmRig.key) == 200)
            #expect(await upload(bench, RealmRig.key) == 200)
            #expect(await notify(bench, RealmRig.key) == 200)
        }
        switch use {
        case 0: #expect(await status(bench, Self.second) == 200)
        case 1: #expect(await upload(bench, Self.second) == 200)
        case 2: #expect(await notify(bench, Self.second) == 200)
        case 3:
            let tokens = await bench.relay.ask(
                "POST", ZulipPath.legacyNotify.rawValue,
                authorization: RealmRig.basic(RealmRig.server, Self.second), body: Array("{}".utf8))
            #expect(tokens.status == 200)
        case 4:
            let again = await bench.relay.post(
                .signUp,
                [
                    ("zulip_org_id", RealmRig.server), ("zulip_org_key", Self.second),
                    ("hostname", "chat.example.org"), ("contact_email", "admin@example.org")
                ])
            #expect(again.status == 200)
        default: _ = try await bench.register("ab12", timestamp: bench.now.seconds, key: Self.second)
        }
        #expect(await status(bench, RealmRig.key) == 401)
        #expect(await notify(bench, RealmRig.key) == 401)
        #expect(await status(bench, Self.second) == 200)
    }

    @Test("The old key is good for ten minutes at most")
    func tenMinutes() async throws {
        let bench = try await RealmRig()
        #expect(await rotate(bench, RealmRig.key, to: Self.second).status == 200)
        bench.relay.advance(by: .seconds(599))
        #expect(await status(bench, RealmRig.key) == 200)
        bench.relay.advance(by: .seconds(1))
        #expect(await status(bench, RealmRig.key) == 401)
        #expect(await status(bench, Self.second) == 200)
        #expect(try await bench.relay.store.purge(before: bench.now + .seconds(601), limit: 9) == 1)
    }

    @Test(
        "What a relay knows of it stands in the store: another one, and one that starts anew, says the same")
    func otherRelays() async throws {
        let bench = try await RealmRig()
        #expect(await rotate(bench, RealmRig.key, to: Self.second).status == 200)
        func letIn(_ key: String) async throws -> Bool {
            let other = ZulipRelay(
                instance: TestRelay.instance, bouncerKeys: BouncerKeys([bench.pair]), admission: .open,
                registry: bench.relay.store, web: nil, world: bench.relay.world)
            let inbound = try ZulipInbound.parse(
                method: "GET", path: ZulipPath.analyticsStatus.rawValue,
                authorization: RealmRig.basic(RealmRig.server, key),
                body: UnsafeRawBufferPointer(start: nil, count: 0))
            let changes: [Change]
            do throws(ZulipError) { changes = try await other.receive(inbound).changes } catch {
                return false
            }
            return try await bench.relay.store.apply(changes) == .committed
        }
        #expect(try await letIn(RealmRig.key))
        #expect(try await letIn(Self.second))
        #expect(try await !letIn(RealmRig.key))
        #expect(await status(bench, RealmRig.key) == 401)
    }

    @Test(
        "Two rotations in a row: a key ends with the one that took its place, and a sign-up wants the current"
    )
    func twice() async throws {
        let bench = try await RealmRig()
        #expect(await rotate(bench, RealmRig.key, to: Self.second).status == 200)
        // The old key carries calls; it changes neither key nor host.
        let refused = await rotate(bench, RealmRig.key, to: Self.third)
        #expect(refused.status == 400 && refused.code == "INVALID_ZULIP_SERVER")
        #expect(await rotate(bench, Self.second, to: Self.third).status == 200)
        #expect(await status(bench, RealmRig.key) == 401)
        #expect(await status(bench, Self.second) == 200)
        #expect(await status(bench, Self.third) == 200)
        #expect(await status(bench, Self.second) == 401)
        // To the same key again is no rotation.
        #expect(await rotate(bench, Self.third, to: Self.third).status == 200)
        #expect(await status(bench, Self.third) == 200)
    }

    @Test("A key that is neither stays wrong, and a server that goes takes the old key along")
    func endings() async throws {
        let bench = try await RealmRig()
        #expect(await rotate(bench, RealmRig.key, to: Self.second).status == 200)
        #expect(await status(bench, Self.third) == 401)
        let done = await bench.relay.ask(
            "POST", ZulipPath.deactivate.rawValue, authorization: RealmRig.basic(RealmRig.server),
            body: Array("{}".utf8))
        #expect(done.status == 200)
        #expect(await status(bench, RealmRig.key) == 401)
        #expect(await status(bench, Self.second) == 401)
        let left = Space(text: "\(TestRelay.instance.text)/old-key")
        #expect(try await bench.relay.store.page(.space(left), after: 0, limit: 9).isEmpty)
    }
}
