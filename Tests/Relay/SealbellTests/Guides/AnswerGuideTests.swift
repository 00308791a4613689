import Foundation
import PushModel
import PushTesting
import SealbellKit
import Testing
import ZulipPush

@testable import RelayProgram

/// The pages that answer somebody who has a relay, or comes to one from elsewhere.
extension GuideCommandTests {
    private static let realm = "0ec3eedd-6233-4c5e-a000-b9942be3494e"

    // MARK: Monitoring

    @Test("monitoring.md")
    func monitoring() async throws {
        try await GuideRehearsal.of(
            "docs/guides/monitoring.md",
            [
                Self.begin, .told("ssh -L 8481:127.0.0.1:8481 relay.example.org"),
                .shown("sealbell why") { rehearsal, _ in
                    try await rehearsal.run("sealbell test-push --app acme-chat < token.txt", 0)
                    let reference = try rehearsal.found(#/[0-9a-f-]{36}/#)
                    try await rehearsal.run("sealbell why " + reference, 0)
                },
                .shown("sealbell test-push"),
                .shown("```yaml") { rehearsal, text in
                    let target = try rehearsal.found(#/127\.0\.0\.1:\d+/#, in: text)
                    let count = "curl -s http://\(target)/metrics | grep -c ^sealbell_"
                    #expect(Int(try await rehearsal.place.prepare(count).dropLast()) ?? 0 > 100)
                },
                .doctor(), .run("sealbell reload"), .run("sealbell store check"),
                .run("sealbell store check --all"),
                .shown("sealbell store trust-clock") { rehearsal, text in
                    try await rehearsal.run(text + " --yes", 0)
                },
                // Of an origin, which this relay is not.
                .shown("sealbell origin sign-up"),
                .hand { $0.filled["FILE"] = "/etc/sealbell/sealbell.yaml" },
                .run("sealbell config check FILE"),
                .hand { rehearsal in
                    let page = try await rehearsal.place.prepare("curl -s http://127.0.0.1:8481/")
                    let parts = page.matches(of: #/<h2>([^<]+)/#).map { $0.1 }
                    #expect(parts.contains("Lanes") && parts.contains("Notices"), "\(parts)")
                    for part in parts { #expect(rehearsal.page.text.contains("\n| \(part) | "), "\(part)") }
                    #expect(page.matches(of: #/<dt>/#).count == 6)
                }
            ])
    }

    // MARK: Questions by symptom

    @Test("faq.md")
    func symptoms() async throws {
        try await GuideRehearsal.of(
            "docs/guides/faq.md",
            [
                Self.begin, Self.join, .hand { $0.filled["HOST"] = "chat.acme.example" },
                .run("sealbell status", says: "Owed: nothing."), .doctor(),
                .run("sealbell test-push --app acme-chat < token.txt", says: "accepted (Ok)"),
                .run("sealbell why realm UUID", says: "chat.acme.example"),
                .run("sealbell why device --realm UUID --token-id ID", says: "live  "),
                .hand { try await $0.startInVain() },
                .run("sealbell config check"), .shown("sealbell store copy"),
                .run("sealbell origins invitations", says: "Nobody is invited."),
                .run("sealbell origins invite HOST"), .run("sealbell forget origin HOST --yes"),
                .run("sealbell origins list", says: "No origin has signed up."),
                .shown("sealbell origins quota"), .run("sealbell reload"), .run("sealbell config show")
            ])
    }

    // MARK: Ten questions

    @Test("ten-questions.md")
    func tenQuestions() async throws {
        try await GuideRehearsal.of(
            "docs/guides/ten-questions.md", [Self.begin, Self.asked] + Self.push + Self.state + Self.future)
    }

    /// What has happened before the questions: a push, and a phone that has registered.
    private static var asked: GuideRehearsal.Step {
        .hand { rehearsal in
            try await rehearsal.run("sealbell test-push --app acme-chat < token.txt", 0)
            rehearsal.filled["019a5c3e-7d41-7c22-9f0e-3b1d2a4c5e6f"] = try rehearsal.found(
                #/[0-9a-f-]{36}/#)
            let (server, phone) = try await rehearsal.join()
            #expect(server.realm.uuid == realm)
            try rehearsal.place.put(phone.token, at: "token.txt")
            rehearsal.filled["4EQRJ6ezNSs="] = phone.tokenID.text
            let token = try DeviceToken.apns(hex: phone.token)
            rehearsal.filled["7K3M-Q0XD-2HVA"] = token.supportCode(at: World.live.now())
        }
    }

    private static var push: [GuideRehearsal.Step] {
        [
            .run("sealbell why 019a5c3e", says: "accepted"),
            .run("sealbell why --token token.txt --since 36h", says: " is live"),
            .run("sealbell why --code 7K3M-Q0XD-2HVA", says: " is live"),
            .run("sealbell test-push --app acme-chat < token.txt", says: "accepted (Ok)"),
            .run("sealbell why device --realm \(realm)", says: "live  "),
            .run("sealbell why realm \(realm)", says: "chat.acme.example")
        ]
    }

    private static var state: [GuideRehearsal.Step] {
        [
            .run("sealbell origins list"), .run("sealbell origins invitations"), .likeSaid("```\nHOST"),
            .run("sealbell status"), .doctor(), .likeSaid("```\nSealbell"),
            .run("sealbell status"), .doctor(), .run("sealbell config check"),
            .run("sealbell config show"), .run("sealbell status"), .run("sealbell version"),
            .likeSaid("```\nKEY")
        ]
    }

    private static var future: [GuideRehearsal.Step] {
        [
            .run("sealbell version"), .run("sealbell config check"),
            .hand { rehearsal in
                let backup = ".backup /mnt/backup/relay.sqlite"
                try await rehearsal.place.prepare("sqlite3 /var/lib/sealbell/relay.sqlite '\(backup)'")
            },
            .run("sealbell store check sqlite:/mnt/backup/relay.sqlite --keys", says: "The keys open this"),
            .run("sealbell origins list"), .run("sealbell origins quota chat.acme.example 6000"),
            .run("sealbell origins suspend chat.acme.example"),
            .hand { rehearsal in
                try await rehearsal.run("sealbell origins list", 0)
                #expect(rehearsal.said.contains(#/chat\.acme\.example +suspended +6000/min /#))
            },
            .run("sealbell config show", says: "limits.outbox.rows", "limits.outbox.bytes"),
            .run("sealbell status", says: "Owed: ")
        ]
    }

    // MARK: From elsewhere

    @Test("migration.md")
    func migration() async throws {
        try await GuideRehearsal.of(
            "docs/guides/migration.md",
            [
                Self.begin, .shown("sealbell config init"),
                .run("sealbell origins invite chat.acme.example"),
                .hand { _ = try await $0.signUp(at: "http://127.0.0.1:8480") },
                .run("sealbell origins list", says: "chat.acme.example"),
                .hand { try await $0.takeOnionKeys() },
                .shown("sealbell origin"),
                .hand { rehearsal in
                    #expect(rehearsal.page.text.contains("`protocol: gorush` is planned and refused"))
                    let word = "--set instances.zulip-main.protocol=gorush"
                    try await rehearsal.run("sealbell config check " + word, 78)
                    #expect(rehearsal.said.contains("not built yet"), "\(rehearsal.said)")
                }
            ])
    }

    @Test("app.md")
    func app() async throws {
        try await GuideRehearsal.of(
            "docs/guides/app.md",
            [
                .shown("sealbell device PROTOCOL") { rehearsal, text in
                    for hosted in Hosting.standard.protocols where hosted.section == nil {
                        try await rehearsal.run(
                            text.replacing("PROTOCOL", with: hosted.word) + " --help", 0)
                    }
                },
                .shown("```\ndependencies"),
                .shown("sealbell keys new") { rehearsal, text in
                    for kind in ["zulip", "nostr", "session", "status"] {
                        try await rehearsal.run("\(text) \(kind) --file \(kind).key", 0)
                        let printed = rehearsal.said.trimmingCharacters(in: .newlines)
                        #expect(throws: Never.self, "\(kind)") { try RelayKey(text: printed) }
                    }
                },
                .shown("sealbell why --code")
            ])
    }
}

extension GuideRehearsal {
    /// The relay's files and ports are such as no start can do with, one after the other.
    func startInVain() async throws {
        let (yaml, folder) = ("/etc/sealbell/sealbell.yaml", "/var/lib/sealbell")
        let store = "\(folder)/relay.sqlite"
        let elsewhere =
            "--set listeners.public.bind=127.0.0.1:9480 --set listeners.admin.bind=127.0.0.1:9481"
        try await fails("sealbell serve", 69, "another relay serves from this directory")
        try await fails(
            "sealbell serve --state /tmp/other --set store.url=sqlite:\(store) \(elsewhere)", 69,
            "Another process has this store open", code: "inUse")
        try await fails(
            "sealbell serve --state /tmp/third", 69, "cannot take its address", code: "bindFailed")
        await place.stop(place.serving[0])
        try await fails("sealbell status", 69, "No server serves from ")
        try await place.prepare("sed s/sign_up/sing_up/ \(yaml) > /etc/sealbell/faulty.yaml")
        try await run("sealbell serve --config /etc/sealbell/faulty.yaml", 78)
        #expect(said.contains("/etc/sealbell/faulty.yaml:"), "\(said)")
        try await place.prepare("mv /etc/sealbell/storage.keys right.keys")
        try await fails("sealbell serve", 78, "The store exists but its keys do not")
        try await place.prepare("sealbell keys new storage --file /etc/sealbell/storage.keys")
        try await fails("sealbell serve", 78, "The key file does not fit this store", code: "wrongKey")
        try await place.prepare("mv right.keys /etc/sealbell/storage.keys; chmod 644 /etc/sealbell/apns.p8")
        try await fails("sealbell serve", 78, "Other users can read this secret")
        try await place.prepare(
            "chmod 600 /etc/sealbell/apns.p8; sealbell store copy --from sqlite:\(store) "
                + "--to sqlite:/srv/relay.sqlite")
        try await fails("sealbell serve", 78, "This store was copied to another one", code: "moved")
        try await place.prepare("rm /srv/relay.sqlite*; sealbell store reopen sqlite:\(store)")
        let step = "'a later one'"
        try await place.prepare("sqlite3 \(store) \"INSERT INTO grdb_migrations VALUES (\(step))\"")
        try await fails(
            "sealbell serve", 78, "The store was written by a newer Sealbell", code: "newerSchema")
        try await place.prepare("sqlite3 \(store) \"DELETE FROM grdb_migrations WHERE identifier = \(step)\"")
        try await place.serve(GuideCommandTests.relay)
    }

    /// The old server's onion key, in both forms that the page has, in the configuration of session.md.
    func takeOnionKeys() async throws {
        for item in try GuidePage("docs/guides/session.md").items {
            if case .block("yaml", let text) = item { try place.put(text, at: "/etc/sealbell/session.yaml") }
        }
        for form in ["-hex 32", "32"] {
            try await place.prepare("(umask 077; openssl rand \(form) > /etc/sealbell/onion.key)")
            try await run("sealbell config check /etc/sealbell/session.yaml", 0)
            #expect(said.contains("onion.key): It exists and contains an onion key."), "\(said)")
        }
    }
}

extension GuideRehearsal.Step {
    /// What the page shows of answers, line by line: commands have said the same here, but for figures, ids
    /// and the state of a lane.
    static func likeSaid(_ begins: String) -> Self {
        .shown(begins) { rehearsal, text in
            func form(_ line: Substring) -> String {
                line.replacing(#/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/#, with: "ID")
                    .replacing(#/served for .*/#, with: "served").replacing(#/\d+/#, with: "0")
                    .replacing(#/(/(production|sandbox)) +[a-z]+/#) { "\($0.1) STATE" }
                    .split(separator: " ").joined(separator: " ")
            }
            let said = Set(rehearsal.all.split(separator: "\n").map(form))
            for line in text.split(separator: "\n").dropFirst() {
                #expect(said.contains(form(line)), "\(rehearsal.page.name) shows: \(line)")
            }
        }
    }
}
