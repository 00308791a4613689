import AdminIngress
import Delivery
import HTTPIngress
import PushModel
import WireFormats

/// `POST /test-push` at the admin listener: sends a visible alert to one device token and tells the push
/// service's literal answer.
///
/// Body: a JSON object of `app` and `token`, perhaps `service`, `environment` and `bundle`. The push goes
/// beside the queue, and through a halted lane too; it is not owed, and blames no registration.
struct TestPushDesk: Sendable {
    static let path = "/test-push"

    let hosting: Hosting
    let configuration: RelayConfiguration
    let delivery: DeliveryService
    let world: World

    var calls: [AdminCall] { [.desk(Self.path, takesBody: true, send)] }

    private func send(_ inbound: HTTPInbound) async throws(DeskRefusal) -> [UInt8] {
        let order = try order(inbound)
        let (app, settings) = try target(order)
        var answers: [(result: TestPushResult, took: Duration)] = []
        for push in try settings.testPushes(order) {
            let began = world.instant()
            let lane = LaneName(
                app: app.name, service: type(of: settings).service, environment: push.environment)
            guard let result = await delivery.testPush(lane, push.message) else {
                throw .status(409, "The lane of this app is being replaced; ask again.")
            }
            answers.append((result, began.duration(to: world.instant())))
            // An app that learns has another environment to ask, as a real push's first attempt does.
            guard result.answer?.reason.meaning.contains(.mayBeElsewhere) ?? false else { break }
        }
        return JSONWriter.object { json in
            json.objects("answers", answers) { answer, json in
                json.member("push", answer.result.id.text)
                json.member("lane", answer.result.lane.description)
                json.optional("outcome", answer.result.answer.map { OutcomeKind($0.outcome).label })
                json.optional("reason", answer.result.answer?.reason.rawValue)
                json.member("milliseconds", answer.took.wholeMilliseconds)
            }
        }
    }

    // MARK: Reading

    private func order(_ inbound: HTTPInbound) throws(DeskRefusal) -> TestPushOrder {
        let read = inbound.withBody { bytes -> TestPushOrder? in
            // Whatever cannot be read gets the same answer.
            try? Self.read(bytes)
        }
        guard let read, !read.app.isEmpty, (1...DeskLimits.addressBytes).contains(read.token.count) else {
            throw .status(400, "The body is a JSON object with an app and a token, all of them texts.")
        }
        return read
    }

    private static func read(_ bytes: UnsafeRawBufferPointer) throws(FormatError) -> TestPushOrder {
        var reader = JSONReader(bytes, depthLimit: 2)
        var order = TestPushOrder()
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

    /// The app, and its push service: the one asked for, else the one whose addresses look most like this.
    private func target(
        _ order: TestPushOrder
    ) throws(DeskRefusal) -> (app: AppConfiguration, settings: any ServiceSettings) {
        guard let app = ConfiguredName(order.app).flatMap(configuration.app) else {
            throw .status(404, "The configuration has no app of that name.")
        }
        guard let asked = order.service else {
            let best = app.services.max { type(of: $0).fit(order.token) < type(of: $1).fit(order.token) }
            guard let best else { throw .status(400, "This app has no push service.") }
            return (app, best)
        }
        guard let hosted = hosting.service(asked) else {
            throw .told(400, "A service is \(hosting.serviceChoice).")
        }
        guard let settings = app.settings(of: hosted) else {
            throw .told(400, "This app has no \(hosted.title) credentials.")
        }
        return (app, settings)
    }
}
