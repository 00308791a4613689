import PushModel
import PushTesting
import Testing
import WebClient
import WireFormats
import ZulipPush

@testable import RelayProgram

@Suite("Who may sign up, and who is suspended", .timeLimit(.minutes(30)))
struct OriginsTests {
    /// Runs a command line as an operator beside the relay would.
    private func operate(_ relay: RunningRelay, _ arguments: String...) async -> CommandRun {
        await .of(["origins"] + arguments + ["--at", "state"], in: relay.stage.folder.path)
    }

    private func written(_ relay: RunningRelay) throws {
        let file = RunFile(urls: relay.urls, ca: nil, publicKeys: relay.relay.publicKeys, apps: [:])
        try file.write(state: relay.stage.state)
    }

    @Test("An invitation lets one host in, once; a suspension keeps it out until it is lifted")
    func life() async throws {
        let text = RelayStage.text.replacing("sign_up: open", with: "sign_up: invite")
        try await RelayStage.running(text) { relay in
            try written(relay)
            let server = DemoServer()
            let uninvited = try await relay.ask(
                server.origin.signUp(hostname: server.host, mail: server.mail))
            #expect(uninvited.status == 400)
            #expect(await operate(relay, "list").out.isEmpty)
            let invited = await operate(relay, "invite", server.host)
            #expect(invited.status == .done && invited.out.count == 1)
            let invitations = await operate(relay, "invitations")
            #expect(invitations.out.count == 2 && invitations.out[0].hasPrefix("HOST"))
            #expect(invitations.out.last?.hasPrefix(server.host + "  ") == true, "\(invitations.all)")
            try await server.join(relay)
            // The invitation is used up.
            #expect(await operate(relay, "invitations").out.isEmpty)
            #expect(await operate(relay, "uninvite", server.host).status == .failed)
            let second = DemoServer()
            let late = try await relay.ask(
                second.origin.signUp(hostname: "\(server.host):444", mail: second.mail))
            #expect(late.status == 400)

            let listed = await operate(relay, "list", "--json")
            let rows = try #require(try JSONValue.parse(Array(listed.out.joined().utf8)).array)
            #expect(rows.count == 1 && rows[0]["id"]?.string == server.origin.id)
            #expect(rows[0]["host"]?.string == server.host && rows[0]["standing"]?.string == "active")
            #expect(rows[0]["seen_at"]?.int64 != nil)

            let phone = try await relay.phone(.apns, of: server)
            #expect(await operate(relay, "suspend", server.origin.id).status == .done)
            let body = DemoApp.message(1, "hello")
            #expect(try await server.notify(body, [phone], relay).status == 401)
            let list = await operate(relay, "list").out
            let cells = list.last?.split(separator: " ").map(String.init) ?? []
            #expect(list.count == 2 && list[0].hasPrefix("HOST  ") && list[0].hasSuffix("  ID"))
            #expect(Array(cells.prefix(5)) == [server.host, "suspended", "default", "1", "1"], "\(list)")
            #expect(await operate(relay, "resume", server.origin.id).status == .done)
            #expect(try await server.notify(body, [phone], relay).apple == 1)
        }
    }

    @Test("An invitation can be taken back, and then admits nobody")
    func uninvited() async throws {
        let text = RelayStage.text.replacing("sign_up: open", with: "sign_up: invite")
        try await RelayStage.running(text) { relay in
            try written(relay)
            let server = DemoServer()
            #expect(await operate(relay, "uninvite", server.host).status == .failed)
            #expect(await operate(relay, "invite", server.host).status == .done)
            #expect(await operate(relay, "invite", "other.acme.example").status == .done)
            let back = await operate(relay, "uninvite", server.host)
            #expect(back.status == .done && back.out == ["\(server.host) may no longer sign up."])
            let call = server.origin.signUp(hostname: server.host, mail: server.mail)
            #expect(try await relay.ask(call).status == 400)
            let left = await operate(relay, "invitations", "--json")
            let rows = try #require(try JSONValue.parse(Array(left.out.joined().utf8)).array)
            #expect(rows.map { $0["host"]?.string } == ["other.acme.example"])
            // An invitation is the name's, and says so where a port was given.
            let ported = await operate(relay, "invite", "Third.acme.example:8443")
            #expect(ported.out.first?.hasPrefix("third.acme.example may sign up until ") == true)
            #expect(ported.out.first?.hasSuffix("at whatever port.") == true, "\(ported.all)")
            let third = DemoServer()
            let joining = third.origin.signUp(hostname: "third.acme.example:9443", mail: third.mail)
            #expect(try await relay.ask(joining).status == 200)
            #expect(await operate(relay, "invite", "fourth.acme.example:8443").status == .done)
            let taken = await operate(relay, "uninvite", "fourth.acme.example:8443")
            #expect(taken.out == ["fourth.acme.example may no longer sign up."])
            #expect(await operate(relay, "uninvite", "a b").status == .failed)
        }
    }

