import Delivery
import PushModel
import PushTesting
import Simulators
import Testing
import WebClient

@testable import RelayProgram

/// A push service from one folder and one element of the list (docs/guides/adding-a-push-service.md): what is
/// tested is that nothing else of the program has to know of it. The toy protocol sends to it.
@Suite("A push service is one folder", .timeLimit(.minutes(30)))
struct PigeonTests {
    private static func text(more: String = "") -> String {
        RelayStage.text.replacing("serves: [zulip-main]", with: "serves: [zulip-main, toy-main]")
            .replacing(
                "    fcm: { service_account: fcm.json }\n",
                with: "    fcm: { service_account: fcm.json }\n"
                    + "    pigeon: { ring_file: pigeon.ring\(more) }\n")
            + "  toy-main: { protocol: toy, apps: [acme], key_file: toy.key }\n"
    }

    private static func with(_ body: (RelayStage, PigeonCoast) async throws -> Void) async throws {
        try await RelayStage.with(text(), hosting: .withPigeons) { stage in
            try await body(stage, stage.sandbox.standing(PigeonCoast.self))
        }
    }

    /// The note for a loft, sealed; the pigeon's greeting stands before it.
    private static func knock(
        _ device: ToyDevice, _ text: String, at door: LocalCall
    ) async throws -> LocalCall.Answer {
        try await door.toy("id=\(device.id)&box=\(try ToyOrigin.seal(text, for: device))")
    }

    private static func open(_ note: String, _ device: ToyDevice) throws -> [String?] {
        let words = note.split(separator: " ", maxSplits: 1).map(String.init)
        return [words.first, try words.last.flatMap { try device.unseal($0) }]
    }

    @Test("What is hosted is what the model knows")
    func lists() {
        #expect(Hosting.standard.messages.services == PushServices.standard.services)
        for hosted in Hosting.standard.services {
            #expect(hosted.keys.contains("url"), "\(hosted.word)")
        }
    }

    @Test("Its section is read, and what is wrong with it is said by path")
    func configuration() throws {
        func faults(
            _ text: String, _ hosting: Hosting = .withPigeons
        ) -> [ConfigurationFault] {
            do throws(ConfigurationError) {
                _ = try ConfigurationLoader.read(
                    text, file: "/x/sealbell.yaml", ConfigurationRequest(isSandbox: true), facts(),
                    hosting)
                return []
            } catch {
                return error.faults
            }
        }
        let read = try ConfigurationLoader.read(
            Self.text(more: ", greeting: Hi"), file: "/x/sealbell.yaml",
            ConfigurationRequest(isSandbox: true), facts(), .withPigeons)
        #expect(read.apps[0].pigeon?.greeting == "Hi" && read.apps[0].pigeon?.ringFile == "/x/pigeon.ring")
        #expect(read.apps[0].services.count == 3)
        let typo = faults(Self.text(more: ", greting: x"))
        #expect(typo.map(\.path) == ["apps.acme.pigeon.greting"] && typo.map(\.code) == [.unknownKey])
        #expect(typo[0].sentence.contains("did you mean greeting?"))
        #expect(faults(Self.text(more: ", url: nowhere")).map(\.path) == ["apps.acme.pigeon.url"])
        #expect(faults(Self.text(), .withToy).map(\.path) == ["apps.acme.pigeon"])
        let none = faults(minimal("    apns:", with: "    fallback:"))
        #expect(none.contains { $0.sentence == "An app has apns, fcm, pigeon, or several of them." })
    }

    @Test("The built-in sandbox has its section and its simulator, and every app is pointed at that")
    func sandbox() async throws {
        let configuration = try ConfigurationLoader.load(
            ConfigurationRequest(state: "/state", isSandbox: true), facts(), .withPigeons)
        #expect(configuration.apps[0].pigeon?.ringFile == "/state/sandbox/pigeon.ring")
        try await Self.with { stage, coast in
            let pointed = try stage.configuration()
            #expect(pointed.apps[0].pigeon?.coast?.isLoopback == true && pointed.reachesNobody)
            #expect(Server.urls(of: stage.sandbox)["sandbox-pigeon"] == coast.urls["sandbox-pigeon"])
            #expect(Server.urls(of: stage.sandbox)["sandbox-fcm"] != nil)
        }
    }

    @Test("A push goes the whole way to it beside the others, and a reload changes its greeting")
    func whole() async throws {
        try await Self.with { stage, coast in
            let (near, far) = (ToyDevice(.live), ToyDevice(.live))
            try await stage.run { relay in
                let door = try relay.door()
                #expect(try await door.toy("id=\(near.id)&loft=loft-\(near.id)").text.hasPrefix("0"))
                _ = try await door.toy("id=\(far.id)&token=\(far.token)")
                #expect(try await Self.knock(near, "one", at: door).text.hasPrefix("1"))
                #expect(try Self.open(await coast.notes(1)[0], near) == ["Coo", "one"])
                // The other service of the same app is where it was.
                let arrivals = stage.apns.subscribe(token: far.token)
                _ = try await Self.knock(far, "phone", at: door)
                #expect(try far.open(try await arrivals.next("a delivery").body) == "phone")
                try relay.relay.reload(stage.configuration(Self.text(more: ", greeting: Hello")))
                _ = try await Self.knock(near, "two", at: door)
                #expect(try Self.open(await coast.notes(2)[1], near) == ["Hello", "two"])
                try await relay.drained()
                let lanes = relay.relay.lanes().map(\.lane.description)
                #expect(lanes.contains("acme/pigeon/production") && lanes.count == 4)
            }
        }
    }

