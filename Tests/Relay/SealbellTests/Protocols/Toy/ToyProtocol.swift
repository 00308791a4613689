import ArgumentParser
import Delivery
import HTTPIngress
import NIOCore
import PushModel
import PushTesting
import Simulators
import Synchronization
import WebClient
import WireFormats

@testable import RelayProgram

/// A protocol that nobody speaks: what one more takes of this program is this folder, and one element of a
/// list. Its instance has a face, and a service that listens to a bell on the network.
enum ToyProtocol: HostedProtocol {
    static let word = "toy"
    static let keys = ["protocol", "apps", "key_file", "bell", "title"]
    static let sandboxKeys = ["key_file: toy.key"]

    static func read(_ instance: InstanceReader) -> ToySettings? {
        let cursor = instance.cursor
        if cursor.node["key_file"] == nil { cursor.missing("key_file", "Name the toy's key file.") }
        let bell = cursor.parsed("bell", BindAddress.init, "An address such as 127.0.0.1:7000.")
        let title = cursor.text("title")?.text ?? "Knock"
        return cursor.file("key_file", .toyKey).map {
            ToySettings(
                keyFile: $0, bell: bell, title: title,
                bundle: instance.apps.first.flatMap {
                    instance.bundles(of: $0).first
                })
        }
    }

    static var commands: ProtocolCommands { ProtocolCommands(keys: [KeysNewToyCommand.self]) }

    static func host(
        _ settings: ToySettings, _ making: InstanceMaking
    ) throws(CommandFailure) -> any HostedInstance {
        let key = try CredentialCache.read(settings.keyFile).trimmed
        let context = making.context
        let relay = ToyRelay(
            instance: making.name, bundle: settings.bundle ?? "", title: settings.title,
            registry: context.registry, world: context.world)
        let kept = (making.old as? ToyInstance)?.ear
        return ToyInstance(
            name: making.name, publicKeys: [key.reveal { String(decoding: $0, as: UTF8.self) }],
            reception: making.reception(relay),
            ear: kept?.bell == settings.bell ? kept : settings.bell.map { ToyEar($0, group: context.group) })
    }

    static func sandboxPeer(on context: SandboxContext) async throws -> (any SandboxPeer)? {
        try await ToyBell(group: context.group)
    }

    static func demo(on stage: DemoStage) -> (any ProtocolDemo)? {
        stage.served(ToySettings.self).flatMap { found in
            stage.sandbox.peer(ToyBell.self).map { ToyDemo(url: found.url, bell: $0, stage: stage) }
        }
    }
}

/// `sealbell keys new toy`.
struct KeysNewToyCommand: SealbellCommand {
    static let configuration = CommandConfiguration(commandName: "toy", abstract: "Makes a toy's key.")

    @Option(help: "The key file.")
    var file: String

    func run(_ shell: Shell) async throws -> Ending {
        try writeKeysOnce(file, 64) { Secret(Hex.encode(shell.world.randomBytes(8)).utf8) }
        shell.out(file)
        return .done
    }
}

extension Hosting {
    static let withToy: Hosting = {
        var hosting = standard
        hosting.protocols.append(ToyProtocol.self)
        return hosting
    }()
}

struct ToySettings: InstanceSettings {
    static let paths = ["/toy/"]
    let keyFile: String
    var bell: BindAddress?
    let title: String
    let bundle: String?

    var peers: [PeerAddress] {
        bell.map { [PeerAddress(host: $0.host, port: $0.port, isPlain: true)] } ?? []
    }
    var descriptors: Int { bell == nil ? 0 : 1 }

    func makeSandboxKeys() throws(CommandFailure) {
        try writeKeysOnce(keyFile, 64) { Secret(Hex.encode(World.live.randomBytes(8)).utf8) }
    }
}

extension FileContent {
    static let toyKey = FileContent(words: "a toy's key", inSandbox: .madeOnce) { bytes, _ in
        bytes.trimmed.count == 16 ? nil : "A toy's key has 16 digits."
    }
}

struct ToyInstance: HostedInstance {
    let name: ConfiguredName
    let publicKeys: [String]
    let reception: Reception<ToyRelay>
    let ear: ToyEar?

