import NextcloudPush
import PushModel
import Simulators
import WireFormats

/// Nextcloud over real sockets: Talk on a phone of Apple's, with a message and a call, and Talk on one of
/// Google's. Device, relay and what the server says to it are real; the server itself is played in memory.
struct NextcloudDemo: PhonesDemo {
    static let name = "nextcloud"
    private static let subject = "Grace: see you at nine"

    let url: String
    let path: String
    let sandbox: Sandbox
    let world: World
    let patience: Duration

    init?(on stage: DemoStage) {
        guard let (instance, url) = stage.served(NextcloudSettings.self), let app = instance.apps.first else {
            return nil
        }
        (self.url, path) = (url, "/\(instance.name)/\(app)")
        (sandbox, world, patience) = (stage.sandbox, stage.world, stage.patience)
    }

    struct Phone: DemoPhone {
        let name: String
        let service: String
        let userAgent: String
        /// As the app gets them from the system.
        let token: DeviceToken
        let calls: DeviceToken?
        let shown: String
        /// A message, and where the phone takes calls apart, a call.
        let pushes: [(objectType: String, deliveries: AsyncStream<Delivery>)]
    }

    func apple() throws -> Phone {
        let (alert, voip) = (world.inventAppleToken(), world.inventAppleToken())
        return Phone(
            name: "nextcloud (APNs)", service: "APNs",
            userAgent: "Mozilla/5.0 (iOS) Nextcloud-Talk v20.1.0",
            token: try .apns(hex: alert), calls: try .apns(hex: voip), shown: alert,
            pushes: [
                ("chat", sandbox.production.subscribe(token: alert)),
                ("call", sandbox.production.subscribe(token: voip))
            ])
    }

    func google() throws -> Phone {
        let address = world.inventGoogleAddress("demo")
        return Phone(
            name: "nextcloud (FCM)", service: "FCM",
            userAgent: "Mozilla/5.0 (Android) Nextcloud-Talk v20.1.0",
            token: try .fcm(address), calls: nil, shown: address,
            pushes: [("chat", sandbox.fcm.subscribe(address: address))])
    }

    func converse(_ phone: Phone) async throws -> [DemoReport] {
        var cloud = try DemoCloud()
        let wire = KitWire(DirectWeb(), patience: patience)
        let account = cloud.account()
        var device = try NextcloudDevice(
            NextcloudLogin(
                serverURL: account.serverURL, userID: account.userID, loginName: account.loginName,
                appPassword: account.appPassword,
                proxyServer: url.replacing("127.0.0.1", with: "localhost") + path,
                userAgent: phone.userAgent, voip: phone.calls == nil ? .none : .strict))
        try device.use(token: phone.token, calls: phone.calls)
        // A relay that ran before may have pinned another key of the first app password.
        let tokenID = Int64(UInt32.random(in: 1 ... .max))
        device = try await registered(device, at: &cloud, tokenID: tokenID, wire)

        var reports: [DemoReport] = []
        for (number, push) in phone.pushes.enumerated() {
            let isCall = push.objectType == "call"
            let notification = NextcloudNotification(
                id: Int64(1_337 + number), app: "spreed", subject: Self.subject, objectType: push.objectType,
                objectID: "t0k3n")
            let entries = try cloud.notify(notification, now: world.now())
            let answer = await wire.answer(cloud.call(entries))
            guard cloud.read(answer, to: entries).outcome == .sent else {
                throw DemoFault(words: "the relay did not take the push (\(answer.status ?? 0))")
            }
            let delivery = try await first(of: push.deliveries)
            reports.append(try look(phone, isCall: isCall, delivery, device, notification))
        }
        return reports
    }

    private func registered(
        _ device: NextcloudDevice, at cloud: inout DemoCloud, tokenID: Int64, _ wire: KitWire
    ) async throws -> NextcloudDevice {
        let phone = KitPhone(device, world)
        // Bound: what the server can do, its registration, the relay, and the relay once more with a proof.
        try await phone.work(atMost: 4) { (call) throws(CommandFailure) in
            // What the server cannot read it does not answer.
            let answer = try? cloud.answer(call, tokenID: tokenID, now: world.now())
            if let answer { return [answer] }
            return [await wire.answer(call)]
        }
        guard phone.device.status(at: world.now()).state == .active else {
            throw DemoFault(words: "the device could not register")
        }
        return phone.device
    }

    /// What each of them held in its hands.
    private func look(
        _ phone: Phone, isCall: Bool, _ delivery: Delivery, _ device: NextcloudDevice,
        _ notification: NextcloudNotification
    ) throws -> DemoReport {
        let delivered = try Delivered(json: Secret(delivery.body))
        guard let sealed = SealedSubject(delivered) else {
            throw DemoFault(words: "what arrived has another form")
        }
        let ciphertext = sealed.subject.reveal { String(decoding: $0, as: UTF8.self) }
        var opened: NextcloudAlert?
        if case .show(.alert(let alert)) = try device.open(delivered, at: world.now()) { opened = alert }
        let isRight = opened?.subject == notification.subject && opened?.id == notification.id
        let token = "device token \(delivery.token.prefix(8))…"
        return DemoReport(
            isCall ? phone.name.replacing("(", with: "(call, ") : phone.name,
            [
                .init("origin", .plaintext, "“\(Self.subject)”"),
                .init("relay", .address, token + ", a hash for its account"),
                .init("relay", .ciphertext, ciphertext), .init(phone.service, .ciphertext, ciphertext),
                .init(phone.service, .address, token + (isCall ? ", as a call" : "")),
                .init("device", .plaintext, isRight ? "“\(Self.subject)”" : "something else")
            ],
            opened: isRight, fault: isRight ? nil : "the device opened something else")
    }
}
