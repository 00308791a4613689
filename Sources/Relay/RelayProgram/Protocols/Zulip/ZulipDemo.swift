import PushModel
import Simulators
import ZulipPush

/// One notification through Zulip, for a phone of each kind: device, origin and relay over real sockets,
/// Apple and Google simulated.
struct ZulipDemo: PhonesDemo {
    static let name = "zulip"
    private static let text = "see you at nine"

    let url: String
    let bouncerKey: String
    let bundle: String
    let sandbox: Sandbox
    let world: World
    let patience: Duration

    init?(on stage: DemoStage) {
        guard let (instance, url) = stage.served(ZulipSettings.self),
            let key = stage.publicKeys[instance.name.text]?.first,
            let bundle = stage.configuration.apps.compactMap(\.apns?.bundles.first).first
        else { return nil }
        (self.url, bouncerKey, self.bundle) = (url, key, bundle)
        (sandbox, world, patience) = (stage.sandbox, stage.world, stage.patience)
    }

    func converse(_ phone: SandboxPhone) async throws -> [DemoReport] {
        let host = "chat-\(UInt32.random(in: .min ... .max)).example.org"
        let server = DemoServer(host, mail: "admin@example.org", relay: url)
        try await ask(server.joining.signUp, "sign-up")
        try await ask(server.joining.realm, "realm")
        let app = try DemoApp(
            phone.token, bouncerKey: bouncerKey, bundle: bundle, realmURL: "https://\(host)", at: world.now())
        try await ask(server.register(app), "registration")
        let notification = app.notification(DemoApp.message(5, Self.text))
        guard let push = try server.notify(notification, [app]).first else {
            throw DemoFault(words: "the origin sealed nothing")
        }
        try await ask(push, "notification")
        let delivery = try await first(of: phone.deliveries)

        // What each of them held in its hands.
        let isRight = try app.open(delivery, at: world.now()) == notification
        let ciphertext = SandboxPhone.text("encrypted_data", of: delivery)
        let token = "device token \(phone.shown.prefix(8))…"
        let report = DemoReport(
            phone.name,
            [
                .init("origin", .plaintext, "“\(Self.text)”"),
                .init("relay", .address, "\(token), push key id \(app.keyID)"),
                .init("relay", .address, "realm \(server.realm.uuid.prefix(8))… of \(host)"),
                .init("relay", .ciphertext, ciphertext), .init(phone.service, .ciphertext, ciphertext),
                .init(phone.service, .address, token),
                .init("device", .plaintext, isRight ? "“\(Self.text)”" : "something else")
            ],
            opened: isRight, fault: isRight ? nil : "the device opened something else")
        return [report]
    }

    private func ask(_ call: HTTPCall, _ step: String) async throws(DemoFault) {
        guard let status = await KitWire(DirectWeb(), patience: patience).answer(call).status else {
            throw DemoFault(words: "the relay did not answer the \(step)")
        }
        guard status == 200 else { throw DemoFault(words: "the relay refused the \(step) (\(status))") }
    }
}
