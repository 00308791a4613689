import Foundation
import PushTesting
import Testing
import ZulipPush

@testable import RelayProgram

/// The pages of whoever keeps a relay: to install it, to bring it up, to back it up, to replace it.
extension GuideCommandTests {
    /// The relay of README.md serves, from where there is no way to Apple and Google: what it is given stays
    /// owed.
    private static var serveReadMe: GuideRehearsal.Step {
        .hand { rehearsal in
            try rehearsal.putRelayOfReadMe()
            try await rehearsal.prepareAcme()
            try await rehearsal.serveInstalled()
        }
    }

    // MARK: Backup

    /// A server with a phone that registered before the backup, and one that did after it.
    private final class Phones {
        var server: DemoServer?
        var first: DemoApp?
        var late: DemoApp?

        /// Whether the relay has the phone is what it answers to this.
        func ask(_ phone: DemoApp?) throws -> String {
            let (realm, phone) = (try #require(server).realm.uuid, try #require(phone))
            return "sealbell why device --realm \(realm) --token-id \(phone.tokenID.text)"
        }
    }

    @Test("backup.md")
    func backup() async throws {
        let phones = Phones()
        try await GuideRehearsal.of(
            "docs/guides/backup.md", [Self.serveReadMe] + Self.make(phones) + Self.restored(phones))
    }

