import PushModel
import Testing
import ZulipPush

@testable import RelayProgram

@Suite("Reading a configuration")
struct ConfigurationReadingTests {
    @Test("The design's example becomes the value it describes")
    func example() throws {
        let configuration = try load(exampleText)
        #expect(configuration.state == "/var/lib/sealbell")
        #expect(configuration.store.engine == .sqlite(path: "/var/lib/sealbell/relay.sqlite"))
        #expect(configuration.store.keysFile == "/etc/sealbell/storage.keys")
        #expect(configuration.listeners.map(\.name.text) == ["admin", "public"])
        let door = try #require(configuration.listeners.last)
        #expect(door.bind.host == "127.0.0.1" && door.bind.port == 8480)
        #expect(door.serves.map(\.text) == ["zulip-main"])
        #expect(door.trustedProxies == [AddressBlock("127.0.0.1")])
        #expect(configuration.listeners[0].purpose == .admin(tokenFile: nil))
        let chat = try #require(configuration.apps.first)
        #expect(chat.apns?.team == "A1B2C3D4E5" && chat.apns?.keyID == "F6G7H8I9J0")
        #expect(chat.apns?.keyFile == "/etc/sealbell/apns.p8")
        #expect(chat.apns?.environment == .learn && chat.apns?.voip == false)
        #expect(chat.fcm?.serviceAccountFile == "/etc/sealbell/fcm.json" && chat.fcm?.address == .auto)
        #expect(configuration.apps.last?.apns?.voip == true)
        #expect(configuration.apps.last?.apns?.environment == .production)
        let zulip = try #require(configuration.instances.first)
        #expect(zulip.zulip?.signUp == .invitation && zulip.zulip?.fcmApp?.text == "acme-chat")
        #expect(zulip.zulip?.keysFile == "/etc/sealbell/bouncer.keys")
        #expect(configuration.warnings.map(\.code) == [.appUnused])
    }

    @Test("What is left out has the documented default")
    func defaults() throws {
        let configuration = try load(minimal())
        #expect(configuration.state == "/srv/sealbell-state")
        #expect(configuration.store.engine == .sqlite(path: "/srv/sealbell-state/relay.sqlite"))
        #expect(configuration.store.keysFile == "/users/ada/.config/sealbell/storage.keys")
        #expect(configuration.listeners.map(\.bind.description) == ["127.0.0.1:8481", "127.0.0.1:8480"])
        #expect(configuration.log == LogConfiguration(level: .info, format: .auto))
        #expect(configuration.limits.outboxRows == 2_000_000)
        #expect(configuration.limits.outboxBytes == 4_294_967_296)
        #expect(configuration.limits.pushesPerMinute == 60_000)
        #expect(configuration.apps[0].fallback == FallbackAlert(title: "New notification"))
        #expect(configuration.instances[0].zulip?.signUp == .invitation)
        #expect(configuration.proxy == nil && configuration.alerts.webhook == nil)
        #expect(configuration.warnings.isEmpty)
    }

    @Test("A byte order mark and line ends of another system change nothing")
    func editors() throws {
        let plain = try load(exampleText)
        #expect(try load("\u{FEFF}" + exampleText) == plain)
        #expect(try load(exampleText.replacing("\n", with: "\r\n")) == plain)
    }

    @Test("The only listener for instances serves all of them unless it names some")
    func onlyListener() throws {
        let text = minimal(appending: "listeners: { a: { bind: \"127.0.0.1:1\" }, admin: {} }")
        let listeners = try load(text).listeners
        #expect(listeners.first { $0.name.text == "a" }?.serves.map(\.text) == ["zulip-main"])
        #expect(listeners.first(where: \.isAdmin)?.serves.isEmpty == true)
    }

