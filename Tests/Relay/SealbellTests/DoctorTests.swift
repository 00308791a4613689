import AtRest
import DialTesting
import Dialling
import Foundation
import NIOCore
import NIOPosix
import NIOSSL
import PushModel
import PushTesting
import Simulators
import Testing
import WebClient
import WireFormats

@testable import RelayProgram

/// The shell of a test at one moment.
private func shell(at seconds: Int64 = 1_795_257_671) -> Shell {
    var world = World.live
    world.now = { UnixTime(seconds: seconds) }
    return Shell(facts: facts(), world: world, out: { _ in }, err: { _ in })
}

/// A listener that shakes hands and says nothing.
private func silentServer(_ authority: CertificateAuthority) async throws -> any Channel {
    let issued = try authority.issue()
    let chain = try NIOSSLCertificate.fromPEMBytes(Array(issued.certificatePEM.utf8))
    let key = try NIOSSLPrivateKey(bytes: Array(issued.privateKeyPEM.utf8), format: .pem)
    let configuration = TLSConfiguration.makeServerConfiguration(
        certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(key))
    let context = try NIOSSLContext(configuration: configuration)
    return try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
        .childChannelInitializer { channel in
            channel.eventLoop.makeCompletedFuture {
                try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: context))
            }
        }
        .bind(host: "127.0.0.1", port: 0).get()
}

@Suite("The doctor", .timeLimit(.minutes(30)))
struct DoctorTests {
    private func configuration(_ folder: TemporaryFolder, _ more: String = "") throws -> RelayConfiguration {
        try ConfigurationLoader.read(
            minimal(appending: more), file: folder.path + "/sealbell.yaml",
            ConfigurationRequest(state: folder.path + "/state", settings: ["store.keys=\(folder.path)/keys"]),
            facts())
    }