    @Test("A loft that is gone ends its registration")
    func dead() async throws {
        try await Self.with { stage, coast in
            let device = ToyDevice(.live)
            try await stage.run { relay in
                let door = try relay.door()
                _ = try await door.toy("id=\(device.id)&loft=loft-\(device.id)")
                coast.tearDown("loft-\(device.id)")
                _ = try await Self.knock(device, "one", at: door)
                try await relay.drained()
                try await asked(for: "a registration that has ended") {
                    let refused = try await Self.knock(device, "two", at: door)
                    return refused.status == 400 && refused.text.contains("unknownDevice")
                }
            }
        }
    }

    @Test("A ring that is refused halts its lane alone; with the right one, after a reload, it goes on")
    func halted() async throws {
        try await Self.with { stage, coast in
            let device = ToyDevice(.live)
            let ring = joinPath(stage.state, "sandbox/acme.ring")
            try writeFile(ring, Array("ring-other".utf8), replacing: true)
            try await stage.run { relay in
                let door = try relay.door()
                _ = try await door.toy("id=\(device.id)&loft=loft-\(device.id)")
                _ = try await Self.knock(device, "one", at: door)
                try await asked(for: "a halted lane") {
                    relay.relay.lanes().filter(\.isHalted).map(\.lane.description)
                        == ["acme/pigeon/production"]
                }
                try writeFile(ring, Array("ring-acme".utf8), replacing: true)
                try relay.relay.reload(stage.configuration())
                #expect(try Self.open(await coast.notes(1)[0], device) == ["Coo", "one"])
                try await relay.drained()
            }
        }
    }

    @Test("A test push finds it by the form of an address, or by its word")
    func trial() async throws {
        try await Self.with { stage, coast in
            try await stage.run { relay in
                let person = try Operator(relay)
                let found = await person.run("test-push", "--app", "acme", input: "loft-1")
                #expect(found.status == .done, "\(found.err)")
                #expect(found.out.first?.hasPrefix("acme/pigeon/production: accepted (Ok)") == true)
                coast.tearDown("loft-2")
                let gone = await person.run(
                    "test-push", "--app", "acme", "--service", "pigeon", input: "loft-2")
                #expect(gone.status == .failed)
                #expect(gone.out.first?.contains("unregistered (NO_SUCH_LOFT)") == true)
                let unknown = await person.run(
                    "test-push", "--app", "acme", "--service", "owl", input: "loft-1")
                #expect(unknown.err.joined().contains("A service is apns, fcm or pigeon."))
            }
        }
    }

    @Test("A device is forgotten by its loft")
    func forget() async throws {
        try await Self.with { stage, _ in
            try await stage.run { relay in
                let door = try relay.door()
                let device = ToyDevice(.live)
                _ = try await door.toy("id=\(device.id)&loft=loft-\(device.id)")
                let forgotten = try await Operator(relay).run(
                    "forget", "address", input: "loft-\(device.id)")
                #expect(forgotten.out == ["Forgotten: 1 device, 0 environments."])
                #expect(try await Self.knock(device, "one", at: door).text.contains("unknownDevice"))
            }
        }
    }

    @Test("The doctor looks at its file, at where it connects to and at what its lane owes")
    func doctor() throws {
        let folder = try TemporaryFolder()
        func read(_ text: String) throws -> RelayConfiguration {
            try ConfigurationLoader.read(
                text, file: folder.path + "/sealbell.yaml", ConfigurationRequest(isSandbox: true), facts(),
                .withPigeons)
        }
        let configuration = try read(Self.text(more: ", url: \"127.0.0.1:1\""))
        func finding(_ ring: String) throws -> Finding? {
            try writeFile(folder.path + "/pigeon.ring", Array(ring.utf8), replacing: true)
            return FileChecks(World.live.now).check(configuration).first {
                $0.subject.contains("acme.pigeon.ring_file")
            }
        }
        #expect(try finding("ring-7")?.sentence == "It exists and contains a pigeon's ring.")
        #expect(try finding("thing")?.sentence == "A ring begins with ring-.")
        #expect(ReachChecks(configuration).services().map(\.port).contains(1))
        #expect(configuration.lanes.map(\.description).contains("acme/pigeon/production"))
        let without = DescriptorBudget(try read(RelayStage.text), limit: 500)
        #expect(DescriptorBudget(configuration, limit: 500).shortage != without.shortage)
    }
}
