import NIOCore
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
        let token: NextcloudPushToken
        let shown: String
        /// A message, and where the phone takes calls apart, a call.
        let pushes: [(objectType: String, deliveries: AsyncStream<Delivery>)]
    }

    func apple() throws -> Phone {
        let (alert, voip) = (world.inventAppleToken(), world.inventAppleToken())
        return Phone(
            name: "nextcloud (APNs)", service: "APNs",
            userAgent: "Mozilla/5.0 (iOS) Nextcloud-Talk v20.1.0",
            token: try NextcloudPushToken(alert: Secret(alert.utf8), voip: Secret(voip.utf8)), shown: alert,
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
            token: try NextcloudPushToken(Secret(address.utf8)), shown: address,
            pushes: [("chat", sandbox.fcm.subscribe(address: address))])
    }

    func converse(_ phone: Phone) async throws -> [DemoReport] {
        var cloud = try DemoCloud()
        let wire = NextcloudWire(deadline: .milliseconds(patience.wholeMilliseconds))
        let app = NextcloudAppBuild(
            proxyServer: url.replacing("127.0.0.1", with: "localhost") + path, userAgent: phone.userAgent,
            voip: phone.pushes.count > 1 ? .strict : .none)
        var device = NextcloudDevice(account: cloud.account(), app: app, key: try .generate())
        // A relay that ran before may have pinned another key of the first app password.
        let tokenID = Int64(UInt32.random(in: 1 ... .max))
        try await register(&device, phone.token, at: &cloud, tokenID: tokenID, wire)

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

    private func register(
        _ device: inout NextcloudDevice, _ token: NextcloudPushToken, at cloud: inout DemoCloud,
        tokenID: Int64, _ wire: NextcloudWire
    ) async throws {
        var random = SystemRandomNumberGenerator()
        var step = try device.register(token, at: try DemoCloud.capabilities(), now: world.now())
        // Bound: server, relay, and the relay once more with a proof.
        for _ in 0..<3 {
            guard case .call(let call) = step else { break }
            let answer =
                call.url.hasPrefix(cloud.url)
                ? try cloud.answer(call, tokenID: tokenID, now: world.now()) : await wire.answer(call)
            step = device.settle(answer, now: world.now(), using: &random)
        }
        guard case .done = step else { throw DemoFault(words: "the device could not register") }
    }

    /// What each of them held in its hands.
    private func look(
        _ phone: Phone, isCall: Bool, _ delivery: Delivery, _ device: NextcloudDevice,
        _ notification: NextcloudNotification
    ) throws -> DemoReport {
        guard let sealed = SealedSubject(delivered: delivery.body) else {
            throw DemoFault(words: "what arrived has another form")
        }
        let ciphertext = sealed.subject.reveal { String(decoding: $0, as: UTF8.self) }
        var opened: NextcloudAlert?
        if case .alert(let alert) = try device.open(sealed) { opened = alert }
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

extension SealedSubject {
    /// Reads the two texts where push services deliver them: beside `aps`, or in FCM's `data`.
    init?(delivered body: [UInt8]) {
        // What is no JSON is no push of this protocol.
        guard let json = try? JSONValue.parse(body) else { return nil }
        let place = json["message"]?["data"] ?? json["data"] ?? json
        guard let subject = place["subject"]?.string, let signature = place["signature"]?.string else {
            return nil
        }
        self.init(subject: Secret(subject.utf8), signature: Secret(signature.utf8))
    }
}
