import AdminIngress
import Delivery
import HTTPIngress
import PushModel
import WireFormats

/// `POST /test-push` at the admin door: sends a visible alert to one device token and tells the push
/// service's literal answer.
///
/// Body: a JSON object of `app` and `token`, perhaps `service`, `environment` and `bundle`. The push goes
/// beside the queue, and through a halted lane too; it is not owed, and blames no registration.
struct TrialDesk: Sendable {
    static let path = "/test-push"
    static let title = "Test"
    static let text = "Sealbell reaches this device."

    let configuration: RelayConfiguration
    let delivery: DeliveryService
    let world: World

    var calls: [AdminCall] {
        [.desk(Self.path, changes: true) { inbound throws(DeskRefusal) in try await send(inbound) }]
    }

    /// The body as read: the token never becomes a `String`.
    private struct Order {
        var app = ""
        var service: String?
        var environment: String?
        var bundle: String?
        var token = Secret([])
    }

    private struct Way {
        var lane: LaneName
        var message: ProviderMessage
    }

    private func send(_ inbound: HTTPInbound) async throws(DeskRefusal) -> [UInt8] {
        let order = try order(inbound)
        let ways = try ways(order)
        var json = JSONWriter(reserving: 256)
        json.beginObject()
        json.key("answers")
        json.beginArray()
        for way in ways {
            let began = world.instant()
            guard let trial = await delivery.trial(way.lane, way.message) else {
                throw .status(409, "The lane of this app is being replaced; ask again.")
            }
            Self.write(trial, took: began.duration(to: world.instant()), &json)
            // An app that learns has another environment to ask, as a real push's first attempt does.
            guard trial.answer?.reason == .badDeviceToken else { break }
        }
        json.endArray()
        json.endObject()
        return json.bytes
    }

    private static func write(_ trial: Trial, took span: Duration, _ json: inout JSONWriter) {
        json.beginObject()
        json.key("push")
        json.string(trial.id.text)
        json.key("lane")
        json.string(trial.lane.description)
        json.key("outcome")
        if let answer = trial.answer { json.string(OutcomeKind(answer.outcome).label) } else { json.null() }
        json.key("reason")
        if let answer = trial.answer { json.string(answer.reason.rawValue) } else { json.null() }
        json.key("milliseconds")
        json.int(span.wholeMilliseconds)
        json.endObject()
    }

    // MARK: Reading

    private func order(_ inbound: HTTPInbound) throws(DeskRefusal) -> Order {
        let read = inbound.withBody { bytes -> Order? in
            // Whatever cannot be read gets the same answer.
            try? Self.read(bytes)
        }
        guard let read, !read.app.isEmpty, (1...1024).contains(read.token.count) else {
            throw .status(400, "The body is a JSON object with an app and a token, all of them texts.")
        }
        return read
    }

    private static func read(_ bytes: UnsafeRawBufferPointer) throws(FormatError) -> Order {
        var reader = JSONReader(bytes, depthLimit: 2)
        var order = Order()
        try reader.beginObject()
        while let name = try reader.nextMember() {
            let value = try reader.readString()
            if name.equals("app") { order.app = value.string() }
            if name.equals("service") { order.service = value.string() }
            if name.equals("environment") { order.environment = value.string() }
            if name.equals("bundle") { order.bundle = value.string() }
            if name.equals("token") { order.token = value.secret() }
        }
        try reader.end()
        return order
    }

    /// The lanes to try, one behind the other, each with its message.
    private func ways(_ order: Order) throws(DeskRefusal) -> [Way] {
        guard let app = ConfiguredName(order.app).flatMap(configuration.app) else {
            throw .status(404, "The configuration has no app of that name.")
        }
        if try service(order, app) == .apns {
            guard let apns = app.apns else { throw .status(400, "This app has no APNs credentials.") }
            let bundle = order.bundle ?? apns.bundles[0]
            guard apns.bundles.contains(bundle) else {
                throw .status(400, "This app has no such bundle id.")
            }
            let message = APNsMessage(
                token: order.token, bundle: bundle, pushType: .alert, priority: 10, payload: Self.alert)
            return try environments(order, apns).map { environment in
                Way(
                    lane: LaneName(app: app.name, service: .apns, environment: environment),
                    message: .apns(message))
            }
        }
        guard app.fcm != nil else { throw .status(400, "This app has no FCM credentials.") }
        let message = FCMMessage(address: order.token, priority: .high, data: Self.data)
        let lane = LaneName(app: app.name, service: .fcm, environment: .production)
        return [Way(lane: lane, message: .fcm(message))]
    }

    /// As asked; else what the app has; else by the token: Apple's are hexadecimal, Google's hold more.
    private func service(_ order: Order, _ app: AppConfiguration) throws(DeskRefusal) -> PushService {
        if let asked = order.service {
            guard let service = PushService(asked), [.apns, .fcm].contains(service) else {
                throw .status(400, "A service is apns or fcm.")
            }
            return service
        }
        guard app.apns != nil else { return .fcm }
        guard app.fcm != nil else { return .apns }
        let isHex = order.token.reveal { bytes in
            bytes.count >= 64 && bytes.allSatisfy { Hex.value(ofDigit: $0) != nil }
        }
        return isHex ? .apns : .fcm
    }

    private func environments(
        _ order: Order, _ apns: APNsAppConfiguration
    ) throws(DeskRefusal) -> [Environment] {
        let known: [Environment] =
            switch apns.environment {
            case .production: [.production]
            case .sandbox: [.sandbox]
            case .learn: [.production, .sandbox]
            }
        guard let asked = order.environment else { return known }
        guard let environment = Environment(rawValue: asked), known.contains(environment) else {
            throw .status(400, "This app's configuration has no such environment.")
        }
        return [environment]
    }

    /// iOS shows it without the app's help.
    private static var alert: Secret {
        var json = JSONWriter()
        json.beginObject()
        json.key("aps")
        json.beginObject()
        json.key("alert")
        json.beginObject()
        json.key("title")
        json.string(title)
        json.key("body")
        json.string(text)
        json.endObject()
        json.key("sound")
        json.string("default")
        json.endObject()
        json.endObject()
        return json.takeSecret()
    }

    /// A data message, as all of ours are: what Android shows is the app's affair.
    private static var data: Secret {
        var json = JSONWriter()
        json.beginObject()
        json.key("test")
        json.string("1")
        json.key("title")
        json.string(title)
        json.key("body")
        json.string(text)
        json.endObject()
        return json.takeSecret()
    }
}
