import PushModel
import Testing

@testable import RelayProgram

@Suite("What stands above the file")
struct ConfigurationOverrideTests {
    @Test("--set stands over the environment, and the environment over the file")
    func precedence() throws {
        let file = minimal(appending: "log: { level: error }")
        let variable = ["SEALBELL_LOG__LEVEL": "warning"]
        #expect(try load(file).log.level == .error)
        #expect(try load(file, variable).log.level == .warning)
        #expect(try load(file, variable, set: ["log.level=debug"]).log.level == .debug)
        #expect(try load(file, set: ["log.level=debug", "log.level=info"]).log.level == .info)
    }

    @Test("The state directory: --state, SEALBELL_STATE, state:, STATE_DIRECTORY, ./sealbell-state")
    func state() throws {
        let file = minimal(appending: "state: data")
        let both = ["SEALBELL_STATE": "env", "STATE_DIRECTORY": "/var/lib/managed:/other"]
        #expect(try load(file, both, state: "given").state == "/srv/given")
        #expect(try load(file, both).state == "/srv/env")
        #expect(try load(file, ["STATE_DIRECTORY": "/var/lib/managed"]).state == "/etc/sealbell/data")
        #expect(
            try load(minimal(), ["STATE_DIRECTORY": "/var/lib/managed:/other"]).state == "/var/lib/managed")
        #expect(try load(minimal()).state == "/srv/sealbell-state")
    }

    @Test("A variable finds a name with hyphens, and makes one when there is none")
    func names() throws {
        let file = minimal("  acme:", with: "  acme-chat:").replacing("[acme]", with: "[acme-chat]")
        let found = try load(file, ["SEALBELL_APPS__ACME_CHAT__APNS__TEAM": "ZZZZZZZZZZ"])
        #expect(found.apps.map(\.apns?.team) == ["ZZZZZZZZZZ"])
        let made = try load(file, ["SEALBELL_APPS__NEW_ONE__FCM__SERVICE_ACCOUNT": "a.json"])
        #expect(made.apps.map(\.name.text) == ["acme-chat", "new-one"])
        #expect(made.apps[1].fcm?.serviceAccountFile == "/srv/a.json")
    }

    @Test("A whole configuration can come from variables and settings")
    func withoutFile() throws {
        let configuration = try load(
            "",
            [
                "SEALBELL_APPS__ACME__FCM__SERVICE_ACCOUNT": "/run/fcm.json",
                "SEALBELL_INSTANCES__ZULIP_MAIN__PROTOCOL": "zulip",
                "SEALBELL_INSTANCES__ZULIP_MAIN__APPS": "acme"
            ], set: ["instances.zulip-main.keys=/run/bouncer.keys", "limits.outbox.bytes=1 GiB"])
        #expect(configuration.instances.map(\.name.text) == ["zulip-main"])
        #expect(configuration.limits.outboxBytes == 1_073_741_824)
    }

    @Test("A list is written with commas, and a name with a dot in quotation marks")
    func lists() throws {
        let file = minimal("  acme:", with: "  acme.chat:").replacing("[acme]", with: "[acme.chat]")
        let configuration = try load(file, set: ["apps.\"acme.chat\".apns.bundles=org.a, org.b"])
        #expect(configuration.apps[0].apns?.bundles == ["org.a", "org.b"])
    }

    @Test(
        "A setting without a path or a value is refused",
        arguments: [
            "log.level", "=debug", ".level=debug", "log..level=a", "log.=a", "a\"b\".c=1", "\"a.b=1",
            "a.b.c.d.e.f.g.h.i=1"
        ])
    func badSetting(_ setting: String) {
        #expect(faults(minimal(), set: [setting]).map(\.code) == [.badOverride])
    }

    @Test("A fault of an override names where it came from, and no value")
    func sources() throws {
        let variable = try #require(faults(minimal(), ["SEALBELL_LOG__LEVEL": "s3cret"]).first)
        #expect(variable.source == .environment("SEALBELL_LOG__LEVEL") && variable.line == nil)
        let setting = try #require(faults(minimal(), set: ["log.levle=s3cret"]).first)
        #expect(
            setting.source == .commandLine && setting.path == "log.levle"
                && setting.sentence.contains("level"))
        for line in ConfigurationError([variable, setting]).lines {
            #expect(!line.contains("s3cret"))
        }
        #expect(faults(minimal(), ["SEALBELL_LOG____LEVEL": "x"]).map(\.code) == [.badOverride])
    }

    @Test(
        "The nearest key is found within a third of the word",
        arguments: [
            ("bnudles", "bundles"), ("bundle", "bundles"), ("Team", "team"), ("keyfile", "key_file"),
            ("xyz", nil),
            ("te", nil)
        ])
    func nearestKey(_ word: String, _ expected: String?) {
        #expect(nearest(word, among: APNsService.keys) == expected)
    }

    @Test(
        "Edit distances count insertions, removals, changes and swaps as one",
        arguments: [
            ("", "", 0), ("abc", "", 3), ("abc", "abd", 1), ("abc", "acb", 1), ("kitten", "sitting", 3)
        ])
    func distance(_ left: String, _ right: String, _ expected: Int) {
        #expect(editDistance(left, right) == expected)
    }

    @Test("Numbers of bytes are read with and without a unit")
    func bytes() {
        #expect(byteCount("1024") == 1024 && byteCount("4 GiB") == 4 << 30 && byteCount("2KiB") == 2048)
        for bad in ["", "KiB", "1 GB", "-1", "1.5 GiB", "9999999999 TiB", "1e9"] {
            #expect(byteCount(bad) == nil)
        }
    }

    @Test("Addresses are read exactly or not at all")
    func addresses() {
        for good in ["127.0.0.1:0", "[::1]:8480", "localhost:65535", "0.0.0.0:80"] {
            #expect(BindAddress(good) != nil)
        }
        for bad in [
            "", ":80", "::1:80", "[127.0.0.1]:80", "1.2.3:80", "127.0.0.1", "127.0.0.1:", "127.0.0.1:99999",
            "127.0.0.1:-1", "[::1]", "host:80"
        ] {
            #expect(BindAddress(bad) == nil, "\(bad)")
        }
        for bad in [
            "http://a/", "https://", "https://a:0/", "https://u@a/", "https://a/#x", "https://a b/",
            "https://[::1/", "https://a:99999", "https://-a/"
        ] {
            #expect(HTTPSURL(bad) == nil, "\(bad)")
        }
        #expect(HTTPSURL("https://[2001:db8::1]:8443?x=1")?.target == "/?x=1")
        #expect(HTTPSBase("https://Api.Example.org")?.text == "https://api.example.org:443")
        #expect(HTTPSBase("https://a/b") == nil)
    }
}
