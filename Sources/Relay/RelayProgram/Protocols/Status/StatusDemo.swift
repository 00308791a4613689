import PushModel
import Secp256k1Keys
import Simulators
import StatusPush
import WakuIngress
import WebClient
import WireFormats

/// One message to each of two people, by Status: a phone of Apple's and one of Google's register at the
/// server and publish their contact codes, a sender finds them, asks the server, and the phone opens what
/// wakes it. The Waku network, Apple and Google are simulated; everything else is real.
struct StatusDemo: PhonesDemo {
    static let name = "status"
    private static let text = "see you at nine"

    private let server: PublicPoint
    /// The app's bundle id.
    private let topic: String
    private let line: NodeLine
    let sandbox: Sandbox
    let world: World
    let patience: Duration

    init?(on stage: DemoStage) {
        guard let instance = stage.configuration.instances.first(where: { $0.status != nil }),
            instance.status?.gorush == nil,
            let key = stage.publicKeys[instance.name.text]?.first.flatMap({ StatusKeyFile.point($0) }),
            let app = instance.apps.compactMap(stage.configuration.app).first(where: { $0.apns != nil }),
            let topic = app.apns?.bundles.first,
            let node = stage.sandbox.peer(StatusSandboxPeer.self)?.clients.url.flatMap({ WakuNode($0) })
        else { return nil }
        server = key
        self.topic = topic
        line = NodeLine(
            node: node, web: HTTPSFetch(group: stage.group, world: stage.world), world: stage.world,
            patience: stage.patience)
        (sandbox, world, patience) = (stage.sandbox, stage.world, stage.patience)
    }

    func converse(_ phone: SandboxPhone) async throws -> [DemoReport] {
        try await line.open()
        let setup = try StatusSetup(
            key: Secp256k1KeyPair.generate(world).secret, bundleID: topic,
            servers: [RelayKey(text: StatusKeyFile.publicText(server))])
        var device = try StatusDevice(setup)
        try device.apply(StatusSettings())
        try device.use(token: phone.token)
        guard try await line.settle(&device) == [.registered(server)] else {
            throw DemoFault(words: "the server did not register the phone")
        }
        var origin = try StatusOrigin(key: Secp256k1KeyPair.generate(world).secret)
        origin.isSending = true
        // A late answer counts for a minute.
        origin.answerWait = min(patience, .seconds(45))
        let id = Secret(world.randomBytes(32))
        _ = try origin.notify(
            StatusNotification(messageID: id, .direct, content: Secret(Self.text.utf8)),
            to: [setup.account], at: world.now())
        guard let outcome = try await line.settle(&origin).first, outcome.reached == 1, outcome.missed == 0
        else { throw DemoFault(words: "the server did not take the request") }
        let delivery = try await first(of: phone.deliveries)
        var opened: Secret?
        let data = try Delivered(json: Secret(delivery.body))
        if case .show(let message) = try device.open(data, at: world.now()) { opened = message.content }
        return [told(phone, opened, SandboxPhone.text("encryptedMessage", of: delivery))]
    }

    private func told(_ phone: SandboxPhone, _ opened: Secret?, _ sealed: String) -> DemoReport {
        let isRight = opened.map { $0 == Secret(Self.text.utf8) } ?? false
        let token = "device token \(phone.shown.prefix(8))…"
        return DemoReport(
            phone.name,
            [
                .init("sender", .plaintext, Self.text),
                .init("Waku node", .nothing, "payloads that it cannot open"),
                .init("relay", .ciphertext, sealed), .init("relay", .address, token),
                .init(phone.service, .ciphertext, sealed), .init(phone.service, .address, token),
                .init("device", .plaintext, isRight ? Self.text : "something else")
            ],
            opened: isRight, fault: isRight ? nil : "the device opened something else")
    }
}
