import Foundation
import PushModel
import PushTesting
import Simulators
import Testing
import WireFormats
import ZulipPush

@testable import RelayProgram

@Suite("What a phone of Zulip on the command line meets", .timeLimit(.minutes(30)))
struct ZulipCommandFaultTests {
    @Test("A server that cannot encrypt is refused with --require-e2ee, and is nothing for it without")
    func plaintext() async throws {
        try await RunningOrigin.run(inOneProcess: true, ", profiles: [v11]") { running, key in
            let person = try ZulipPerson(running, key: key)
            let refused = try await person.join(running, "--profile", "zap", "--require-e2ee")
            #expect(refused.status == .failed)
            #expect(refused.out.first?.contains("it cannot encrypt them") == true)
            #expect(refused.out.last == "none: Your server cannot send encrypted notifications.")
            let status = try await person.status()
            #expect(status["advice"]?.string == "unsupported" && status["profile"] == .null)
            let nobody = try await running.desk(.notify, ["user": RunningOrigin.user, "text": "x"])
            #expect(nobody["devices"]?.int64 == 0)

            // Another user, whose setting is off.
            let other = try ZulipPerson(running, key: key)
            let plain = try await other.join(running, "--profile", "zap")
            #expect(plain.status == .failed && plain.out.first?.contains("without encryption") == true)

            // An app that speaks what the server has.
            let updated = await person.run("join", try ZulipPerson.url(running), "--profile", "v11")
            #expect(updated.status == .done && updated.out.contains("joined, profile v11"), "\(updated)")
        }
    }

    @Test("A key that the server does not take leaves nothing behind; a new one takes its place")
    func keys() async throws {
        try await RunningOrigin.run(inOneProcess: true) { running, key in
            let person = try ZulipPerson(running, key: key)
            let wrong = await person.run(
                "join", try ZulipPerson.url(running),
                arguments: [
                    "--user", RunningOrigin.user, "--key", "not the key at all", "--sandbox",
                    running.relay.stage.state
                ])
            #expect(wrong.status == .failed && wrong.out == [])
            #expect(wrong.err == ["The server does not take this user and key."])
            #expect(!FileManager.default.fileExists(atPath: person.state))
            #expect(!FileManager.default.fileExists(atPath: person.marker))

            #expect(try await person.join(running, "--profile", "zap").status == .done)
            let id = try await person.status()["id"]?.string
            let renewed = try await running.desk(.renewKey, ["name": RunningOrigin.user])
            for words in ["status", "listen", "repeat", "token"] {
                let run = await person.run(words)
                #expect(run.status == .failed, "\(words)")
                #expect(run.err == ["The server does not take this user's key."], "\(words)")
                #expect(run.out.contains { $0.contains("Log in again") }, "\(run.out)")
            }
            let other = try #require(renewed["key"]?.string)
            try person.put(other, at: "key")
            let back = await person.run("join", try ZulipPerson.url(running), "--key-file", "key")
            #expect(back.status == .done, "\(back)")
            #expect(try await person.status()["state"]?.string == "active")
            #expect(try await person.status()["id"]?.string != id, "the token of `token` was told")
            #expect(!(wrong.all + back.all).contains(other) && !back.all.contains(key))
        }
    }

