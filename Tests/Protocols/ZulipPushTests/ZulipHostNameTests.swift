import Delivery
import PushModel
import PushTesting
import Testing
import WireFormats
import ZulipPush

/// Who has a host name (decision 0055): under a policy that admits by name one server alone, whatever port
/// it gives and however it spells it; and of a suspended name nobody.
@Suite("Zulip host names, their ports and their holders", .timeLimit(.minutes(30)))
struct ZulipHostNameTests {
    private static let now = UnixTime(seconds: 1_800_000_000)
    private static let ids = [
        "a247ce6a-4a56-4f69-ac0e-09fe4537d3ce", "ffc7cc7c-fee5-4adf-9f44-780f9c2ed8c2",
        "a74ead24-d964-44aa-ae4e-b1114d22ffe6", "e75be68d-8033-4ac4-8465-cf0e9a62de4d",
        "21f61a97-1437-47e1-a4bf-9b1098e8c186"
    ]
    private static let closed: [ZulipAdmission] = [
        .allowList(["chat.example.org", "two.example.org"]), .invitation
    ]

    private func id(_ text: String) throws -> UUIDText { try #require(UUIDText(text)) }

    @Test(
        "A listed or invited name admits one server, whatever port and spelling the next one gives",
        arguments: closed)
    func once(_ admission: ZulipAdmission) async throws {
        let bench = try await RealmRig(now: Self.now, admission: admission)
        let hosts = [
            "chat.example.org", "chat.example.org:443", "chat.example.org:8443", "chat.example.org:08443",
            "CHAT.example.org:1"
        ]
        var answers: [TestAnswer] = []
        for (id, host) in zip(Self.ids, hosts) {
            _ = try await bench.servers.invite("chat.example.org")
            answers.append(await bench.signUp(id, host: host))
        }
        #expect(answers.map(\.status) == [200, 400, 400, 400, 400])
        #expect(answers.dropFirst().allSatisfy { $0.code == "HOSTNAME_ALREADY_IN_USE_BOUNCER_ERROR" })
        // Anyone who has the name may move to another port of it, without asking anew, and come back.
        for host in ["chat.example.org:8443", "chat.example.org"] {
            #expect(await bench.signUp(Self.ids[0], host: host).json["created"]?.bool == false)
            #expect(await bench.signUp(Self.ids[1], host: "chat.example.org:9").status == 400)
        }
    }

    @Test("Invitations are listed until they are used, taken back or over")
    func invitations() async throws {
        let bench = try await RealmRig(now: Self.now, admission: .invitation)
        let listed = { (world: World) async throws -> [String] in
            let book = ZulipServers(TestRelay.instance, bench.relay.store, world: world)
            return try await book.invitations(after: 0, limit: 10).invitations.map(\.host)
        }
        let book = bench.servers
        for host in ["one.example.org", "two.example.org", "three.example.org"] {
            let end = try await book.invite(host)
            #expect(end == Self.now + ZulipLimits.invitationLife)
        }
        #expect(await bench.signUp(Self.ids[0], host: "one.example.org").status == 200)
        #expect(try await book.uninvite("two.example.org:8443") == true)
        #expect(try await book.uninvite("two.example.org") == false)
        #expect(try await book.uninvite("a b") == nil)
        #expect(try await listed(bench.relay.world) == ["three.example.org"])
        var late = bench.relay.world
        late.now = { Self.now + ZulipLimits.invitationLife }
        #expect(try await listed(late).isEmpty)
    }

    @Test("What an operator changes of a server does not say that it was seen")
    func seen() async throws {
        let bench = try await RealmRig(now: Self.now)
        var late = bench.relay.world
        late.now = { Self.now + .seconds(3_600) }
        let book = ZulipServers(TestRelay.instance, bench.relay.store, world: late)
        let id = try id(RealmRig.server)
        #expect(try await book.set(quota: 5, id) == .done)
        #expect(try await book.set(suspended: true, id) == .done)
        let listed = try #require(try await book.page(after: 0, limit: 10).servers.first)
        #expect(listed.server.quota == 5 && listed.server.standing == .suspended)
        #expect(listed.seenAt == Self.now)
        #expect(try await book.host(of: id) == "chat.example.org")
        let held = try await book.holdings(of: id)
        #expect(held == ZulipServers.Holdings(realms: 1, deadRealms: 0, devices: 0))
    }

    @Test("Of two sign-ups that are judged at one time, at two ports of one name, one is let in")
    func race() async throws {
        let bench = try await RealmRig(now: Self.now, admission: Self.closed[0])
        var verdicts: [ZulipRelay.ZulipVerdict] = []
        for (id, port) in zip(Self.ids, ["", ":1", ":2"]) {
            let form = Form([
                ("zulip_org_id", Array(id.utf8)), ("zulip_org_key", Array(RealmRig.key.utf8)),
                ("hostname", Array("chat.example.org\(port)".utf8)),
                ("contact_email", Array("admin@example.org".utf8))
            ])
            verdicts.append(
                try await bench.relay.relay.receive(
                    ZulipInbound(credentials: nil, call: .signUp(SignUpForm(form)))))
        }
        var taken = 0
        for verdict in verdicts {
            do throws(IntakeRefusal<ZulipError>) {
                _ = try await bench.relay.delivery.intake.admit(verdict, instance: TestRelay.instance)
                taken += 1
            } catch {
                guard case .refused(let refusal) = error else { throw error }
                #expect(refusal.code == .hostnameTaken)
            }
        }
        #expect(taken == 1)
    }

    @Test("A holder whose record a newer version wrote has its name still", arguments: closed)
    func unreadable(_ admission: ZulipAdmission) async throws {
        let bench = try await RealmRig(now: Self.now, admission: admission)
        _ = try await bench.servers.invite("chat.example.org")
        #expect(await bench.signUp(Self.ids[0], host: "chat.example.org").status == 200)
        try await bench.makeUnreadable(Self.ids[0])
        _ = try await bench.servers.invite("chat.example.org")
        #expect(await bench.signUp(Self.ids[1], host: "chat.example.org:8443").status == 400)
    }

    @Test("Under an open policy each port may have a server, up to a bound")
    func open() async throws {
        let bench = try await RealmRig(now: Self.now)
        for port in 1..<ZulipLimits.hostsPerName {
            let id = "a247ce6a-4a56-4f69-ac0e-09fe4537d\(100 + port)"
            #expect(await bench.signUp(id, host: "chat.example.org:\(port)").status == 200, "\(port)")
        }
        #expect(await bench.signUp(Self.ids[1], host: "chat.example.org:99").status == 400)
        #expect(await bench.signUp(Self.ids[1], host: "chat.example.org:08").status == 400)
        #expect(await bench.signUp(Self.ids[1], host: "other.example.org").status == 200)
    }

    @Test("A suspended server comes back by no other port, under any policy, until it is resumed")
    func suspended() async throws {
        for admission in Self.closed + [.open] {
            let bench = try await RealmRig(now: Self.now, admission: admission)
            let invite = { try await bench.servers.invite("chat.example.org") }
            let first = admission == .open ? RealmRig.server : Self.ids[0]
            _ = try await invite()
            if admission != .open {
                #expect(await bench.signUp(first, host: "chat.example.org").status == 200)
            }
            #expect(try await bench.servers.set(suspended: true, id(first)) == .done)
            for host in ["chat.example.org:8443", "chat.example.org:0443", "chat.example.org"] {
                _ = try await invite()
                #expect(await bench.signUp(Self.ids[1], host: host).status == 400, "\(host)")
            }
            // Nor does another server of the operator's move there.
            _ = try await bench.servers.invite("two.example.org")
            #expect(await bench.signUp(Self.ids[2], host: "two.example.org").status == 200)
            _ = try await invite()
            #expect(await bench.signUp(Self.ids[2], host: "chat.example.org:8443").status == 400)
            #expect(try await bench.servers.set(suspended: false, id(first)) == .done)
            #expect(await bench.signUp(first, host: "chat.example.org").status == 200)
        }
    }

    @Test("An operator names all servers of a name at once, or one of them by its port")
    func named() async throws {
        let bench = try await RealmRig(now: Self.now)
        #expect(await bench.signUp(Self.ids[0], host: "chat.example.org:8443").status == 200)
        #expect(await bench.signUp(Self.ids[1], host: "two.example.org:8443").status == 200)
        let servers = bench.servers
        let both = try await servers.holders(ofName: "chat.example.org")
        #expect(both == [try id(RealmRig.server), try id(Self.ids[0])])
        #expect(try await servers.holders(ofName: "chat.example.org:08443") == [id(Self.ids[0])])
        #expect(try await servers.holder(of: "chat.example.org") == id(RealmRig.server))
        #expect(try await servers.holder(of: "two.example.org") == id(Self.ids[1]))
        #expect(try await servers.holder(of: "two.example.org:1") == nil)
    }

    @Test("The host of another port is not transferred with a name")
    func transfer() async throws {
        let host = SignUpTests.Host()
        let bench = try await RealmRig(now: Self.now, web: host)
        for name in ["chat.example.org:8443", "chat.example.org:1"] {
            #expect(await bench.relay.post(.transfer, [("hostname", name)]).status == 400)
        }
        // That of https is the one without.
        for name in ["chat.example.org:443", "Chat.example.org:0443"] {
            #expect(await bench.relay.post(.transfer, [("hostname", name)]).status == 200)
        }
    }

    /// What the records say must fit together, whatever happens in whatever order.
    private func check(_ bench: RealmRig, _ admission: ZulipAdmission, _ said: String) async throws {
        let (all, _) = try await bench.servers.page(after: 0, limit: 1_000)
        var standing: [String: [ZulipServer]] = [:]
        for server in all.map(\.server) where server.standing != .deactivated {
            let host = try #require(ZulipHostname(Array(server.hostname.utf8)))
            #expect(host.text == server.hostname, "\(said)")
            #expect(try await bench.servers.holder(of: host.text) == server.id, "\(said)")
            #expect(try await bench.servers.holders(ofName: host.name).contains(server.id), "\(said)")
            standing[host.name, default: []].append(server)
        }
        if admission != .open { #expect(standing.values.allSatisfy { $0.count == 1 }, "\(said)") }
        let hosts = try await bench.relay.store.page(.space(bench.relay.keys.hostSpace), after: 0, limit: 99)
        #expect(hosts.count == standing.values.reduce(0) { $0 + $1.count }, "\(said)")
    }

    @Test("Whatever servers and operator do in whatever order, a name has its holders and no others")
    func anyOrder() async throws {
        for (seed, admission) in zip(UInt64(1)..., Self.closed + [.open] + Self.closed + [.open]) {
            let bench = try await RealmRig(now: Self.now, admission: admission)
            var random = SeededRandom(seed: seed)
            func one<Value>(of values: [Value]) -> Value {
                values[Int(random.next() % UInt64(values.count))]
            }
            for step in 0..<150 {
                let (text, name) = (one(of: Self.ids), one(of: ["chat.example.org", "two.example.org"]))
                let host = name + one(of: ["", ":443", ":8443", ":08443", ":9"])
                let said = "seed \(seed), step \(step)"
                switch random.next() % 10 {
                case 0: _ = try await bench.servers.set(suspended: true, id(text))
                case 1: _ = try await bench.servers.set(suspended: false, id(text))
                case 2: _ = try await bench.servers.forget(id(text))
                case 3: _ = try await bench.servers.invite(name)
                case 4:
                    _ = await bench.relay.ask(
                        "POST", ZulipPath.deactivate.rawValue, authorization: RealmRig.basic(text),
                        body: Array("{}".utf8))
                default:
                    let before = try await suspendedNames(bench)
                    let known = try await bench.relay.record(bench.relay.keys.server(id(text)))
                    let answer = await bench.signUp(text, host: host)
                    #expect(answer.status < 500, "\(said)")
                    if answer.json["created"]?.bool == true, known == nil {
                        #expect(!before.contains(name), "\(said)")
                    }
                }
                try await check(bench, admission, said)
            }
        }
    }

    private func suspendedNames(_ bench: RealmRig) async throws -> Set<String> {
        let (all, _) = try await bench.servers.page(after: 0, limit: 1_000)
        return Set(
            all.map(\.server).filter { $0.standing == .suspended }.compactMap {
                ZulipHostname(Array($0.hostname.utf8))?.name
            })
    }
}
