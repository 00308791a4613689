import Foundation
import PushModel
import PushTesting
import Testing
import ZulipPush

@testable import RelayProgram

/// Every command of the guides, as their reader has it: typed in the page's order, against the page's own
/// configuration, with the program itself.
@Suite(
    "The guides, done step by step", .serialized, .timeLimit(.minutes(30)),
    .enabled(if: GuidePlace.isToBeHad, "a network and mounts of its own are root's alone"))
struct GuideCommandTests {
    private static let yaml = "/etc/sealbell/sealbell.yaml"
    private static let rehearsal = "sealbell serve --sandbox --config /etc/sealbell/"

    @Test("marmot.md")
    func marmot() async throws {
        try await GuideRehearsal.of(
            "docs/guides/marmot.md",
            GuideRehearsal.Step.keys("nostr", "storage") + [
                .put("```yaml", at: Self.yaml),
                .run("sealbell config check"),
                .doctor(cannotReach: "relay.acme.example", "relay.example.org"),
                .relayServes,
                .run("sealbell keys new nostr --file /etc/sealbell/nostr-2.key"),
                .hand { rehearsal in
                    let keys = "key_file: nostr-2.key\\n    old_key_files: [nostr.key]"
                    try await rehearsal.place.prepare("sed -i 's/key_file: nostr.key/\(keys)/' \(Self.yaml)")
                    try await rehearsal.run("sealbell reload --at /var/lib/sealbell", 0)
                },
                .run("sealbell demo marmot", says: "woke the device"),
                .hand { rehearsal in
                    let printed = rehearsal.all.matches(of: #/(?m)^[0-9a-f]{64}$/#).map { String($0.0) }
                    let key = try #require(printed.last, "\(rehearsal.all)")
                    rehearsal.filled["KEY"] = key
                },
                .serves(Self.rehearsal),
                .hand { rehearsal in
                    let urls = try await rehearsal.place.runFile("/tmp/rehearsal").urls
                    let relay = try #require(urls["sandbox-nostr"])
                    rehearsal.filled["PORT"] = try rehearsal.found(#/\d+$/#, in: relay)
                },
                .run("sealbell device marmot join --state alice.json", says: "told its token"),
                .hand { rehearsal in
                    let line = try rehearsal.found(#/(?m)^code [0-9a-f]{64}$/#)
                    rehearsal.filled["CODE"] = String(line.dropFirst("code ".count))
                },
                .run("sealbell device marmot join --state bob.json", says: "told its token"),
                .hand { rehearsal in
                    // The server says where it listens when it has connected.
                    let trigger = "sealbell device marmot trigger --state bob.json --ca "
                    let file = "/tmp/rehearsal/sandbox/ca.pem"
                    try await asked(for: "the server's list") {
                        try await rehearsal.place.run(trigger + file).status == 0
                    }
                },
                .run("sealbell device marmot trigger --state bob.json", says: ": accepted"),
                .run("echo '{\"aps\"", says: "see you at nine")
            ])
    }

    @Test("zulip.md")
    func zulip() async throws {
        try await GuideRehearsal.of(
            "docs/guides/zulip.md",
            GuideRehearsal.Step.keys("zulip", "storage") + [
                .put("```yaml", at: Self.yaml),
                .run("sealbell config check"), .doctor(), .relayServes,
                .serves(Self.rehearsal, says: "listening elsewhere"),
                .shown("```nginx") { rehearsal, text in
                    try await rehearsal.nginx(String(text.dropFirst("```nginx\n".count)))
                },
                .put("```ini", at: "/etc/systemd/system/sealbell.service"),
                .hand { try await $0.startUnit() },
                .put("```ini", at: "/etc/systemd/system/sealbell.socket"),
                .told("systemd-analyze verify sealbell.service sealbell.socket"),
                .told("systemctl enable --now sealbell.socket sealbell"),
                .told("journalctl -u sealbell -f"),
                .run("sealbell origins invite chat.acme.example"),
                .put("ZULIP_SERVICE_PUSH_NOTIFICATIONS = True", at: "/etc/zulip/settings.py"),
                .shown("ZULIP_SERVICES_URL = ") { rehearsal, text in
                    _ = try await rehearsal.signUp(at: try rehearsal.found(#/https:[^"]*/#, in: text))
                },
                .run("sealbell origins list", says: "chat.acme.example"),
                .run("sealbell origins quota chat.acme.example 6000"),
                .hand { try $0.place.put(DemoApp.token(.apns), at: "token.txt") },
                // There is no way to Apple from here.
                .run("sealbell test-push --app acme-chat", status: 69, input: "token.txt"),
                .run("sealbell keys list", says: "in the file"),
                .shown("sealbell keys retire PUBLIC_KEY"), .shown("sealbell reload"),
                .serves("sealbell origin --at /tmp/rehearsal"),
                .hand { rehearsal in
                    let origin = try #require(rehearsal.place.serving.last)
                    #expect(await origin.says("sealbell device zulip join"), "\(origin.text)")
                },
                .run("sealbell device zulip join", says: "active: Notifications are set up."),
                .run("sealbell device zulip status --state phone.json", says: ": active for "),
                .run("sealbell origin notify ada@example.com", says: "owed to 1 device"),
                .run("sealbell device zulip listen", says: ": Dinner is ready")
            ])
    }

    @Test("origin.md")
    func origin() async throws {
        try await GuideRehearsal.of(
            "docs/guides/origin.md",
            [
                .shown("```console"),
                .hand { rehearsal in
                    try await rehearsal.place.serve("exec sealbell serve --sandbox --state /tmp/relay")
                    let relay = try await rehearsal.place.runFile("/tmp/relay")
                    let way = "location / { proxy_pass \(try #require(relay.urls["public"])); }"
                    let page = try #require(
                        rehearsal.page.items.first { $0.text.hasPrefix("```nginx") }?.text)
                    let live = "/etc/letsencrypt/live/"
                    // nginx reads the page's files only once it starts, and both names have one certificate.
                    try await rehearsal.place.prepare(
                        "mkdir -p \(live)push.acme.example; "
                            + "ln -s push.acme.example \(live)chat.acme.example")
                    try await rehearsal.nginx(
                        GuideRehearsal.server("push.acme.example", way) + page.dropFirst("```nginx\n".count))
                },
                .run("install -d -m 0755 /etc/sealbell"), .run("install -d -m 0700 /var/lib/sealbell"),
                .run("sealbell keys new storage"), .run("(umask 077; openssl rand"),
                .put("```yaml", at: Self.yaml), .run("sealbell config check"), .serves("sealbell origin"),
                .shown("sealbell serve"), .run("sealbell origin sign-up", says: "has signed up"),
                .run("sealbell origin realm add chat", says: "relay: told"),
                .run("sealbell origin user add"), .shown("sealbell origins invite chat.acme.example"),
                .shown("sealbell origin sign-up --transfer") { rehearsal, _ in
                    // The file is lost, and the relay knows this host by it.
                    let file = "/var/lib/sealbell/origin-credentials.json"
                    try await rehearsal.place.prepare("rm \(file)")
                    try await rehearsal.run("sealbell origin sign-up", 1)
                    #expect(rehearsal.said.contains("sign-up --transfer"), "\(rehearsal.said)")
                    try await rehearsal.run("sealbell origin sign-up --transfer", 0)
                    #expect(rehearsal.said.contains("realms: told"), "\(rehearsal.said)")
                },
                .hand { rehearsal in
                    let key = try rehearsal.found(#/(?m)^[0-9a-f]{32}$/#, in: rehearsal.all)
                    try rehearsal.place.put(key, at: "ada.key")
                    try await rehearsal.place.prepare("chmod 600 ada.key")
                    try await rehearsal.run(
                        "sealbell device zulip join https://chat.acme.example --user ada@chat.acme.example "
                            + "--key-file ada.key --state phone.json --sandbox /tmp/relay --ca ca.pem", 0)
                },
                .run("sealbell origin notify", says: "owed to 1 device"),
                .run("sealbell origin test", says: "owed to 1 device"),
                .run("echo \"Authorization"), .run("curl -s -H @header", says: #""devices":1"#),
                .shown("sealbell why"), .shown("sealbell why ID"), .shown("sealbell why"),
                .shown("sealbell reload"), .shown("```nginx"), .shown("sealbell device nextcloud"),
                .run("sealbell origin user key"), .run("sealbell origin status", says: "relay          told"),
                .run("sealbell doctor"), .run("sealbell origin stale", says: "asked for 1 realm"),
                .shown("```yaml"), .shown("sealbell store trust-clock")
            ])
    }

    @Test("session.md")
    func session() async throws {
        try await GuideRehearsal.of(
            "docs/guides/session.md",
            [
                .run("install -d -m 0755 /etc/sealbell"), .run("sealbell keys new storage"),
                .run("sealbell keys new session"),
                .hand { $0.filled["DIGITS"] = try $0.found(#/[0-9a-f]{64}/#) },
                .run("install -m 0600 AuthKey"), .run("install -m 0600 acme-firebase.json"),
                .put("```yaml", at: Self.yaml),
                .run("sealbell config check"),
                .doctor(cannotReach: "/var/lib/oxen/oxend.sock"),
                .relayServes,
                .hand { rehearsal in
                    let all = "location / { proxy_pass http://127.0.0.1:8480; }"
                    try await rehearsal.nginx(GuideRehearsal.server("push.acme.example", all))
                },
                .run("curl -i -X POST --data x https://push.acme.example", says: " 400 "),
                .shown("sealbell why REFERENCE"),
                .run("sealbell demo session", says: "opened by the device"),
                .run("sealbell device session subscribe --state phone.json", says: "subscribed"),
                .serves(Self.rehearsal, says: "listening elsewhere"),
                .hand { rehearsal in
                    let urls = try await rehearsal.place.runFile("/tmp/rehearsal").urls
                    let control = try #require(urls["sandbox-control"])
                    rehearsal.filled["PORT"] = try rehearsal.found(#/\d+$/#, in: control)
                    // Nobody writes to the account: what arrives is no message of Session's.
                    try rehearsal.place.put(DemoApp.token(.fcm), at: "token.txt")
                    try await rehearsal.place.prepare(
                        "sealbell test-push --app acme-chat --service fcm --at /tmp/rehearsal < token.txt")
                },
                .run("curl -s http://127.0.0.1:PORT/fcm/deliveries", status: 1),
                .run("sealbell device session unsubscribe", says: "unsubscribed")
            ])
    }

    @Test("status.md")
    func status() async throws {
        try await GuideRehearsal.of(
            "docs/guides/status.md",
            [
                .run("install -d -m 0755 /etc/sealbell"), .run("sealbell keys new storage"),
                .run("sealbell keys new status"),
                .hand { $0.filled["--server 0x04…"] = "--server " + (try $0.found(#/0x04[0-9a-f]{128}/#)) },
                .run("install -m 0600 AuthKey"), .run("install -m 0600 acme-firebase.json"),
                .told("wakunode2 --cluster-id=16 --shard=32 --relay=true"),
                .hand { try await $0.waku() },
                .run("curl http://127.0.0.1:8645/health"),
                .put("```yaml", at: Self.yaml),
                .run("sealbell config check"), .doctor(),
                // It keeps the page's node, and Apple and Google are simulated: they answer.
                .hand { rehearsal in
                    try await rehearsal.place.serve(
                        "exec sealbell serve --sandbox --config \(Self.yaml) --state /var/lib/sealbell "
                            + "--set store.keys=/etc/sealbell/storage.keys")
                },
                .shown("sealbell why REFERENCE"),
                .run("sealbell device status register --state bob.json", says: ": registered"),
                .hand { $0.filled["--to 0x04…"] = "--to " + (try $0.found(#/0x04[0-9a-f]{128}/#)) },
                .run("sealbell device status register --state alice.json", says: ": registered"),
                .run("echo hello | sealbell device status send"),
                .run("sealbell device status unregister --state bob.json"),
                .run("grep -v '^    waku:'"),
                .serves("sealbell serve --sandbox --config /etc/sealbell/"),
                .hand { try await $0.tellBob() },
                .run("curl -s http://127.0.0.1:PORT/production/deliveries", says: "hello"),
                .hand { try $0.place.put(DemoApp.token(.fcm), at: "token.txt") },
                .run("sealbell forget address", status: 1, input: "token.txt"),
                .put("```yaml", at: Self.yaml),
                .hand { try await $0.run("sealbell config check", 0) }
            ])
    }

    @Test("nextcloud.md")
    func nextcloud() async throws {
        var cloud: DemoCloud?
        try await GuideRehearsal.of(
            "docs/guides/nextcloud.md",
            GuideRehearsal.Step.keys("storage") + [
                .put("```yaml", at: Self.yaml),
                .run("sealbell config check"), .doctor(), .relayServes,
                .shown("```nginx") { rehearsal, text in
                    cloud = try rehearsal.cloud()
                    let inside = String(text.dropFirst("```nginx\n".count))
                    let files =
                        "location /ocs/ { root /mnt/home/cloud; default_type application/json;"
                        + " error_page 405 =201 $uri; }"
                    try await rehearsal.nginx(
                        GuideRehearsal.server("push.acme.example", inside)
                            + GuideRehearsal.server("cloud.acme.example", files))
                },
                .run(
                    "curl -i https://push.acme.example/nextcloud-main/", says: " 404 ",
                    "A push relay for Nextcloud."),
                .shown("https://push.acme.example/nextcloud-main/acme-talk") { rehearsal, url in
                    // As apps build what they call: behind it, without a slash.
                    let status = try await rehearsal.place.prepare(
                        "curl -s -o answer -w '%{http_code}' -d x=y \(url)/devices")
                    #expect(status == "400")
                },
                .run("install -m 0600 /dev/null app-password && editor app-password"),
                .hand { try $0.place.put("aBcDe-FgHiJ-kLmNo-PqRsT-uVwXy\n", at: "app-password") },
                .run("sealbell device nextcloud register --state device.json", says: "registered"),
                .serves(Self.rehearsal, says: "listening elsewhere"),
                .hand { try $0.write(from: try #require(cloud)) },
                .run("sealbell device nextcloud open", says: "see you", input: "push"),
                .run("sealbell demo nextcloud", says: "opened by the device"),
                .told("occ notification:test-push ada"),
                .shown("sealbell why REFERENCE"),
                .put("```yaml", at: "private"),
                .hand { rehearsal in
                    // The two keys stand in the instance, the last thing of the page's file.
                    try await rehearsal.place.prepare(
                        "cp ca.pem /etc/sealbell/acme-ca.pem; cat private >> \(Self.yaml)")
                    try await rehearsal.run("sealbell reload --at /var/lib/sealbell", 0)
                },
                .hand { try $0.place.put(DemoApp.token(.fcm), at: "token.txt") },
                .run("sealbell forget address", status: 1, input: "token.txt"),
                .run("openssl rand -hex 20 >> /etc/sealbell/subscriptions"),
                .hand { rehearsal in
                    try await rehearsal.place.prepare(
                        "echo '    subscription_keys: subscriptions' >> \(Self.yaml)")
                    try await rehearsal.run("sealbell reload --at /var/lib/sealbell", 0)
                    rehearsal.filled["THE_KEY"] = try rehearsal.found(
                        #/[0-9a-f]{40}/#, in: try rehearsal.place.folder.read("etc/sealbell/subscriptions"))
                },
                .told("occ config:app:set notifications subscription_aware_server"),
                .told("occ config:app:set notifications push_subscription_key")
            ])
    }

    @Test("postgresql.md")
    func postgresql() async throws {
        try await GuideRehearsal.of(
            "docs/guides/postgresql.md",
            [
                .hand { try $0.putRelayOfReadMe() },
                .shown("```yaml") { rehearsal, text in
                    // In place of the store that the configuration has.
                    try rehearsal.place.put(String(text.dropFirst("```yaml\n".count)), at: "store")
                    try rehearsal.place.put("aBcDe-FgHiJ\n", at: "/etc/sealbell/database.password")
                    try await rehearsal.prepareAcme()
                    try await rehearsal.place.prepare(
                        "sed -i -e '/^store:/{r store' -e 'd}' \(Self.yaml); chmod 600 /etc/sealbell/*; "
                            + "rm /etc/sealbell/storage.keys")
                },
                .run("sealbell keys new storage", says: "/etc/sealbell/storage.keys"),
                .hand { try await $0.run("sealbell config check", 0) }
            ])
    }

    @Test("README.md")
    func readme() async throws {
        try await GuideRehearsal.of(
            "README.md",
            [
                .shown("sealbell serve"), .told("make run"), .told("make test"),
                .shown("sealed registration, push key"),
                .put("```yaml", at: Self.yaml),
                .hand { rehearsal in
                    rehearsal.filled["HOST"] = "chat.acme.example"
                    rehearsal.filled["FILE"] = Self.yaml
                    try await rehearsal.prepareAcme()
                },
                .relayServes,
                .run("sealbell origins invite HOST"), .run("sealbell config check FILE"), .doctor(),
                .shown("sealbell test-push"), .shown("sealbell why")
            ])
    }
}

extension GuideRehearsal {
    /// Ends the relay that serves, and starts it as the page's unit does.
    func startUnit() async throws {
        let unit = try place.folder.read("etc/systemd/system/sealbell.service")
        let start = try #require(unit.firstMatch(of: #/ExecStart=((?:.*\\\n)*.*)\n/#)).1
        let line = start.replacing("%d", with: "/etc/sealbell").replacing("/usr/local/bin/", with: "")
        await place.stop(place.serving[0])
        try await place.serve("exec " + String(line))
        let reload = try #require(unit.firstMatch(of: #/ExecReload=(.*)\n/#)).1
        try await run(
            String(reload.replacing("%S", with: "/var/lib").replacing("/usr/local/bin/", with: "")), 0)
    }

    /// The configuration of README.md, for pages that begin with a relay.
    func putRelayOfReadMe() throws {
        for item in try GuidePage("README.md").items {
            if case .block("yaml", let text) = item { try place.put(text, at: "/etc/sealbell/sealbell.yaml") }
        }
    }

    /// What the configuration of README.md names, for pages that begin later.
    func prepareAcme() async throws {
        try await place.prepare(
            """
            set -e; mkdir -p /etc/sealbell
            sealbell keys new zulip --file /etc/sealbell/bouncer.keys
            sealbell keys new storage --file /etc/sealbell/storage.keys
            install -m 0600 AuthKey_F6G7H8I9J0.p8 /etc/sealbell/apns.p8
            install -m 0600 acme-firebase.json /etc/sealbell/fcm.json
            """)
    }
}