    private static func make(_ phones: Phones) -> [GuideRehearsal.Step] {
        [
            .run(
                "sealbell config show",
                says: "sqlite:relay.sqlite", "/etc/sealbell/storage.keys", "/etc/sealbell/bouncer.keys",
                "/etc/sealbell/apns.p8", "/etc/sealbell/fcm.json", "/etc/sealbell/sealbell.yaml"),
            .hand { try await $0.place.prepare("mkdir /mnt/keys") },
            .keeps("umask 077"), .run("tar -C /etc -cf /mnt/keys/sealbell-keys.tar"),
            .hand { rehearsal in
                rehearsal.beginShell()
                let (server, phone) = try await rehearsal.join()
                try await rehearsal.tell(phone, by: server)
                phones.server = server
                phones.first = phone
            },
            .keeps("umask 077"), .run("sqlite3 /var/lib/sealbell/relay.sqlite \".backup"),
            .hand { rehearsal in
                rehearsal.beginShell()
                phones.late = try await rehearsal.phone(of: try #require(phones.server))
                let modes = try await rehearsal.place.prepare(
                    "stat -c %a /mnt/keys/sealbell-keys.tar /mnt/backup/relay.sqlite")
                #expect(modes == "600\n600\n")
            },
            .run("sealbell store check sqlite:/mnt/backup/relay.sqlite", says: "and 1 owed push open."),
            .hand { rehearsal in
                try await rehearsal.run("sealbell keys new storage --file other.keys", 0)
                try await rehearsal.run(
                    "sealbell store check sqlite:/mnt/backup/relay.sqlite --keys other.keys --all", 78)
                try await rehearsal.run(phones.ask(phones.late), 0)
                try await rehearsal.restore()
            }
        ]
    }

    private static func restored(_ phones: Phones) -> [GuideRehearsal.Step] {
        [
            .run("sealbell config check"),
            .run("sealbell store check --all", says: "and 1 owed push open."),
            .doctor(isOwing: true), .told("systemctl start sealbell"),
            .hand { try await $0.serveInstalled() },
            .run("sealbell store trust-clock --yes"),
            .hand { rehearsal in
                try await rehearsal.run(phones.ask(phones.first), 0)
                try await rehearsal.run(phones.ask(phones.late), 1)
                try await rehearsal.run("sealbell status", 0)
                #expect(rehearsal.said.contains("Owed: 1 push,"), "\(rehearsal.said)")
                await rehearsal.place.stop(rehearsal.place.serving[0])
            },
            .run("sqlite3 /var/lib/sealbell/relay.sqlite \"DELETE FROM outbox\""),
            .hand { rehearsal in
                try await rehearsal.serveInstalled()
                try await rehearsal.run("sealbell status", 0)
                #expect(rehearsal.said.contains("Owed: nothing."), "\(rehearsal.said)")
                try await rehearsal.run(phones.ask(phones.first), 0)
            },
            .shown("sealbell store copy"),
            watched("sealbell keys rotate-storage", says: "Added seal key 2"),
            watched("sealbell keys rotate-storage --drop-old", says: "The file holds 2 seal keys")
        ]
    }

    // MARK: Installing

    @Test("install.md")
    func install() async throws {
        try await GuideRehearsal.of("docs/guides/install.md", Self.package + Self.container + Self.source)
    }

    private static var package: [GuideRehearsal.Step] {
        [
            .hand { rehearsal in
                // The checksums are of more than the reader has fetched.
                try rehearsal.place.put("what a package holds", at: "sealbell_0.1.0_amd64.deb")
                try await rehearsal.place.prepare(
                    "cp sealbell_0.1.0_amd64.deb sbom.json; sha256sum *.deb sbom.json > SHA256SUMS; "
                        + "rm sbom.json")
            },
            .run("sha256sum --check --ignore-missing SHA256SUMS", says: "sealbell_0.1.0_amd64.deb: OK"),
            .told("apt install ./sealbell_0.1.0_amd64.deb"),
            .run("sealbell version"), .run("sealbell demo", says: "opened by the device"),
            .shown("sealbell config init"),
            .hand { try await $0.followExample() },
            .run("sealbell keys new storage --file /etc/sealbell/storage.keys"),
            .run("sealbell config check"), .doctor(),
            .told("systemctl enable --now sealbell.socket sealbell"),
            .hand { rehearsal in
                try await rehearsal.serveInstalled()
                let reload = try GuideRehearsal.unit(#/ExecReload=(.*)/#)
                try await rehearsal.run(reload.replacing("%S", with: "/var/lib"), 0)
            },
            .told("journalctl -u sealbell -f"),
            .told("apt install ./sealbell_0.2.0_amd64.deb"),
            .told("apt install --allow-downgrades ./sealbell_0.1.0_amd64.deb")
        ]
    }

    private static var container: [GuideRehearsal.Step] {
        [
            .told("make deb"),
            .hand { rehearsal in
                let ours = repositoryRoot().appending(path: "packaging/container")
                for name in ["Containerfile", "compose.yaml", "Caddyfile"] {
                    let text = try String(contentsOf: ours.appending(path: name), encoding: .utf8)
                    try rehearsal.place.put(text, at: "packaging/container/" + name)
                }
                try await rehearsal.place.prepare("cp -r /etc/sealbell packaging/container/etc")
            },
            .told("buildah build --format docker -t sealbell -f packaging/container/Containerfile"),
            .run("chown -R 10001:10001 packaging/container/etc"),
            .run("chmod -R go= packaging/container/etc"), .keeps("cd packaging/container"),
            .hand { rehearsal in
                let others = "find packaging/container/etc ! -uid 10001 -o ! -gid 10001 -o -perm /077"
                #expect(try await rehearsal.place.prepare(others) == "")
                try await rehearsal.run("grep ./etc:/etc/sealbell compose.yaml", 0)
            },
            .told("docker compose up -d"), .told("docker compose exec sealbell sealbell doctor")
        ]
    }

    private static var source: [GuideRehearsal.Step] {
        [
            .hand { rehearsal in
                rehearsal.beginShell()
                // What `swift build` makes, for it has a stand-in.
                try rehearsal.place.put(
                    "#!/bin/sh\nexec /mnt/bin/sealbell \"$@\"\n",
                    at: "sealbell/.build-static/release/sealbell")
            },
            .keeps("cd sealbell"), .told("make deb"), .told("make deb-test"), .told("make first-push"),
            .told("swift build -c release --product sealbell --static-swift-stdlib"),
            .run("install -m 0755 .build-static/release/sealbell /usr/local/bin/"),
            .hand { try await $0.run("/usr/local/bin/sealbell version", 0) },
            .run("sealbell version", says: "commit ", "build ")
        ]
    }

    // MARK: Upgrading

    @Test("upgrade.md")
    func upgrade() async throws {
        var version = ""
        try await GuideRehearsal.of(
            "docs/guides/upgrade.md",
            [
                Self.serveReadMe,
                .run("sealbell version"),
                .hand { version = String(try #require($0.said.split(separator: "\n").first)) },
                .run("sealbell config check"),
                .hand { rehearsal in
                    let (server, phone) = try await rehearsal.join()
                    try await rehearsal.tell(phone, by: server)
                },
                .told("systemctl restart sealbell"),
                .hand { rehearsal in
                    await rehearsal.place.stop(rehearsal.place.serving[0])
                    try await rehearsal.serveInstalled()
                },
                .run("sealbell status", says: "Owed: 1 push,"),
                .hand { #expect($0.said.hasPrefix("Sealbell \(version) has served for "), "\($0.said)") },
                .doctor(),
                .hand { rehearsal in
                    // A newer version changes the schema, and an older one comes back.
                    await rehearsal.place.stop(rehearsal.place.serving[0])
                    let steps = "SELECT group_concat(identifier) FROM grdb_migrations"
                    let change = "INSERT INTO grdb_migrations VALUES ('a later one')"
                    let sqlite = "sqlite3 /var/lib/sealbell/relay.sqlite "
                    try await rehearsal.place.prepare("\(sqlite)\"\(change)\"")
                    let before = try await rehearsal.place.prepare("\(sqlite)\"\(steps)\"")
                    try await rehearsal.fails(
                        "sealbell serve", 78, "The store was written by a newer Sealbell",
                        code: "newerSchema")
                    #expect(try await rehearsal.place.prepare("\(sqlite)\"\(steps)\"") == before)
                }
            ])
    }

    // MARK: The first hour

    @Test("first-hour.md")
    func firstHour() async throws {
        let answers = [
            "acme-chat", "zulip", "y", "A1B2C3D4E5", "F6G7H8I9J0", "AuthKey_F6G7H8I9J0.p8", "org.acme.chat",
            "y", "acme-firebase.json", "push.acme.example"
        ]
        try await GuideRehearsal.of(
            "docs/guides/first-hour.md",
            [
                // Installing has its reader run it too.
                .shown("sealbell demo"),
                .shown("sealbell config init") { rehearsal, text in
                    try rehearsal.place.put(answers.joined(separator: "\n") + "\n", at: "answers")
                    // It asks at a terminal alone.
                    try await rehearsal.run("script -qec '\(text)' /dev/null < answers", 0)
                    try await rehearsal.run("sealbell config check /etc/sealbell/sealbell.yaml", 0)
                    // The same without questions comes next, and overwrites nothing.
                    try await rehearsal.place.prepare("rm -r /etc/sealbell")
                },
                .run("sealbell config init --config", says: "Public key of zulip-main"),
                .hand { rehearsal in
                    let open = try await rehearsal.place.prepare("find /etc/sealbell -type f -perm /077")
                    #expect(open == "")
                },
                .run("sealbell config check"),
                .run("sealbell config show", says: "/etc/sealbell/sealbell.yaml:1", " default"),
                .doctor(), .serves("sealbell serve"),
                .run("sealbell status", says: "acme-chat/apns/production"),
                .hand { try $0.place.put(DemoApp.token(.apns), at: "token.txt") },
                // There is no way to Apple from here.
                .run("sealbell test-push --app acme-chat < token.txt", status: 69, says: "no connection"),
                .run("sealbell origins invite chat.acme.example", says: "may sign up until"),
                .run("sealbell origins list", says: "No origin has signed up."),
                .hand { _ = try await $0.signUp(at: "http://127.0.0.1:8480") }
            ])
    }
}

extension GuideRehearsal {
    /// A line of the package's unit.
    static func unit(_ form: Regex<(Substring, Substring)>) throws -> String {
        let file = repositoryRoot().appending(path: "packaging/systemd/sealbell.service")
        let line = try #require(try String(contentsOf: file, encoding: .utf8).firstMatch(of: form))
        return String(line.1.replacing("/usr/bin/", with: ""))
    }

    /// The relay serves, as the package's unit starts it.
    func serveInstalled() async throws {
        try await place.serve("exec " + Self.unit(#/ExecStart=(.*)/#))
    }

    /// The package's example becomes the configuration, by the commands in its head; those that the page has
    /// too are left to the page.
    func followExample() async throws {
        let file = repositoryRoot().appending(path: "packaging/example.yaml")
        let example = try String(contentsOf: file, encoding: .utf8)
        try place.put(example, at: "/etc/sealbell/example.yaml")
        let commands = example.matches(of: #/(?m)^# {5}(.*)$/#).map { String($0.1) }
        #expect(commands.count > 4)
        for command in commands where !page.items.contains(where: { command.hasPrefix($0.text) }) {
            try await run(command, 0)
        }
    }

    /// The machine is lost, and another one takes its place.
    func restore() async throws {
        await place.stop(place.serving[0])
        try await place.prepare(
            """
            set -e; cd /var/lib/sealbell
            rm -r /etc/sealbell; rm -f relay.sqlite relay.sqlite-wal relay.sqlite-shm
            tar -C /etc -xpf /mnt/keys/sealbell-keys.tar
            install -m 0600 /mnt/backup/relay.sqlite relay.sqlite
            """)
    }
}
