import Foundation
import PushModel
import PushTesting
import Testing
import ZulipPush

@testable import RelayProgram

extension GuideCommandTests {
    /// Whoever reads this page has a relay: the one of README.md, whose push services are simulated. Its keys
    /// are those of the configuration, as of a relay that is no rehearsal.
    static let relay =
        "exec sealbell serve --sandbox --config /etc/sealbell/sealbell.yaml --state /var/lib/sealbell "
        + "--set store.keys=/etc/sealbell/storage.keys"

    static var begin: GuideRehearsal.Step {
        .hand { rehearsal in
            try rehearsal.putRelayOfReadMe()
            try await rehearsal.prepareAcme()
            try await rehearsal.place.serve(relay)
            try rehearsal.place.put(DemoApp.token(.apns), at: "token.txt")
        }
    }

    /// A server signs up, and a phone of its registers. The page's `token.txt` has the phone's token.
    static var join: GuideRehearsal.Step {
        .hand { rehearsal in
            let (server, phone) = try await rehearsal.join()
            try rehearsal.place.put(phone.token, at: "token.txt")
            rehearsal.filled["UUID"] = server.realm.uuid
            rehearsal.filled["--token-id ID"] = "--token-id \(phone.tokenID.text)"
        }
    }

    private static var doctor: GuideRehearsal.Step { .doctor() }

    private static var questions: [GuideRehearsal.Step] {
        [
            begin, doctor,
            .run("sealbell status --check", says: "The relay serves: "),
            .run("sealbell status", says: "Owed: nothing."),
            .run("sealbell config check"),
            .shown(#"{"ready":true,"checks""#) { rehearsal, text in
                // As many members as there are, by the same names.
                let members =
                    "jq -r '[paths|join(\".\")]|map(select(startswith(\"roles.\")|not))|sort|join(\" \")'"
                try rehearsal.place.put(text, at: "shown")
                let shown = try await rehearsal.place.prepare(members + " shown")
                let asked = "curl -s http://127.0.0.1:8481/health/ready | " + members
                #expect(try await rehearsal.place.prepare(asked) == shown)
            },
            .run("sealbell test-push --app acme-chat < token.txt", says: "accepted (Ok)"),
            .shown("acme-chat/apns/production: accepted (Ok) in 182 ms") { rehearsal, text in
                let form = #/[0-9a-f-]{36}|\d+ ms/#
                #expect(rehearsal.said.replacing(form, with: "") == text.replacing(form, with: "") + "\n")
                rehearsal.filled["019a5c3e-7d41-7c22-9f0e-3b1d2a4c5e6f"] = try rehearsal.found(
                    #/[0-9a-f-]{36}/#)
            }
        ]
    }

    /// Nobody has registered yet.
    private static var history: [GuideRehearsal.Step] {
        [
            .run("sealbell why --code", status: 1, says: "unknown"),
            .run("sealbell why --token token.txt", status: 1, says: "unknown"),
            .run("sealbell why --realm", status: 1, says: "unknown"),
            .shown("registration   3f9a0c12 of zulip-main is live"), .shown("2026-11-26, the day"),
            .shown("2026-11-27 09:00   1 refused for good")
        ]
    }

    private static var peers: [GuideRehearsal.Step] {
        [
            .run("sealbell origins list"),
            .run("sealbell origins invite chat.acme.example"),
            .run("sealbell origins invitations", says: "chat.acme.example"),
            .run("sealbell origins uninvite chat.acme.example"),
            join,
            .run("sealbell origins quota chat.acme.example 6000"),
            .run("sealbell origins suspend chat.acme.example"),
            .run("sealbell origins resume chat.acme.example"),
            .run("sealbell why realm 0ec3eedd-6233-4c5e-a000-b9942be3494e", says: "chat.acme.example"),
            .run("sealbell forget realm UUID --yes"), .shown("sealbell why device"),
            .run("sealbell forget origin chat.acme.example --yes"), join,
            .run("sealbell forget realm UUID --yes"),
            .hand { try await $0.place.prepare("sealbell forget origin chat.acme.example --yes") }, join,
            .run("sealbell forget device --realm UUID --token-id ID"),
            .hand { try await $0.place.prepare("sealbell forget origin chat.acme.example --yes") }, join,
            .run("sealbell forget address < token.txt", says: "1 device")
        ]
    }

    /// A command that watches for half a minute what the relay does by itself: the reader interrupts it.
    static func watched(_ begins: String, says words: String) -> GuideRehearsal.Step {
        .shown(begins) { rehearsal, text in
            let program = try rehearsal.place.start("exec " + text)
            #expect(await program.says(words), "\(program.text)")
            program.signal(SIGINT)
            #expect(await program.status() == -SIGINT)
        }
    }

    private static var stores: [GuideRehearsal.Step] {
        [
            .run("sealbell keys list", says: "store.keys"),
            watched("sealbell keys rotate-storage  ", says: "Added seal key 2"),
            watched("sealbell keys rotate-storage --drop-old", says: "The file holds 2 seal keys"),
            .told("systemctl stop sealbell"),
            .hand { await $0.place.stop($0.place.serving[0]) },
            .run("install -d -m 0700 /srv/sealbell"),
            .run("sealbell store copy --from sqlite:/var/lib/sealbell/relay.sqlite"),
            .shown("# set store.url, keep store.keys") { rehearsal, _ in
                let new = "sqlite:/srv/sealbell/relay.sqlite"
                try await rehearsal.place.prepare(
                    "sed -i 's,sqlite:relay.sqlite,\(new),' /etc/sealbell/sealbell.yaml")
            },
            .told("systemctl start sealbell"),
            .hand { _ = try await $0.place.serve(relay) },
            .hand { $0.filled["reopen URL"] = "reopen sqlite:/var/lib/sealbell/relay.sqlite" },
            .run("sealbell store reopen URL"),
            .run("sealbell store check"), doctor,
            .run("sealbell store trust-clock --yes"),
            .hand { rehearsal in
                await rehearsal.place.stop(rehearsal.place.serving[0])
                rehearsal.filled["--yes URL"] = "--yes sqlite:/srv/sealbell/relay.sqlite"
            },
            .run("sealbell store trust-clock --yes URL")
        ]
    }

    @Test("operating.md")
    func operating() async throws {
        let why = GuideRehearsal.Step.run("sealbell why 019a5c3e", says: "accepted")
        try await GuideRehearsal.of(
            "docs/guides/operating.md", Self.questions + [why] + Self.history + Self.peers + Self.stores)
    }
}
