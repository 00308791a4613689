import NIOCore
import Primitives
import PushModel
import Simulators
import WebClient
import WireFormats
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
        var random = SystemRandomNumberGenerator()
        let deadline = TimeAmount.milliseconds(patience.wholeMilliseconds)
        guard let wire = LocalCall(url: url, deadline: deadline) else {
            throw DemoFault(words: "the listener's address has another form")
        }
        let (origin, _) = ZulipOrigin.invent(version: "12.0", using: &random)
        let name = "chat-\(UInt32.random(in: .min ... .max)).example.org"
        try await ask(origin.signUp(hostname: name, mail: "admin@example.org"), wire, "sign-up")
        let realm = UUIDText(version4From: world.random(), world.random()).text
        let report = ZulipRealmReport(
            id: 1, uuid: realm, ownerSecret: "demo", host: name, url: "https://\(name)", name: "Demo",
            createdAt: world.now().seconds)
        try await ask(origin.analytics(realms: [report]), wire, "realm")

        let login = try ZulipLogin(
            realmURL: "https://\(name)", userID: 7, email: "ada@example.org", apiKey: Secret("demo".utf8),
            relayKey: RelayKey(text: bouncerKey), bundleID: bundle)
        let played = KitPhone(try ZulipDevice(login), world)
        try played.device.use(token: phone.token)
        var server = ZulipDemoServer()
        try await played.work(atMost: ZulipDemoServer.calls) { (call) throws(CommandFailure) in
            // What it says behind that is for a server with events.
            server.registration == nil ? [server.answer(call)] : []
        }
        guard let registration = server.registration, let keyID = server.pushKeyID, let key = server.pushKey
        else { throw DemoFault(words: "the device had nothing to register") }
        try await ask(origin.register(registration, realm: realm), wire, "registration")

        let notification = notification(name)
        guard case .token(let tokenID) = registration.name else {
            throw DemoFault(words: "the device registered in another form")
        }
        let target = ZulipTarget(
            kind: phone.token.service == .apns ? .apns : .fcm, tokenID: tokenID, pushKeyID: keyID,
            key: try PushKey(base64: key))
        let sealed = try origin.notify(notification, to: [target], realm: realm, using: &random)
        guard let push = sealed.first else { throw DemoFault(words: "the origin sealed nothing") }
        try await ask(push, wire, "notification")
        let delivery = try await first(of: phone.deliveries)
        return [try look(phone, notification, delivery, played.device, realm: realm, of: name)]
    }

    /// What each of them held in its hands.
    private func look(
        _ phone: SandboxPhone, _ notification: ZulipNotification, _ delivery: Delivery, _ device: ZulipDevice,
        realm: String, of host: String
    ) throws -> DemoReport {
        let json = try JSONValue.parse(delivery.body)
        let content = phone.token.service == .apns ? json : json["message"]?["data"] ?? json
        let keyID = content["push_key_id"]?.uint32 ?? content["push_key_id"]?.string.flatMap(UInt32.init)
        guard let keyID, let ciphertext = content["encrypted_data"]?.string else {
            throw DemoFault(words: "what arrived has another form")
        }
        let opened = try device.open(Delivered(json: Secret(delivery.body)), at: world.now()).content
        let service = phone.service
        return DemoReport(
            phone.name,
            [
                .init("origin", .plaintext, "“\(Self.text)”"),
                .init("relay", .address, "device token \(phone.shown.prefix(8))…, push key id \(keyID)"),
                .init("relay", .address, "realm \(realm.prefix(8))… of \(host)"),
                .init("relay", .ciphertext, ciphertext),
                .init(service, .ciphertext, ciphertext),
                .init(service, .address, "device token \(phone.shown.prefix(8))…"),
                .init("device", .plaintext, opened == notification ? "“\(Self.text)”" : "something else")
            ],
            opened: opened == notification,
            fault: opened == notification ? nil : "the device opened something else")
    }

    private func notification(_ host: String) -> ZulipNotification {
        let message = ZulipMessage(
            id: 5, time: world.now().seconds, content: Self.text, senderID: 8, senderName: "Iago",
            senderAvatarURL: "https://\(host)/avatar.png", recipient: .direct(userIDs: [7, 8]))
        return ZulipNotification(
            realmURL: "https://\(host)", realmName: "Demo", userID: 7, body: .message(message))
    }

    private func ask(_ call: HTTPCall, _ wire: LocalCall, _ step: String) async throws {
        let answer: LocalCall.Answer
        do throws(LocalCall.Fault) {
            answer = try await wire.ask(call.method, call.url, headers: call.headers, body: call.body)
        } catch {
            throw DemoFault(words: "the relay did not answer the \(step)")
        }
        guard answer.status == 200 else {
            throw DemoFault(words: "the relay refused the \(step) (\(answer.status))")
        }
    }
}