    @Test("A Zulip instance's default bundle is the one named, else the only one; else a warning says so")
    func defaultBundle() throws {
        let only = try load(minimal())
        #expect(only.instances[0].zulip?.defaultBundle == only.apps[0].apns?.bundles.first)
        #expect(only.instances[0].zulip?.defaultBundle != nil && only.warnings.isEmpty)
        let bundle = try #require(only.apps[0].apns?.bundles.first)
        func several(_ line: String) -> String {
            minimal(bundle, with: "\(bundle), org.acme.other")
                .replacing("    keys: bouncer.keys", with: "    keys: bouncer.keys\n\(line)")
        }
        let none = try load(several(""))
        #expect(none.instances[0].zulip?.defaultBundle == nil)
        #expect(none.warnings.map(\.code) == [.noDefaultBundle])
        #expect(none.warnings[0].sentence.contains("default_ios_app_id"))
        let named = try load(several("    default_ios_app_id: org.acme.other"))
        #expect(named.instances[0].zulip?.defaultBundle == "org.acme.other" && named.warnings.isEmpty)
        let error = #expect(throws: ConfigurationError.self) {
            try load(several("    default_ios_app_id: org.acme.nobody"))
        }
        #expect(error?.faults.map(\.code) == [.conflict])
        #expect(error?.faults.first?.path == "instances.zulip-main.default_ios_app_id")
    }

    @Test("Everything that can be set is read")
    func everything() throws {
        let configuration = try load(
            minimal(
                "    keys: bouncer.keys",
                with: """
                        keys: bouncer.keys
                        sign_up: allow-list
                        hosts: [Chat.Example.org, other.example.org]
                        mx_lookup: true
                    """,
                appending: """
                    proxy: http://proxy.example.org:3128
                    limits: { outbox: { rows: 5000, bytes: 64 MiB }, pushes_per_minute: 0, connections: 100 }
                    alerts:
                      log: false
                      webhook:
                        { url: "https://hooks.example.org/x?y=1", secret_file: hook.secret, ca: ca.pem }
                      mail: { command: [/usr/sbin/sendmail, root] }
                    log: { level: debug, format: json }
                    listeners:
                      inside:
                        bind: "[::]:8443"
                        serves: [zulip-main]
                        trusted_proxies: [10.0.0.0/8, "2001:db8::/32"]
                        tls: { cert: tls.pem, key: /run/tls.key }
                      admin: { bind: "10.1.2.3:9000", token_file: admin.token, tls: { cert: a, key: b } }
                    """))
        #expect(
            configuration.instances[0].zulip?.signUp
                == .allowList(["chat.example.org", "other.example.org"]))
        #expect(configuration.instances[0].zulip?.mxLookup == true)
        #expect(configuration.proxy?.host == "proxy.example.org" && configuration.proxy?.port == 3128)
        #expect(configuration.limits.outboxRows == 5000 && configuration.limits.outboxBytes == 67_108_864)
        #expect(configuration.limits.pushesPerMinute == nil && configuration.limits.connections == 100)
        #expect(configuration.alerts.webhook?.url.target == "/x?y=1" && !configuration.alerts.log)
        #expect(configuration.alerts.webhook?.secretFile == "/etc/sealbell/hook.secret")
        #expect(configuration.alerts.webhook?.authorityFile == "/etc/sealbell/ca.pem")
        #expect(
            configuration.alerts.mail
                == AlertsConfiguration.Mail(command: ["/usr/sbin/sendmail", "root"], to: "root"))
        #expect(configuration.log == LogConfiguration(level: .debug, format: .json))
        let inside = try #require(configuration.listeners.last)
        #expect(inside.bind.host == "::" && inside.bind.port == 8443 && !inside.bind.isLoopback)
        #expect(
            inside.tls
                == ListenerConfiguration.TLS(
                    certificateFile: "/etc/sealbell/tls.pem", keyFile: "/run/tls.key"))
        #expect(inside.trustedProxies == [AddressBlock("10.0.0.0/8"), AddressBlock("2001:db8::/32")])
        #expect(configuration.listeners.first?.purpose == .admin(tokenFile: "/etc/sealbell/admin.token"))
        #expect(configuration.warnings.isEmpty)
    }

    @Test("The built-in sandbox is valid, keeps its keys in the state, and lets anybody sign up")
    func sandbox() throws {
        let configuration = try ConfigurationLoader.load(
            ConfigurationRequest(state: "/tmp/s", isSandbox: true), facts())
        #expect(configuration.isSandbox && configuration.file == nil)
        #expect(configuration.store.keysFile == "/tmp/s/storage.keys")
        let zulip = configuration.instances.first { $0.name.text == "zulip-main" }?.zulip
        #expect(zulip?.signUp == .open && zulip?.keysFile == "/tmp/s/sandbox/bouncer.keys")
        let marmot = configuration.instances.first { $0.name.text == "marmot-main" }?.marmot
        #expect(marmot?.keyFile == "/tmp/s/sandbox/nostr.key")
        let nextcloud = configuration.instances.first { $0.name.text == "nextcloud-main" }?.nextcloud
        #expect(nextcloud?.hasBarePath == true && nextcloud?.subscriptionKeysFile == nil)
        #expect(configuration.apps[0].apns?.keyFile == "/tmp/s/sandbox/apns.p8")
        #expect(configuration.warnings.isEmpty)
    }

    @Test("A rehearsal of a real relay's configuration has storage keys of its own, unless it is told which")
    func rehearsal() throws {
        func keys(isSandbox: Bool, _ settings: String...) throws -> String {
            try ConfigurationLoader.read(
                minimal(appending: "store: { keys: /etc/sealbell/storage.keys }"),
                file: "/etc/sealbell/sealbell.yaml",
                ConfigurationRequest(state: "/tmp/rehearsal", settings: settings, isSandbox: isSandbox),
                facts()
            ).store.keysFile
        }
        #expect(try keys(isSandbox: false) == "/etc/sealbell/storage.keys")
        #expect(try keys(isSandbox: true) == "/tmp/rehearsal/storage.keys")
        #expect(try keys(isSandbox: true, "store.keys=/tmp/own.keys") == "/tmp/own.keys")
    }

    @Test("The only app with FCM is the FCM app, and two of them need a word")
    func fcmApp() throws {
        let fcm = "instances:\n"
        let two = minimal(
            "instances:\n",
            with: "  other:\n    fcm: { service_account: a.json }\n" + fcm)
        #expect(
            try load(two.replacing("[acme]", with: "[acme, other]")).instances[0].zulip?.fcmApp?.text
                == "other")
        let both = two.replacing("[acme]", with: "[acme, other]")
            .replacing("  acme:\n", with: "  acme:\n    fcm: { service_account: b.json }\n")
        #expect(faults(both).map(\.path) == ["instances.zulip-main.fcm_app"])
    }

    @Test(
        "Storage keys lie outside the state directory unless somebody says so, and then a warning is given",
        arguments: [
            (["CREDENTIALS_DIRECTORY": "/run/cred"], false, "/run/cred/storage.keys"),
            ([:], true, "/etc/sealbell/storage.keys"),
            ([:], false, "/users/ada/.config/sealbell/storage.keys")
        ])
    func storageKeys(environment: [String: String], isRoot: Bool, expected: String) throws {
        let configuration = try ConfigurationLoader.read(
            minimal(), file: "/etc/sealbell/sealbell.yaml", ConfigurationRequest(),
            facts(environment, isRoot: isRoot))
        #expect(configuration.store.keysFile == expected)
        #expect(configuration.files.first { $0.content == .storageKeys }?.file == expected)
        let inside = try load(minimal(appending: "state: /s\nstore: { keys: /s/k }"))
        #expect(inside.warnings.map(\.code) == [.storageKeysInsideState])
    }

    @Test("A user without a home must say where storage keys lie")
    func homeless() {
        #expect(throws: ConfigurationError.self) {
            try ConfigurationLoader.read(minimal(), file: "/x.yaml", ConfigurationRequest(), facts(home: nil))
        }
    }

    @Test("What is allowed but deserves a word is a warning")
    func warnings() throws {
        let open = try load(
            minimal("    keys: bouncer.keys", with: "    keys: bouncer.keys\n    sign_up: open"),
            ["SEALBELL_SERVICE_HOST": "10.0.0.1"])
        #expect(Set(open.warnings.map(\.code)) == [.openSignUp, .unknownEnvironment])
        let plain = try load(
            minimal(appending: "listeners: { public: { bind: \"0.0.0.0:80\", serves: [zulip-main] } }"))
        #expect(Set(plain.warnings.map(\.code)) == [.plainTextOffLoopback, .noAdminListener])
        for warning in open.warnings + plain.warnings { #expect(!warning.sentence.isEmpty) }
        func proxied(_ bind: String) throws -> [ConfigurationWarning.Code] {
            try load(
                minimal(
                    appending: "listeners: { admin: {}, public: { bind: \"\(bind)\", serves: [zulip-main], "
                        + "trusted_proxies: [10.0.0.1] } }")
            ).warnings.map(\.code)
        }
        #expect(try proxied("0.0.0.0:8480") == [.plainTextOffLoopback], "anybody can go past the proxy")
        #expect(try proxied("[::]:8480") == [.plainTextOffLoopback])
        #expect(try proxied("10.0.0.2:8480") == [])
    }
}