    @Test("The relay's status is a page for a person, or JSON; --config finds the relay as --at does")
    func status() async throws {
        try await RelayStage.running { relay in
            let person = try Operator(relay)
            let told = await person.run("status")
            #expect(told.status == .done && told.out.first?.hasPrefix("Sealbell ") == true)
            #expect(told.out.contains("Owed: nothing."))
            #expect(told.out.contains { $0.hasPrefix("LANE ") }, "\(told.all)")
            #expect(try await person.json("status")["lanes"]?.array?.isEmpty == false)
            let folder = relay.stage.folder.path
            try writeFile(
                folder + "/other.yaml", Array(minimal(appending: "state: state").utf8), replacing: true)
            let found = await CommandRun.of(["status", "--config", "other.yaml"], in: folder)
            #expect(found.status == .done, "\(found.all)")
            let missing = await CommandRun.of(["status", "--config", "none.yaml"], in: folder)
            #expect(missing.status == .configuration, "\(missing.all)")
        }
    }

    @Test("A suspended name means each of its ports, and nobody comes back by another one")
    func suspendedName() async throws {
        try await RelayStage.running { relay in
            try written(relay)
            let one = try await relay.server()
            let two = try await relay.server("\(one.host):8443")
            let suspended = await operate(relay, "suspend", one.host)
            #expect(suspended.status == .done)
            #expect(suspended.out == [one, two].map { "\($0.host) (\($0.origin.id)) is suspended." })
            for server in [one, two] {
                #expect(try await relay.ask(server.origin.analyticsStatus()).status == 401)
            }
            let third = DemoServer()
            for host in [":9", ":08443", ":443", ""].map({ one.host + $0 }) {
                let call = third.origin.signUp(hostname: host, mail: third.mail)
                #expect(try await relay.ask(call).status == 400, "\(host)")
            }
            #expect(await operate(relay, "resume", "\(one.host):8443").out.count == 1)
            #expect(try await relay.ask(two.origin.analyticsStatus()).status == 200)
            #expect(try await relay.ask(one.origin.analyticsStatus()).status == 401)
            #expect(await operate(relay, "resume", one.host, "--json").out.count == 1)
            #expect(try await relay.ask(one.origin.analyticsStatus()).status == 200)
        }
    }

    @Test("Whose a realm is can be asked, and forgotten; the list counts realms")
    func realms() async throws {
        try await RelayStage.running { relay in
            let person = try Operator(relay)
            let (server, phone) = try await relay.join(.apns)
            let realm = server.realm.uuid
            let told = await person.run("why", "realm", realm)
            #expect(told.status == .done && told.out.count == 3)
            #expect(told.out.first?.contains(server.origin.id) == true)
            #expect(told.out.first?.contains(server.host) == true)
            let json = try await person.json("why", "realm", realm)
            #expect(json["holder"]?["standing"]?.string == "active")
            #expect(await person.run("why", "realm", server.origin.id).status == .failed)
            #expect(await person.run("why", "realm", "x").status == .usage)
            let cells = await person.run("origins", "list").out.last?.split(separator: " ") ?? []
            #expect(cells.dropFirst(3).first == "1", "\(cells)")
            #expect(await person.run("forget", "realm", realm).status == .usage, "not said twice")
            let forgotten = await person.run("forget", "realm", realm, "--yes")
            #expect(forgotten.out == ["Forgotten: 1 realm, 1 device."])
            #expect(await person.run("forget", "realm", realm, "--yes").status == .failed)
            #expect(try await server.notify(.test(time: 1), [phone], relay).status == 403)
            // A push is asked for as ever.
            let push = "019a5c3e-7d41-7c22-9f0e-3b1d2a4c5e6f"
            #expect(await person.run("why", push).status == .failed)
        }
    }

