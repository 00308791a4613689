import PushModel
import PushTesting
import Testing

@testable import Bench

@Suite("A protocol of the benches is a folder and an element", .timeLimit(.minutes(30)))
struct FurtherProtocolTests {
    /// A protocol that nobody speaks, whose marks begin with `toy:`.
    private struct Toy: LoadProtocol {
        var name: String { "toy" }

        func makeInstance(_ world: World) -> StagedInstance {
            StagedInstance(name: "toy-load", publicKey: [7], keyFile: ("toy.key", "7\n"), isServed: true) {
                ["protocol: toy", "key_file: \($0.directory)/toy.key"]
            }
        }

        func makeOrigin(host: String, publicKey: [UInt8], bundle: String, world: World) -> any LoadOrigin {
            ToyOrigin(host: host, publicKey: publicKey, world: world)
        }

        func mark(in body: [UInt8]) -> String? {
            let text = String(decoding: body, as: UTF8.self)
            return text.hasPrefix("toy:") ? text : nil
        }
        func areAlive(_ answer: String) -> Bool { answer == "alive" }
        func taken(_ pushes: Int) -> String { "taken \(pushes)" }
        var attacks: [SiegeAttack] { [.quiet, .descriptors] }
    }

    private struct ToyOrigin: LoadOrigin {
        let host: String
        let publicKey: [UInt8]
        let world: World
        private(set) var devices: [LoadDevice] = []

        init(host: String, publicKey: [UInt8], world: World) {
            (self.host, self.publicKey, self.world) = (host, publicKey, world)
        }

        func signUp() -> [PreparedRequests] { [] }
        mutating func addDevices(_ count: Int, _ kind: PushService) -> PreparedRequests {
            devices += (0..<count).map { _ in .make(kind, world) }
            return PreparedRequests()
        }
        mutating func forgetDevices() { devices = [] }
        func notify(_ targets: some Collection<LoadDevice>, contentBytes: Int) -> LoadCall {
            (Array(host.utf8), publicKey, targets.map { "toy:\($0.name)" })
        }
    }

    private func plan(_ directory: String) -> RelayPlan {
        var plan = RelayPlan(
            executable: "/bin/true", directory: directory, apnsURL: "https://127.0.0.1:7", authority: "",
            apnsKey: "")
        plan.loads = BenchProtocols.standard.loads + [Toy()]
        return plan
    }

    @Test("Its instance stands beside the others, and is served if it is asked over HTTP")
    func configuration() {
        let plan = plan("/trial")
        let silent = StagedInstance(
            name: "silent", publicKey: [], keyFile: ("silent.key", ""), isServed: false
        ) { _ in ["protocol: silent"] }
        let instances = plan.loads.map { $0.makeInstance(.live) } + [silent]
        let lines = plan.configuration(instances).split(separator: "\n").map(String.init)
        let served = instances.dropLast().map(\.name).joined(separator: ", ")
        #expect(lines.contains { $0.hasSuffix("serves: [\(served)] }") }, "\(lines)")
        let toy = ["  toy-load:", "    protocol: toy", "    key_file: /trial/toy.key"]
        #expect(lines.suffix(5) == toy + ["  silent:", "    protocol: silent"])
    }

    @Test("A stage writes its key, and its origin is made with that key")
    func stage() throws {
        let folder = try TemporaryFolder()
        let stage = try RelayProcess(plan(folder.path), world: .live)
        #expect(try folder.read("toy.key") == "7\n")
        let last = BenchProtocols.standard.loads.count
        let origin = stage.makeOrigin(last, at: .init(pid: 1, host: "127.0.0.1", port: 9))
        let call = try origin.notify([] as [LoadDevice], contentBytes: 1)
        #expect(call.head == Array("127.0.0.1:9".utf8) && call.body == [7])
    }

    @Test("A body is known by the protocol that made it, and a foreign one by none")
    func marks() {
        let loads = plan("/trial").loads
        #expect(loads.mark(in: Array("toy:1".utf8)) == "toy:1")
        #expect(loads.mark(in: Array(#"{"encrypted_data":"abcdefghijklmnopq"}"#.utf8)) == "abcdefghijklmno")
        #expect(loads.mark(in: Array("{}".utf8)).isEmpty)
        #expect(loads.areAlive("alive") && !loads.areAlive("dead"))
    }
}
