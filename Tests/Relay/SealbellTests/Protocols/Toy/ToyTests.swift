import ArgumentParser
import Foundation
import NIOPosix
import PushModel
import PushTesting
import Simulators
import Testing
import WebClient
import WireFormats

@testable import RelayProgram

/// A sixth protocol from one folder and one element of the list (docs/guides/adding-a-protocol.md): what is
/// tested is that nothing else of the program has to know of it.
@Suite("A protocol is one folder", .timeLimit(.minutes(30)))
struct ToyTests {
    private static func text(title: String = "Knock", more: String = "") -> String {
        RelayStage.text.replacing("serves: [zulip-main]", with: "serves: [zulip-main, toy-main]")
            + "  toy-main: { protocol: toy, apps: [acme], key_file: toy.key, title: \(title)\(more) }\n"
    }

    @Test("Its instance is read from the configuration, and what is wrong with it is said by path")
    func configuration() throws {
        func read(_ text: String, _ hosting: Hosting = .withToy) throws -> RelayConfiguration {
            try ConfigurationLoader.read(
                text, file: "/x/sealbell.yaml", ConfigurationRequest(isSandbox: true), facts(), hosting)
        }
        let settings = try #require(
            try read(Self.text()).instance(configured("toy-main"))?.settings as? ToySettings)
        #expect(settings.title == "Knock" && settings.keyFile == "/x/toy.key")
        #expect(settings.bundle == "org.acme.chat")
        func faults(_ text: String, _ hosting: Hosting = .withToy) -> [ConfigurationFault] {
            do throws(ConfigurationError) {
                _ = try ConfigurationLoader.read(
                    text, file: "/x/sealbell.yaml", ConfigurationRequest(isSandbox: true), facts(), hosting)
                return []
            } catch {
                return error.faults
            }
        }
        #expect(faults(Self.text(more: ", titel: x")).map(\.code) == [.unknownKey])
        #expect(faults(Self.text(more: ", bell: nowhere")).map(\.path) == ["instances.toy-main.bell"])
        let unknown = try #require(faults(Self.text(), .standard).first { $0.path.hasSuffix("protocol") })
        let spoken = "this release speaks zulip, marmot, nextcloud, session and status."
        #expect(unknown.sentence.hasSuffix(spoken))
        let twice = Self.text() + "  toy-two: { protocol: toy, apps: [acme], key_file: toy.key }\n"
        let clash = faults(twice.replacing("toy-main],", with: "toy-main, toy-two],"))
        #expect(clash.map(\.path) == ["listeners.public.serves"])
    }

    /// `sealbell keys new` of a program that hosts the toy.
    private struct KeysNewCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "new", subcommands: RelayProgram.KeysNewCommand.subcommands(.withToy))
    }

    @Test("A command of its own stands beside the others'")
    func commands() async throws {
        let folder = try TemporaryFolder()
        let lines = Lines()
        let shell = Shell(facts: facts(), world: .live, out: { lines.add($0) }, err: { lines.add($0) })
        let path = folder.path + "/toy.key"
        #expect(await EntryPoint.run(KeysNewCommand.self, ["toy", "--file", path], shell) == .done)
        #expect(try String(contentsOfFile: path, encoding: .utf8).count == 16)
        #expect(await EntryPoint.run(KeysNewCommand.self, ["--help"], shell) == .done)
        let help = lines.all.joined(separator: "\n")
        for word in ["toy", "zulip", "nostr", "storage"] { #expect(help.contains("\n  \(word) "), "\(word)") }
    }

    @Test("The built-in sandbox has an instance of it")
    func sandbox() throws {
        let configuration = try ConfigurationLoader.load(
            ConfigurationRequest(state: "/state", isSandbox: true), facts(), .withToy)
        #expect(
            configuration.instances.map(\.name.text)
                == [
                    "marmot-main", "nextcloud-main", "session-main", "status-main", "toy-main", "zulip-main"
                ])
        #expect(configuration.listeners.flatMap(\.serves).contains(configured("toy-main")))
    }

    @Test("The demo sends one notification by its face and one by its service, and both are opened")
    func demo() async throws {
        try await RelayStage.running(Self.text(), hosting: .withToy) { relay in
            let demo = try Demo(.withToy, on: relay.stage.demoStage(relay))
            try await heard(relay)
            let reports = await demo.run(["toy"])
            #expect(reports.map(\.conversation) == ["toy (face)", "toy (bell)"])
            #expect(reports.allSatisfy { $0.opened })
            #expect(try #require(relay.relay.publicKeys["toy-main"]?.first).count == 16)
        }
    }

    @Test("A reload changes it and leaves its connection; one that removes it ends that")
    func reload() async throws {
        try await RelayStage.with(Self.text(), hosting: .withToy) { stage in
            let bell = try #require(stage.sandbox.peer(ToyBell.self))
            try await stage.run { relay in
                try await heard(relay)
                let device = ToyDevice(.live)
                let door = try relay.door()
                #expect(try await door.toy("id=\(device.id)&token=\(device.token)").text.hasPrefix("0"))
                let arrivals = stage.apns.subscribe(token: device.token)
                try relay.relay.reload(stage.configuration(Self.text(title: "Again")))
                bell.ring("id=\(device.id)&box=\(try ToyOrigin.seal("hello", for: device))")
                let delivery = try await arrivals.next("a delivery")
                #expect(try device.open(delivery.body) == "hello")
                #expect(try JSONValue.parse(delivery.body)["aps"]?["alert"]?.string == "Again")
                #expect(bell.comings == 1)
                try relay.relay.reload(stage.configuration(RelayStage.text))
                #expect(try await door.toy("id=\(device.id)&box=x").status == 404)
                try await asked(for: "a bell that nobody listens to") { bell.listening == 0 }
                #expect(try await relay.admin("/health/ready?instance=toy-main").status == 404)
            }
        }
    }

    @Test("A device is forgotten by its address, and knocks for it are refused")
    func forget() async throws {
        try await RelayStage.running(Self.text(), hosting: .withToy) { relay in
            let device = ToyDevice(.live)
            let door = try relay.door()
            _ = try await door.toy("id=\(device.id)&token=\(device.token)")
            let person = try Operator(relay)
            let forgotten = await person.run("forget", "address", input: device.token)
            #expect(forgotten.out == ["Forgotten: 1 device, 0 environments."])
            let refused = try await door.toy("id=\(device.id)&box=x")
            #expect(refused.status == 400 && refused.text.contains("unknownDevice"))
        }
    }

    @Test("A server that is gone takes its readiness and raises an alert, and leaves the others theirs")
    func readiness() async throws {
        try await RelayStage.with(Self.text(), hosting: .withToy) { stage in
            let bell = try #require(stage.sandbox.peer(ToyBell.self))
            try await stage.run(spans: { $0.spans.watch.unheardAfter = .zero }) { relay in
                try await heard(relay)
                // Connected at the one end is not yet accepted at the other.
                try await asked(for: "a bell that knows its ear") { bell.listening == 1 }
                bell.hangUp()
                try await asked(for: "an instance that is not ready") {
                    try await relay.admin("/health/ready?instance=toy-main").status == 503
                }
                try await asked(for: "an alert") {
                    try await relay.admin("/status").text.contains("instance_unheard")
                }
                try await asked(for: "another that is") {
                    try await relay.admin("/health/ready?instance=zulip-main").status == 200
                }
            }
        }
    }

    @Test("The doctor looks at its files and at the places that it connects to")
    func doctor() async throws {
        let folder = try TemporaryFolder()
        func read(_ more: String) throws -> RelayConfiguration {
            try ConfigurationLoader.read(
                Self.text(more: more), file: folder.path + "/sealbell.yaml",
                ConfigurationRequest(isSandbox: true), facts(), .withToy)
        }
        let configuration = try read(", bell: \"127.0.0.1:1\"")
        func write(_ text: String) throws {
            try writeFile(folder.path + "/toy.key", Array(text.utf8), replacing: true)
        }
        try write("0123456789abcdef\n")
        func finding() -> Finding? {
            FileChecks(World.live.now).check(configuration).first { $0.subject.contains("toy-main.key_file") }
        }
        #expect(finding()?.severity == .good)
        #expect(finding()?.sentence == "It exists and contains a toy's key.")
        try write("short")
        #expect(finding()?.sentence == "A toy's key has 16 digits.")
        #expect(ReachChecks(configuration).peers().map(\.port) == [1])
        let without = try DescriptorBudget(read(""), limit: 500)
        #expect(DescriptorBudget(configuration, limit: 500).shortage != without.shortage)
    }

    /// The service has connected.
    private func heard(_ relay: RunningRelay) async throws {
        try await asked(for: "a toy that listens") {
            try await relay.admin("/health/ready?instance=toy-main").status == 200
        }
    }
}

extension RelayStage {
    func demoStage(_ running: RunningRelay) throws -> DemoStage {
        DemoStage(
            configuration: try configuration(), urls: running.urls, publicKeys: running.relay.publicKeys,
            sandbox: sandbox, group: MultiThreadedEventLoopGroup.singleton, world: .live,
            patience: .seconds(600))
    }
}