    @Test("A quota of one origin is in force at once, outlives a restart, and leaves the others alone")
    func quota() async throws {
        try await RelayStage.with { stage in
            var joined: (server: DemoServer, phone: DemoApp)?
            try await stage.run { relay in
                try written(relay)
                let (server, phone) = try await relay.join(.apns)
                joined = (server, phone)
                #expect(await operate(relay, "list").out.last?.contains("  default  ") == true)
                #expect(try await server.notify(.test(time: 1), [phone], relay).status == 200)
                let set = await operate(relay, "quota", server.host, "1", "--json")
                #expect(set.status == .done)
                let answer = try JSONValue.parse(Array(set.out.joined().utf8))
                #expect(answer["id"]?.string == server.origin.id && answer["pushes_per_minute"]?.int64 == 1)
                #expect(await operate(relay, "list").out.last?.contains("  1/min  ") == true)
                try await fill(server, phone, relay)
                let other = try await relay.server("other.acme.example")
                let stranger = try await relay.phone(.apns, of: other)
                #expect(try await other.notify(.test(time: 3), [stranger], relay).status == 200)
            }
            let (server, phone) = try #require(joined)
            try await stage.run { relay in
                try written(relay)
                // The schedule is the process's, the quota is the store's.
                let refused = try await fill(server, phone, relay)
                let wait = refused.headers.first { $0.name == "retry-after" }.flatMap { Int($0.value) }
                #expect((1...60).contains(try #require(wait)))
                #expect(await operate(relay, "quota", server.origin.id, "0").status == .done)
                #expect(await operate(relay, "list").out.contains { $0.contains("  unlimited  ") })
                #expect(try await server.notify(.test(time: 6), [phone], relay).status == 200)
                #expect(await operate(relay, "quota", server.origin.id, "default").status == .done)
                let rows = await operate(relay, "list").out
                #expect(rows.count == 3 && rows.dropFirst().allSatisfy { $0.contains("  default  ") })
            }
        }
    }

    /// Notifies at a pace of one a minute until the relay will owe no more: one at once, then what leaves
    /// within ten minutes.
    ///
    /// - Returns: the refusal.
    @discardableResult
    private func fill(
        _ server: DemoServer, _ phone: DemoApp, _ relay: RunningRelay
    ) async throws -> TestAnswer {
        var refused: TestAnswer?
        for count in 0..<20 where refused == nil {
            let answer = try await server.notify(.test(time: Int64(count)), [phone], relay)
            if answer.status == 200 { continue }
            #expect(answer.status == 429)
            #expect((10...12).contains(count), "\(count) owed")
            refused = answer
        }
        return try #require(refused)
    }

    @Test("A quota for nobody, or of no number, changes nothing")
    func badQuotas() async throws {
        try await RelayStage.running { relay in
            try written(relay)
            let server = try await relay.server()
            for number in ["-1", "x", "1.5", "100000001", ""] {
                #expect(await operate(relay, "quota", server.host, number).status == .usage, "\(number)")
            }
            for name in ["nobody.example.org", "a b", "0ec3eedd-6233-4c5e-a000-b9942be3494e"] {
                #expect(await operate(relay, "quota", name, "5").status == .failed, "\(name)")
            }
            let json: (name: String, value: Secret) = ("Content-Type", Secret("application/json".utf8))
            for value in ["-1", "1.5", "\"5\"", "[]", "1e3", "100000001"] {
                let body = "{\"host\":\"\(server.host)\",\"pushes_per_minute\":\(value)}"
                let answer = try await relay.door("admin").ask(
                    "POST", OriginsDesk.quotaPath, headers: [json], body: Secret(body.utf8))
                #expect(answer.status == 400, "\(value)")
            }
            let listed = await operate(relay, "list").out.dropFirst()
            #expect(!listed.isEmpty && listed.allSatisfy { $0.contains("  default  ") })
            #expect(try await relay.ask(server.origin.deactivate()).status == 200)
            #expect(await operate(relay, "quota", server.host, "5").status == .failed)
        }
    }