    var face: (any HTTPFace)? { ToyFace(reception: reception) }
    func isReady() async -> Bool { ear?.isListening ?? true }
    func hearsNobody() async -> Bool { ear.map { !$0.isListening } ?? false }

    func takeForce() -> [any InstanceService] {
        ear?.adopt(reception)
        return ear.map { [$0] } ?? []
    }

    func indexes(ofAddress address: Secret, appID: String?) -> [RecordKey] {
        appID == nil ? [reception.role.key(ofAddress: address)] : []
    }
}

struct ToyFace: HTTPFace {
    let reception: Reception<ToyRelay>
    var name: ConfiguredName { reception.instance }
    var routes: [HTTPRoute] { [HTTPRoute(.exact("/toy/call"), bodyLimitBytes: 4_096)] }

    func respond(to inbound: HTTPInbound) async -> HTTPOutbound {
        do throws(ToyError) {
            let text = String(buffer: inbound.body)
            let owed = try await reception.receive(
                ToyCall(text), from: inbound.client, bytes: inbound.body.readableBytes)
            return .text(200, "\(owed)")
        } catch {
            return .text(error.isOverloaded ? 503 : 400, error.sentence)
        }
    }
}

/// Listens to a bell: each line that it says is a call.
final class ToyEar: InstanceService {
    private struct State {
        var reception: Reception<ToyRelay>?
        var channel: (any Channel)?
        var isStopped = false
    }

    let bell: BindAddress
    private let group: any EventLoopGroup
    private let state = Mutex(State())

    init(_ bell: BindAddress, group: any EventLoopGroup) { (self.bell, self.group) = (bell, group) }

    var isListening: Bool { state.withLock { $0.channel?.isActive ?? false } }

    /// What is heard from now on is judged by that.
    func adopt(_ reception: Reception<ToyRelay>) { state.withLock { $0.reception = reception } }

    func run() async throws {
        let (lines, feed) = AsyncStream<String>.makeStream()
        let channel = try await toyConnection(to: bell, on: group, feed)
        let isStopped = state.withLock { state in
            state.channel = channel
            return state.isStopped
        }
        if isStopped { channel.close(promise: nil) }
        // Bound: the feed ends with the connection, which a stop closes.
        for await line in lines {
            guard let reception = state.withLock(\.reception) else { continue }
            // A bell is not answered: what is wrong with a line is nobody's to hear.
            do throws(ToyError) {
                _ = try await reception.receive(ToyCall(line), from: ClientKey(0), bytes: line.utf8.count)
            } catch { continue }
        }
    }

    func stop() {
        let channel = state.withLock { state in
            state.isStopped = true
            return state.channel
        }
        channel?.close(promise: nil)
    }
}

/// A registration and a knock, by the face and by the bell.
struct ToyDemo: ProtocolDemo {
    let url: String
    let bell: ToyBell
    let stage: DemoStage

    func run() async -> [DemoReport] {
        var reports: [DemoReport] = []
        for byBell in [false, true] {
            do { reports.append(try await knock(byBell)) } catch {
                reports.append(DemoReport("toy", [], opened: false, fault: "the toy broke"))
            }
        }
        return reports
    }

    private func knock(_ byBell: Bool) async throws -> DemoReport {
        let device = ToyDevice(stage.world)
        let deliveries = stage.sandbox.production.subscribe(token: device.token)
        guard let door = LocalCall(patient: url),
            try await door.toy("id=\(device.id)&token=\(device.token)").status == 200
        else { return DemoReport("toy", [], opened: false, fault: "no registration") }
        let call = "id=\(device.id)&box=\(try ToyOrigin.seal("who is there?", for: device))"
        if byBell { bell.ring(call) } else { _ = try await door.toy(call) }
        let delivery = try await deliveries.next("a delivery")
        let text = try device.open(delivery.body)
        return DemoReport(
            byBell ? "toy (bell)" : "toy (face)",
            [.init("relay", .ciphertext, call), .init("device", .plaintext, text ?? "nothing")],
            opened: text == "who is there?")
    }
}

extension LocalCall {
    func toy(_ call: String) async throws(Fault) -> Answer {
        try await ask("POST", "/toy/call", body: Secret(call.utf8))
    }
}