    @Test(
        "Without its marker a phone takes its data for another's; what that one registered stays",
        arguments: [ZulipProfile.zap, .v12])
    func restore(_ profile: ZulipProfile) async throws {
        do {
            try await RunningOrigin.run(inOneProcess: true) { running, key in
                let person = try ZulipPerson(running, key: key)
                #expect(try await person.join(running, "--profile", profile.rawValue).status == .done)
                let (former, marker) = (try await person.status()["id"]?.string, try read(person.marker))
                let restored = await person.run("restore")
                let id = try #require(try await person.status()["id"]?.string)
                #expect(restored.status == .done && id != former)
                #expect(
                    restored.out.contains(
                        "a fresh id and fresh keys: \(id); \(former ?? "") is left alone"), "\(restored)")
                #expect(try read(person.marker) != marker)
                // Both are registered: the phone has one token, and opens what is sealed to its own keys.
                _ = try await running.notify("to both", devices: 2)
                let heard = await person.run("listen", "--count", "1", "--for", "600")
                #expect(heard.status == .done && heard.out.contains { $0.hasSuffix(": to both") })

                // A marker that is damaged is not taken for a missing one.
                try writeFile(person.marker, Array("no marker".utf8), replacing: true)
                let damaged = await person.run("status")
                #expect(damaged.status == .failed && damaged.err.joined().contains("holds no marker"))
                #expect(try read(person.marker) == "no marker")
            }
        }
    }

    private func read(_ file: String) throws -> String { try String(contentsOfFile: file, encoding: .utf8) }

    @Test("A phone has several accounts, each with an id of its own, and one token")
    func accounts() async throws {
        try await RunningOrigin.run(inOneProcess: true) { running, key in
            let person = try ZulipPerson(running, key: key)
            let url = try ZulipPerson.url(running)
            #expect(try await person.join(running, "--profile", "zap").status == .done)
            let bob = "bob@example.org"
            let made = try await running.desk(.addUser, ["name": bob])
            try person.put(try #require(made["key"]?.string), at: "bob")
            let second = await person.run(
                "join", url, "--user", bob, "--key-file", "bob", "--profile", "zap")
            #expect(second.status == .done && second.out.contains("\(bob): joined, profile zap"), "\(second)")
            let both = await person.run("status")
            #expect(both.out.filter { $0.contains(": active for ") }.count == 2, "\(both)")
            #expect(try person.account(0)["registration"] != person.account(1)["registration"])
            for words in ["repeat", "forget", "leave"] {
                #expect(await person.run(words).status == .usage, "\(words)")
            }
            #expect(await person.run("repeat", "--user", "eve@example.org").status == .failed)

            _ = try await running.notify("for ada")
            _ = try await running.desk(.notify, ["user": bob, "text": "for bob"])
            let heard = await person.run("listen", "--count", "2", "--for", "600")
            #expect(heard.out.contains { $0.hasPrefix(RunningOrigin.user) && $0.hasSuffix(": for ada") })
            #expect(heard.out.contains { $0.hasPrefix(bob) && $0.hasSuffix(": for bob") }, "\(heard)")

            #expect(await person.run("leave", "--user", RunningOrigin.user).status == .done)
            #expect(await person.run("repeat").status == .done, "the other one stays")
            #expect(try person.account()["user"]?.string == bob)
        }
    }

    @Test("It opens a push from a file and from standard input, and nothing that is another's")
    func opening() async throws {
        try await RunningOrigin.run(inOneProcess: true) { running, key in
            let person = try ZulipPerson(running, key: key)
            let arguments = ["--service", "fcm", "--profile", "zap"]
            #expect(
                try await person.join(running, arguments[0], arguments[1], arguments[2], arguments[3]).status
                    == .done)
            let token = try #require(try person.kept()["token"]?.string)
            let arrivals = running.relay.stage.fcm.subscribe(address: token)
            _ = try await running.notify("see you at nine")
            let whole = String(decoding: try await arrivals.next("a push").body, as: UTF8.self)
            try person.put(whole, at: "push")
            let data = try #require(try JSONValue.parse(Array(whole.utf8))["message"]?["data"]).serialized()
            for run in [
                await person.run("open", "--file", "push"),
                await person.run("open", "--file", "-", input: String(decoding: data, as: UTF8.self))
            ] {
                #expect(run.status == .done && run.out.last?.hasSuffix(": see you at nine") == true)
            }
            for input in ["", "{}", "no push", #"{"push_account_id":1,"encrypted_content":"AAAA"}"#] {
                let run = await person.run("open", "--file", "-", input: input)
                #expect(run.status == .failed && run.out == [] && run.err.count == 1, "\(input)")
            }
            let other = try ZulipPerson(running, key: key)
            #expect(try await other.join(running, "--profile", "zap").status == .done)
            #expect(await other.run("open", "--file", "-", input: whole).status == .failed)
        }
    }

    @Test("What it cannot do it says in a line, and writes nothing")
    func faults() async throws {
        let person = try ZulipPerson()
        let (url, login) = ("http://127.0.0.1:1", ["--user", "ada@example.org", "--key", "k"])
        let bouncer = Base64.text([UInt8](repeating: 9, count: 32))
        for words in [
            [], [url], [url] + login, [url, "--user", "ada"], ["http://192.0.2.1"] + login,
            [url] + login + ["--bouncer-key", "AAAA"], [url] + login + ["--bouncer-key", bouncer],
            [url] + login + ["--profile", "v13"], [url] + login + ["--service", "huawei"],
            [url] + login + ["--key-file", "key"], [url] + login + ["--count", "1"],
            ["\(url)/?x"] + login + ["--bouncer-key", bouncer, "--app-id", "a"],
            [url, "--user", "a:b", "--key", "k", "--bouncer-key", bouncer, "--app-id", "a"]
        ] {
            let run = await person.run("join", arguments: words)
            #expect(run.status == .usage && !run.err.isEmpty && run.out == [], "\(words) \(run)")
        }
        for words in [
            ["listen", "--count", "0"], ["listen", "--for", "0"], ["token", "t", "--token-file", "f"]
        ] {
            #expect(await person.run(words[0], arguments: Array(words.dropFirst())).status == .usage)
        }
        let away = await person.run(
            "join", url, arguments: login + ["--bouncer-key", bouncer, "--app-id", "a"])
        #expect(away.status == .unavailable && away.err.count == 1 && away.out == [])
        let nowhere = await person.run("join", url, arguments: login + ["--sandbox", "none"])
        #expect(nowhere.status == .unavailable && nowhere.err.joined().contains("serve --sandbox"))
        let commands = ["status", "listen", "open", "repeat", "token", "forget", "restore", "leave"]
        for word in commands { #expect(await person.run(word).status == .failed, "\(word)") }
        #expect(!FileManager.default.fileExists(atPath: person.state))
        #expect(!FileManager.default.fileExists(atPath: person.marker))

        let account =
            #"[{\"url\":\"http://127.0.0.1:1\",\"user\":\"ada\",\"api_key\":\"s3cret\",\"device\":\"x\"}]"#
        for text in [
            "", "{}", "[]", #"{"service":"apns"}"#,
            #"{"service":"apns","token":"s3cret","bouncer_key":"k","accounts":"s3cret"}"#,
            #"{"service":"apns","token":"s3cret","bouncer_key":"k","accounts":"\#(account)"}"#
        ] {
            try person.put(text, at: "phone.json")
            for word in text.isEmpty ? commands + ["join"] : ["status"] {
                let run = await person.run(word, arguments: word == "join" ? [url] + login : [])
                #expect(run.status == .failed, "\(word) \(text)")
                #expect(run.err.count == 1 && run.err.joined().contains("holds no phone"), "\(word) \(run)")
                #expect(!run.all.contains("s3cret"))
            }
            #expect(try read(person.state) == text)
        }
    }
}
