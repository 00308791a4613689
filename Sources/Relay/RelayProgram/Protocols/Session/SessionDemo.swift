import PushModel
import SessionPush
import Simulators
import WebClient
import WireFormats

/// One message for each of two people, by Session: a phone of Apple's and one of Google's subscribe by onion
/// request, a storage node stores a message, and the phone opens what wakes it. The storage nodes, oxend,
/// Apple and Google are simulated; everything else is real.
struct SessionDemo: PhonesDemo {
    static let name = "session"

    let url: String
    let key: Secret
    let network: SessionNetworkSimulator
    let sandbox: Sandbox
    let world: World
    let patience: Duration

    init?(on stage: DemoStage) {
        guard let (instance, url) = stage.served(SessionSettings.self),
            let text = stage.publicKeys[instance.name.text]?.first,
            // The instance says it in hexadecimal.
            let key = try? Hex.decode(Array(text.utf8)),
            let peer = stage.sandbox.peer(SessionSandboxPeer.self)
        else { return nil }
        (self.url, self.key, network) = (url, Secret(key), peer.network)
        (sandbox, world, patience) = (stage.sandbox, stage.world, stage.patience)
    }

    func converse(_ phone: SandboxPhone) async throws -> [DemoReport] {
        guard let base = ServerURL(url), let host = LocalCall(url: url)?.host else {
            throw DemoFault(words: "the relay has no address")
        }
        let device = try SessionDevice(
            SessionServer(host: host, key: RelayKey(text: Hex.encode(key.reveal { Array($0) }))))
        let account = try SessionAccountKey(seed: Secret(world.randomBytes(32)))
        let played = KitPhone(device, world)
        try played.device.use(token: phone.token)
        try played.device.watch(try WatchedAccount(account))
        // A storage node that is not yet shown the subscription tells of nothing, so it is waited for.
        let watching = network.notes()
        let wire = KitWire(DirectWeb(base: base), patience: patience)
        try await played.work { (call) throws(CommandFailure) in [await wire.answer(call)] }
        guard played.device.status(at: world.now()).state == .active else {
            throw DemoFault(words: "the relay did not subscribe it")
        }
        guard await isWatched(watching) else {
            throw DemoFault(words: "no storage node took the subscription")
        }

        // What two people say to each other is encrypted between them before it comes near a storage node.
        let text = Base64.text(world.randomBytes(120))
        let message = Secret(text.utf8)
        network.store(.written(message, to: account.account, world))
        let delivery = try await first(of: phone.deliveries)
        var opened: Secret?
        let push = try Delivered(json: Secret(delivery.body))
        if case .show(let found) = try played.device.open(push, at: world.now()) { opened = found.data }
        let isRight = opened.map { $0 == message } ?? false
        let id = account.account.bytes.reveal { Hex.encode(Array($0.prefix(5))) }
        let token = "device token \(delivery.token.prefix(8))…"
        let report = DemoReport(
            phone.name,
            [
                .init("storage node", .ciphertext, text), .init("storage node", .address, "account \(id)…"),
                .init("relay", .ciphertext, text), .init("relay", .address, "account \(id)…"),
                .init("relay", .address, token),
                .init(phone.service, .ciphertext, SandboxPhone.text("enc_payload", of: delivery)),
                .init(phone.service, .address, token),
                .init("device", .ciphertext, isRight ? text : "something else")
            ],
            opened: isRight, fault: isRight ? nil : "the device opened something else",
            success: "opened by the device; what is inside, by the app")
        return [report]
    }

    private func isWatched(_ notes: AsyncStream<SessionNote>) async -> Bool {
        await world.untilEnd(world.instant() + patience) {
            for await note in notes {
                if case .watched(_, let taken, _) = note, taken > 0 { return true }
            }
            return false
        } ?? false
    }
}
