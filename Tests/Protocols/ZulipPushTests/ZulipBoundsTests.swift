import PushModel
import PushTesting
import Testing
import WireFormats
import ZulipPush

/// What one admitted server may take of the store, and of its commits.
@Suite("Zulip servers and what they may take", .timeLimit(.minutes(30)))
struct ZulipBoundsTests {
    private static let now = UnixTime(seconds: 1_800_000_000)
    private static let other = "a247ce6a-4a56-4f69-ac0e-09fe4537d3ce"

    /// A UUID of version 4 for each number.
    private func realm(_ number: Int) -> String {
        let digits = String(number, radix: 16)
        return "0ec3eedd-6233-4c5e-a000-" + String(repeating: "0", count: 12 - digits.utf8.count) + digits
    }

    private func realms(_ bench: RealmRig) async throws -> [ZulipRealm] {
        let space = bench.relay.keys.realmSpace
        return try await bench.relay.store.page(.space(space), after: 0, limit: 100_000).compactMap {
            ZulipRealm(body: $0.body)
        }
    }

    private func canPush(_ answer: TestAnswer) -> Int {
        answer.json["realms"]?.object?.members.count { $0.value["can_push"]?.bool == true } ?? 0
    }

    @Test("However many fresh realms a server reports, its records are bounded, the dead ones with them")
    func freshRealms() async throws {
        var bounds = ZulipBounds()
        bounds.realms = 400
        let bench = try await RealmRig(now: Self.now, bounds: bounds)
        for round in 0..<12 {
            let fresh = (0..<300).map { realm(1_000 * (round + 1) + $0) }
            let answer = await bench.reportRealms(fresh, by: RealmRig.server)
            #expect(answer.status == 200)
            let known = try await realms(bench)
            #expect(known.count <= 400, "round \(round)")
            // What it says can push is what it has.
            #expect(canPush(answer) == known.count { !$0.isLocallyDeleted }, "round \(round)")
        }
        // Somebody else has all the room there is.
        #expect(await bench.signUp(Self.other, host: "b.example.org").status == 200)
        let theirs = await bench.reportRealms((0..<400).map { realm(900_000 + $0) }, by: Self.other)
        #expect(canPush(theirs) == 400)
    }

    @Test("A realm that is reported no longer goes where it has no devices, and stays where it has some")
    func deadRealms() async throws {
        let bench = try await RealmRig(now: Self.now)
        #expect(await bench.reportRealms([RealmRig.realm, realm(1)], by: RealmRig.server).status == 200)
        let id = try await bench.register("ab12", timestamp: Self.now.seconds)
        #expect(await bench.reportRealms([realm(2)], by: RealmRig.server).status == 200)
        let known = try await realms(bench)
        #expect(Set(known.map(\.id.text)) == [RealmRig.realm, realm(2)])
        #expect(known.first { $0.id.text == RealmRig.realm }?.isLocallyDeleted == true)
        // It comes back with its device.
        #expect(await bench.reportRealms([RealmRig.realm], by: RealmRig.server).status == 200)
        try await bench.relay.running { _ in
            let sent = await bench.notify([id])
            #expect(sent.json["apple_successfully_sent_count"]?.int64 == 1)
        }
    }

    @Test("A large upload is written in pages, and a page holds whole realms")
    func pages() async throws {
        let bench = try await RealmRig(now: Self.now)
        let list = (0..<5_000).map { #"{"uuid":"\#(realm($0))","id":1}"# }.joined(separator: ",")
        let form = try AnalyticsForm(
            Form([
                ("realm_counts", Array("[]".utf8)), ("installation_counts", Array("[]".utf8)),
                ("realms", Array("[\(list)]".utf8))
            ]))
        let credentials = try ServerCredentials(authorization: RealmRig.basic(RealmRig.server))
        let verdict = try await bench.relay.relay.receive(
            ZulipInbound(credentials: credentials, call: .analytics(form)))
        #expect(verdict.changes.count < 10)
        #expect(verdict.pages.allSatisfy { $0.count <= 128 })
        #expect(verdict.pages.reduce(0) { $0 + $1.count } >= 5_000)
        #expect(verdict.charge?.units ?? 0 >= 10_000)
    }

    @Test("Registrations are bounded for each realm and each server, by number; repeats are none")
    func registrations() async throws {
        var bounds = ZulipBounds()
        (bounds.registrationsPerRealm, bounds.registrationsPerServer) = (3, 5)
        let bench = try await RealmRig(now: Self.now, bounds: bounds)
        #expect(await bench.reportRealms([RealmRig.realm, realm(1)], by: RealmRig.server).status == 200)
        #expect(await bench.signUp(Self.other, host: "b.example.org").status == 200)
        #expect(await bench.reportRealms([realm(2)], by: Self.other).status == 200)
        func status(
            _ token: Int, _ realm: String, by server: String = RealmRig.server
        ) async throws -> Int {
            try await bench.ask(toRegister: "token \(token)", realm: realm, by: server).status
        }
        for token in 1...3 { #expect(try await status(token, RealmRig.realm) == 200) }
        let refused = try await bench.ask(toRegister: "token 4")
        #expect(refused.status == 400 && refused.code == "BAD_REQUEST")
        // Anyone who is registered may go on saying so.
        #expect(try await status(1, RealmRig.realm) == 200)
        for token in 5...6 { #expect(try await status(token, realm(1)) == 200) }
        #expect(try await status(7, realm(1)) == 400, "the server's own bound")
        #expect(try await status(8, realm(2), by: Self.other) == 200, "another's are its own")
        #expect(try await bench.relay.deviceRevisions().count == 6)
        // Counted seldom, whatever comes.
        #expect(bench.relay.store.tallies <= 3)
    }

    @Test("Registrations are bounded by what they take, too")
    func registrationBytes() async throws {
        var bounds = ZulipBounds()
        bounds.registrationBytesPerRealm = 20_000
        let bench = try await RealmRig(now: Self.now, bounds: bounds)
        var taken = 0
        for number in 100..<120 {
            let token = String(repeating: "x", count: 4_000) + "\(number)"
            if try await bench.ask(toRegister: token).status == 200 { taken += 1 }
        }
        #expect((3...5).contains(taken))
        // What is small still fits.
        #expect(try await bench.ask(toRegister: "small").status == 200)
    }

    @Test("What another relay on the store has registered meanwhile is counted in time")
    func recount() async throws {
        var bounds = ZulipBounds()
        (bounds.registrationsPerRealm, bounds.newPerCount) = (10, 4)
        let bench = try await RealmRig(now: Self.now, bounds: bounds)
        #expect(try await bench.ask(toRegister: "token 1").status == 200)
        let tenancy = ZulipTenancy(
            try #require(UUIDText(RealmRig.realm)), of: try #require(UUIDText(RealmRig.server)),
            .byServer)
        let others = (1...6).map { number in
            Change.put(
                Record(
                    key: bench.relay.keys.device(tenancy, TokenID(UInt64(number))),
                    owner: bench.relay.keys.devices(of: tenancy), touchedAt: Self.now, body: Secret([1])),
                if: .any)
        }
        #expect(try await bench.relay.store.apply(others) == .committed)
        for number in 2...4 { #expect(try await bench.ask(toRegister: "token \(number)").status == 200) }
        #expect(try await bench.ask(toRegister: "token 5").status == 400)
    }
}