    @Test("A push service is reached when its certificate is trusted, and the fault is named when it is not")
    func reach() async throws {
        let folder = try TemporaryFolder()
        let authority = try CertificateAuthority()
        let stranger = try CertificateAuthority()
        try writeFile(folder.path + "/ca.pem", Array(authority.certificatePEM.utf8), replacing: true)
        try writeFile(folder.path + "/other.pem", Array(stranger.certificatePEM.utf8), replacing: true)
        let key = APNsKey()
        let service = try APNsSimulator(
            .init(environment: .production, keys: [key.registration()]), authority: authority,
            eventLoopGroup: MultiThreadedEventLoopGroup.singleton)
        let port = try await service.start()
        let silent = try await silentServer(authority)
        func check(
            _ ca: String, _ port: Int, within deadline: Duration = .seconds(600)
        ) async throws -> Finding {
            var configuration = try configuration(folder)
            configuration.apps[0].apns?.url = HTTPSBase(host: "localhost", port: port)
            configuration.apps[0].apns?.caFile = folder.path + "/" + ca
            let findings = await ReachChecks(
                configuration, dialling: .swift([.here]), deadline: deadline
            ).check()
            #expect(findings.count == 1)
            return findings[0]
        }
        #expect(try await check("ca.pem", port).severity == .good)
        let distrusted = try await check("other.pem", port)
        #expect(distrusted.severity == .fault && distrusted.sentence.contains("TLS fails"))
        await service.stop()
        let gone = try await check("ca.pem", port)
        #expect(gone.severity == .fault && gone.sentence.contains("port \(port)"))
        // Shaking hands is not enough: the relay would never send a push.
        let mute = try await check(
            "ca.pem", try #require(silent.localAddress?.port), within: .milliseconds(500))
        #expect(mute.severity == .fault && mute.sentence.contains("says nothing"))
        try await silent.close()
    }

    @Test("A family that does not answer is worth a word, once for all hosts, and no fault")
    func families() async throws {
        let folder = try TemporaryFolder()
        let authority = try CertificateAuthority()
        try writeFile(folder.path + "/ca.pem", Array(authority.certificatePEM.utf8), replacing: true)
        let service = try APNsSimulator(
            .init(environment: .production, keys: [APNsKey().registration()]), authority: authority,
            eventLoopGroup: MultiThreadedEventLoopGroup.singleton)
        let port = try await service.start()
        var configuration = try configuration(folder)
        configuration.apps[0].apns?.url = HTTPSBase(host: "localhost", port: port)
        configuration.apps[0].apns?.caFile = folder.path + "/ca.pem"
        let six = try DeadAddress(.sixth, port: port).address
        func check(_ addresses: [IPAddress]) async -> [Finding] {
            await ReachChecks(configuration, dialling: .swift(addresses), deadline: .seconds(600)).check()
        }
        for addresses in [[six, .here], [.here, six]] {
            let one = await check(addresses)
            #expect(one.map(\.severity) == [.good, .warning] && Findings(one).ok)
            #expect(one.last?.subject == "localhost:\(port)")
            #expect(one.last?.sentence.contains("IPv6 addresses do not answer") == true)
        }
        #expect(await check([six]).map(\.severity) == [.fault])
        #expect(await check([]).map(\.sentence) == ["Its name has no address: look at the name and at DNS."])
        // Two hosts: the machine has no IPv6.
        configuration.apps.append(configuration.apps[0])
        let other = try APNsSimulator(
            .init(environment: .production, keys: [APNsKey().registration()]), authority: authority,
            eventLoopGroup: MultiThreadedEventLoopGroup.singleton)
        configuration.apps[1].apns?.url = HTTPSBase(host: "localhost", port: try await other.start())
        let two = await check([six, .here])
        #expect(two.count { $0.severity == .warning } == 1 && two.last?.subject == "IPv6", "\(two)")
        await other.stop()
        await service.stop()
    }

    @Test("A proxy that the environment names and the configuration does not is told where nothing answers")
    func ignoredProxy() throws {
        let folder = try TemporaryFolder()
        func told(_ variable: String, _ finding: Finding, _ more: String = "") throws -> [String] {
            let shell = Shell(
                facts: facts([variable: "http://proxy.example.org:3128"]), world: .live, out: { _ in },
                err: { _ in })
            return Doctor(try configuration(folder, more), shell).ignoredProxy([finding]).map(\.subject)
        }
        let (away, near) = (Finding.fault(.reach, "a", "b"), Finding.good(.reach, "a", "b"))
        #expect(try told("HTTPS_PROXY", away) == ["HTTPS_PROXY"])
        #expect(try told("https_proxy", away) == ["https_proxy"])
        #expect(try told("HTTPS_PROXY", near).isEmpty)
        #expect(try told("HTTPS_PROXY", away, "proxy: http://proxy.example.org:3128").isEmpty)
        #expect(try told("HOME", away).isEmpty)
    }

    @Test("The push services that are asked are those the apps use, each once")
    func doors() throws {
        let folder = try TemporaryFolder()
        var learning = try configuration(folder)
        #expect(ReachChecks(learning).services().map(\.host) == ["api.push.apple.com"])
        learning.apps[0].apns?.environment = .learn
        learning.apps.append(learning.apps[0])
        #expect(
            ReachChecks(learning).services().map(\.host)
                == ["api.push.apple.com", "api.sandbox.push.apple.com"])
        learning.apps = [
            AppConfiguration(
                name: learning.apps[0].name,
                services: [
                    FCMSettings(
                        serviceAccountFile: "/none", address: .auto, url: nil, caFile: nil,
                        tokenURL: HTTPSURL("https://oauth2.example.org:444/token"))
                ],
                fallback: .standard)
        ]
        #expect(
            ReachChecks(learning).services().map { "\($0.host):\($0.port)" }
                == ["fcm.googleapis.com:443", "oauth2.example.org:444"])
    }

    @Test("A port that another program holds is a fault, and one that our relay holds is not")
    func ports() async throws {
        let folder = try TemporaryFolder()
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .bind(host: "127.0.0.1", port: 0).get()
        let port = try #require(server.localAddress?.port)
        let held = try configuration(
            folder,
            "listeners:\n  public: { bind: \"127.0.0.1:\(port)\", serves: [zulip-main] }\n"
                + "  admin: { bind: \"127.0.0.1:0\" }"
        )
        #expect(PortChecks(held).check().map(\.severity) == [.good, .fault])
        _ = try StateDirectory(claiming: held.state)
        try RunFile(urls: ["public": "x"], ca: nil, publicKeys: [:], apps: [:]).write(state: held.state)
        #expect(PortChecks(held).check().map(\.severity) == [.good, .good])
        // The relay was given a socket of another port, and the configured one is another program's, or free.
        func serve(at port: Int) throws {
            try RunFile(urls: ["public": "http://127.0.0.1:\(port)"], ca: nil, publicKeys: [:], apps: [:])
                .write(state: held.state)
        }
        try serve(at: 8480)
        #expect(PortChecks(held).check().map(\.severity) == [.good, .fault])
        try await server.close()
        let moved = PortChecks(held).check()
        #expect(moved.map(\.severity) == [.good, .warning] && moved[1].sentence.contains("port 8480 instead"))
        try serve(at: port)
        #expect(PortChecks(held).check().map(\.severity) == [.good, .good])
        let foreign = try configuration(
            folder, "listeners: { public: { bind: \"192.0.2.1:80\", serves: [zulip-main] } }")
        #expect(PortChecks(foreign).check().map(\.severity) == [.fault])
    }

    @Test("Clock, state directory and storage keys are judged")
    func machine() throws {
        let folder = try TemporaryFolder()
        let configuration = try configuration(folder)
        func check(
            at seconds: Int64 = Int64(Date().timeIntervalSince1970), isKept: Bool? = true
        ) -> [Finding.Area: [Finding]] {
            Dictionary(
                grouping: MachineChecks(
                    configuration, { UnixTime(seconds: seconds) }, isClockKept: { isKept }
                ).check(), by: \.area)
        }
        #expect(check(isKept: nil)[.clock]?.first?.severity == .good)
        #expect(check(isKept: false)[.clock]?.first?.sentence.contains("no time service") == true)
        // Nothing there yet is as it should be before the first start.
        #expect(check().values.joined().allSatisfy { $0.severity == .good })
        #expect(check(at: 1_000_000_000)[.clock]?.first?.severity == .fault)
        _ = try StateDirectory(claiming: configuration.state)
        #expect(check(at: 1_767_300_000)[.clock]?.first?.sentence.contains("gone back") == true)
        #expect(check()[.state]?.first?.severity == .good)
        chmod(configuration.state, 0o755)
        #expect(check()[.state]?.first?.severity == .warning)
        try writeFile(configuration.state + "/relay.sqlite", [1], replacing: true)
        #expect(check()[.keys]?.first?.sentence.contains("keys do not") == true)
        try writeFile(configuration.store.keysFile, [1], replacing: true)
        #expect(check()[.keys]?.first?.sentence.contains("no key") == true)
        unlink(configuration.store.keysFile)
        _ = try KeyFile.create(configuration.store.keysFile, .live)
        #expect(check()[.keys]?.first?.severity == .good)
        chmod(configuration.store.keysFile, 0o644)
        #expect(check()[.keys]?.first?.severity == .fault)
    }

    @Test("A disk that is nearly full is a fault that says until when pushes are accepted")
    func disk() throws {
        let folder = try TemporaryFolder()
        let configuration = try configuration(folder)
        _ = try StateDirectory(claiming: configuration.state)
        func found(_ bytes: Int64) -> Finding? {
            var checks = MachineChecks(configuration, World.live.now, isClockKept: { true })
            checks.freeBytes = { _ in bytes }
            return checks.check().last { $0.area == .state }
        }
        #expect(found(0)?.severity == .fault && found(0)?.sentence.contains("accepts no push") == true)
        let low = found(6 << 20)
        #expect(low?.severity == .fault)
        #expect(low?.sentence.hasPrefix("6 MiB are free. The relay accepts pushes until") == true)
        let some = found(configuration.limits.outboxBytes - 1)
        #expect(some?.severity == .warning && some?.sentence.contains("a full outbox takes") == true)
        #expect(found(.max)?.severity == .good)
    }

    @Test("A machine that trusts no certificate authority is told in one sentence")
    func trust() throws {
        let folder = try TemporaryFolder()
        var configuration = try configuration(folder)
        let (file, hashes) = (folder.path + "/ca-certificates.crt", folder.path + "/certs")
        let trust = SystemTrust(files: [file], folders: [hashes])
        func found() -> Finding? {
            var checks = MachineChecks(configuration, World.live.now, isClockKept: { true })
            checks.trust = trust
            return checks.check().first { $0.area == .certificates }
        }
        #expect(found()?.severity == .fault && found()?.sentence == trust.complaint)
        #expect(trust.complaint?.contains("install the package ca-certificates") == true)
        configuration.isSandbox = true
        #expect(found()?.severity == .warning)
        try FileManager.default.createDirectory(atPath: hashes, withIntermediateDirectories: true)
        try writeFile(hashes + "/README", [1], replacing: true)
        try writeFile(file, [], replacing: true)
        #expect(trust.complaint != nil, "an empty file, and a folder without certificates")
        try writeFile(hashes + "/5ed36f99.0", [1], replacing: true)
        #expect(trust.complaint == nil && found()?.severity == .good)
        unlink(hashes + "/5ed36f99.0")
        try writeFile(file, [1], replacing: true)
        #expect(trust.complaint == nil)
    }

    @Test(
        "One backup that would take keys and state is warned of, also through a link or beside the database")
    func oneBackup() throws {
        let folder = try TemporaryFolder()
        var configuration = try configuration(folder)
        _ = try StateDirectory(claiming: configuration.state)
        func warned() -> Bool {
            MachineChecks(configuration, World.live.now, isClockKept: { true }).check()
                .contains {
                    $0.area == .keys && $0.severity == .warning && $0.sentence.contains("one backup")
                }
        }
        #expect(!warned())
        try FileManager.default.createSymbolicLink(
            atPath: folder.path + "/elsewhere", withDestinationPath: configuration.state)
        configuration.store.keysFile = folder.path + "/elsewhere/storage.keys"
        #expect(warned())
        configuration.isSandbox = true
        #expect(!warned())
        configuration.isSandbox = false
        configuration.store.keysFile = folder.path + "/state-2/storage.keys"
        #expect(!warned(), "a name that begins alike is another place")
        configuration.store.engine = .sqlite(path: folder.path + "/state-2/relay.sqlite")
        #expect(warned())
    }

    @Test("A certificate that has run out, is about to, or has another's key is a fault or a warning")
    func certificates() throws {
        let folder = try TemporaryFolder()
        let authority = try CertificateAuthority()
        let one = try authority.issue()
        let other = try authority.issue()
        try writeFile(folder.path + "/c.pem", Array(one.certificatePEM.utf8), replacing: true)
        try writeFile(folder.path + "/k.pem", Array(one.privateKeyPEM.utf8), replacing: true)
        let configuration = try configuration(
            folder, "listeners: { public: { serves: [zulip-main], tls: { cert: c.pem, key: k.pem } } }")
        func tls(inDays days: Int64) -> [Finding.Severity] {
            let now = UnixTime(seconds: Int64(Date().timeIntervalSince1970) + days * 86_400)
            return FileChecks({ now }).check(configuration).filter { $0.subject.contains("tls") }.map(
                \.severity)
        }
        #expect(tls(inDays: 0) == [.good, .good, .good])
        #expect(tls(inDays: -365) == [.fault, .good, .good], "not good yet")
        #expect(tls(inDays: 3640) == [.warning, .good, .good])
        #expect(tls(inDays: 3660) == [.fault, .good, .good])
        try writeFile(folder.path + "/k.pem", Array(other.privateKeyPEM.utf8), replacing: true)
        #expect(tls(inDays: 0) == [.good, .good, .fault])
    }

    @Test("A lane in trouble is told with its cause, and without a word for it where there is none")
    func causes() throws {
        let folder = try TemporaryFolder()
        let checks = RelayChecks(try configuration(folder), shell())
        func sentence(_ state: String, _ reason: String, at time: String = "null") throws -> String? {
            let status = try JSONValue.parse(
                Array(
                    #"""
                    {"lanes":[{"lane":"acme/apns/production","state":"\#(state)","in_memory":2,
                    "parked":1,"reason":\#(reason),"reason_at":\#(time)}]}
                    """#.utf8))
            return checks.lanes(status).first?.sentence
        }
        let credential = "and 3 pushes wait: check the app's credential, topic and environment."
        #expect(
            try sentence("halted", #""InvalidProviderToken""#)
                == "It is halted (InvalidProviderToken), \(credential)")
        #expect(try sentence("halted", "null") == "It is halted, \(credential)")
        let told = timestamp(UnixTime(seconds: 1_795_257_600))
        #expect(
            try sentence("halted", #""InvalidProviderToken""#, at: "1795257600")
                == "It is halted (InvalidProviderToken, \(told)), \(credential)")
        #expect(
            try sentence("halted", #""Unknown""#)
                == "It is halted for a reason that this version does not know, \(credential)")
        #expect(
            try sentence("unanswered", #""NotReached""#)?.hasPrefix("It is unanswered (NotReached), and 3")
                == true)
        #expect(try sentence("open", "null") == "None of 1 is halted or without an answer.")
    }

    @Test("The status page of a relay in trouble says since when, what and how much")
    func statusLines() throws {
        let status = try JSONValue.parse(
            Array(
                #"""
                {"version":"9","uptime_seconds":7200,"outbox":{"rows":1,"bytes":2048,"oldest_seconds":61},
                "origins":1,"lanes":[{"lane":"acme/apns/production","state":"halted","in_flight":0,
                "in_memory":1,"parked":3,"reason":"InvalidProviderToken","reason_at":1795257600}],
                "alerts":[{"alert":"lane_halted","subject":"acme","sentence":"Look."}],
                "certificates":[{"listener":"public","days":1}],
                "reload":{"seconds_ago":60,"refused":"configuration"}}
                """#.utf8))
        let told = timestamp(UnixTime(seconds: 1_795_257_600))
        #expect(
            RelayStatus(status).lines(isStyled: false) == [
                "Sealbell 9 has served for 2 h.", "Owed: 1 push, 2 KiB, the oldest for 61 s.",
                "Origins signed up: 1.",
                "Last reload: 60 s ago, refused (configuration): the configuration of before is in force.",
                "Certificate of public: 1 day left.", "ALERT lane_halted acme: Look.", "",
                "LANE                  STATE   IN FLIGHT  IN MEMORY  IN STORE  LAST REFUSAL",
                "acme/apns/production  halted  0          1          3         InvalidProviderToken, \(told)"
            ])
        // A relay that says nothing is no reason to end.
        #expect(RelayStatus(try JSONValue.parse(Array("{}".utf8))).lines(isStyled: false).count == 5)
    }

    @Test("The whole examination ends with the status of its worst fault, and JSON says the same")
    func whole() async throws {
        let folder = try TemporaryFolder()
        let configuration = try configuration(folder)
        let findings = Findings(await Doctor(configuration, shell()).examine(isOffline: true))
        #expect(!findings.ok && findings.status == .configuration)
        let text = try jsonText(findings)
        let object = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
        #expect(object?["ok"] as? Bool == false)
        #expect((object?["findings"] as? [[String: String]])?.count == findings.findings.count)
        for finding in findings.findings { #expect(!finding.sentence.isEmpty) }
        #expect(Findings([.fault(.ports, "a", "b.")]).status == .unavailable)
        #expect(Findings([.fault(.reach, "a", "b."), .fault(.clock, "a", "b.")]).status == .failed)
        #expect(Findings([.warning(.files, "a", "b.")]).status == .done)
    }
}