    @Test("What cannot be done is said, and ends with 1; without a relay it is 69")
    func refusals() async throws {
        try await RelayStage.running { relay in
            #expect(await operate(relay, "list").status == .unavailable)
            try written(relay)
            let unknown = await operate(relay, "suspend", "0ec3eedd-6233-4c5e-a000-b9942be3494e")
            #expect(unknown.status == .failed && unknown.err == ["No origin of this id has signed up."])
            #expect(await operate(relay, "suspend", "nobody").status == .failed)
            #expect(await operate(relay, "invite", "https://x").status == .failed)
            #expect(await operate(relay, "list", "--instance", "zulip-other").status == .failed)
            let server = try await relay.server()
            #expect(try await relay.ask(server.origin.deactivate()).status == 200)
            let gone = await operate(relay, "resume", server.origin.id)
            #expect(
                gone.status == .failed && gone.err == ["This origin has ended its registration itself."])
        }
    }

    @Test("Web pages, other methods and other bodies change nothing at the admin listener")
    func foreign() async throws {
        let text = RelayStage.text.replacing("sign_up: open", with: "sign_up: invite")
        try await RelayStage.running(text) { relay in
            let door = try relay.door("admin")
            let good = Secret("{\"host\":\"chat.acme.example\"}".utf8)
            let json: (name: String, value: Secret) = ("Content-Type", Secret("application/json".utf8))
            func status(
                _ method: String, _ headers: [(name: String, value: Secret)], _ body: Secret
            ) async throws -> Int {
                try await door.ask(method, "/origins/invite", headers: headers, body: body).status
            }
            let page: (name: String, value: Secret) = ("Origin", Secret("https://evil.example".utf8))
            #expect(try await status("POST", [json, page], good) == 403)
            #expect(try await status("POST", [("Content-Type", Secret("text/plain".utf8))], good) == 415)
            #expect(try await status("GET", [json], good) == 405)
            for body in ["", "{", "[]", "{}", "{\"host\":1}", "{\"host\":\"a b\"}"] {
                #expect(try await status("POST", [json], Secret(body.utf8)) == 400)
            }
            let long = Secret(Array(repeating: UInt8(ascii: " "), count: 5000))
            #expect((400..<500).contains(try await status("POST", [json], long)))
            let server = DemoServer()
            let call = server.origin.signUp(hostname: server.host, mail: server.mail)
            #expect(try await relay.ask(call).status == 400)
            #expect(try await status("POST", [json], good) == 200)
            #expect(try await relay.ask(call).status == 200)
        }
    }

    @Test("Where the admin listener has a token, calls need it")
    func token() async throws {
        let text = RelayStage.text.replacing(
            "admin: { bind: \"127.0.0.1:0\" }",
            with: "admin: { bind: \"0.0.0.0:0\", token_file: admin.token }")
        func prepare(_ folder: String) throws {
            try writeFile(folder + "/admin.token", Array("open-sesame\n".utf8), replacing: true)
            try writeFile(folder + "/other.token", Array("sesame\n".utf8), replacing: true)
        }
        try await RelayStage.running(text, prepare: prepare) { relay in
            let door = try relay.door("admin")
            // On loopback too: a proxy may stand there and say nothing of whom it speaks for.
            func status(_ token: String?) async throws -> Int {
                let bearer = token.map { ("Authorization", Secret("Bearer \($0)".utf8)) }
                return try await door.ask("GET", "/origins", headers: bearer.map { [$0] } ?? []).status
            }
            #expect(try await status(nil) == 401)
            #expect(try await status("sesame") == 401)
            #expect(try await status("open-sesame") == 200)
            try written(relay)
            #expect(await operate(relay, "list", "--token-file", "admin.token").status == .done)
            #expect(await operate(relay, "list", "--token-file", "missing").status == .configuration)
            #expect(await operate(relay, "list").status == .failed)
            // As the server itself writes it: anyone who may read the token need not name it.
            let named = relay.stage.folder.path + "/admin.token"
            try RunFile(
                urls: relay.urls, ca: nil, publicKeys: relay.relay.publicKeys, apps: [:], tokenFile: named
            ).write(state: relay.stage.state)
            #expect(await operate(relay, "list").status == .done)
            #expect(await operate(relay, "list", "--token-file", "other.token").status == .failed)
        }
    }
}
