import NIOCore
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

    struct Phone: DemoPhone {
        let name: String
        let service: String
        let account: SessionAccountKey
        let token: SessionDeviceToken
        let deliveries: AsyncStream<Delivery>
    }

    func apple() throws -> Phone {
        let hex = world.inventAppleToken()
        return Phone(
            name: "session (APNs)", service: "APNs", account: try account(),
            token: try SessionDeviceToken(.apns, Secret(hex.utf8)),
            deliveries: sandbox.production.subscribe(token: hex))
    }

    func google() throws -> Phone {
        let address = world.inventGoogleAddress("demo")
        return Phone(
            name: "session (FCM)", service: "FCM", account: try account(),
            token: try SessionDeviceToken(.firebase, Secret(address.utf8)),
            deliveries: sandbox.fcm.subscribe(address: address))
    }

    private func account() throws -> SessionAccountKey {
        try SessionAccountKey(seed: Secret(world.randomBytes(32)))
    }

    func converse(_ phone: Phone) async throws -> [DemoReport] {
        var random = SystemRandomNumberGenerator()
        var device = SessionDevice(using: &random)
        device.use(phone.token)
        try device.watch(try WatchedAccount(phone.account))
        // A storage node that is not yet shown the subscription tells of nothing, so it is waited for.
        let watching = network.notes()
        try await subscribe(&device)
        guard await isWatched(watching) else {
            throw DemoFault(words: "no storage node took the subscription")
        }

        // What two people say to each other is encrypted between them before it comes near a storage node.
        let text = Base64.text(world.randomBytes(120))
        let message = Secret(text.utf8)
        let now = world.now()
        let hash = Base64.text(world.randomBytes(32)).replacing("=", with: "")
        network.store(
            StoragePush(
                account: phone.account.account, hash: Secret(hash.utf8), namespace: 0, timestamp: now,
                expiry: now + .seconds(14 * 86_400), data: message))
        let delivery = try await first(of: phone.deliveries)
        var opened: Secret?
        let push = try DeliveredPush(delivered: Secret(delivery.body))
        if case .show(let found) = try device.open(push, now: world.now()) { opened = found.data }
        let isRight = opened.map { $0 == message } ?? false
        let id = phone.account.account.bytes.reveal { Hex.encode(Array($0.prefix(5))) }
        let token = "device token \(delivery.token.prefix(8))…"
        let report = DemoReport(
            phone.name,
            [
                .init("storage node", .ciphertext, text), .init("storage node", .address, "account \(id)…"),
                .init("relay", .ciphertext, text), .init("relay", .address, "account \(id)…"),
                .init("relay", .address, token), .init(phone.service, .ciphertext, Self.sealed(delivery)),
                .init(phone.service, .address, token),
                .init("device", .ciphertext, isRight ? text : "something else")
            ],
            opened: isRight, fault: isRight ? nil : "the device opened something else",
            success: "opened by the device; what is inside, by the app")
        return [report]
    }

    /// What the push service is given for the device.
    private static func sealed(_ delivery: Delivery) -> String {
        // What is no JSON has no such member.
        let json = try? JSONValue.parse(delivery.body)
        return (json?["message"]?["data"] ?? json)?["enc_payload"]?.string ?? ""
    }

    private func subscribe(_ device: inout SessionDevice) async throws {
        guard let wire = LocalCall(url: url), let call = try device.renewal(due: world.now()).first else {
            throw DemoFault(words: "the phone had nothing to say")
        }
        var random = SystemRandomNumberGenerator()
        let server = try SessionServer(host: wire.host, key: key)
        let request = try server.request(call, using: &random)
        let answer = try await wire.ask("POST", request.path, body: request.body)
        let inner = try request.answer(status: answer.status, body: Secret(answer.body))
        let verdicts = device.settle(call.id, inner, now: world.now(), using: &random)
        guard verdicts.map(\.verdict) == [.added] else {
            throw DemoFault(words: "the relay did not subscribe it")
        }
    }

    private func isWatched(_ notes: AsyncStream<SessionNote>) async -> Bool {
        await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                for await note in notes {
                    if case .watched(_, let taken, _) = note, taken > 0 { return true }
                }
                return false
            }
            group.addTask {
                // Ends early only when the other has heard, or the demo is cancelled.
                try? await world.sleep(world.instant() + patience)
                return false
            }
            defer { group.cancelAll() }
            return await group.next() ?? false
        }
    }
}
