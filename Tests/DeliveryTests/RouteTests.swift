import PushModel
import Testing

@testable import Delivery

/// Which app sends a push, by what its topic is.
@Suite("Routes to apps")
struct RouteTests {
    private static let instance = ConfiguredName("main")!
    private static let app = ConfiguredName("acme")!

    private func route(_ bundle: String, _ form: APNsMessage.TopicForm) -> AppDirectory.Route? {
        let app = AppDirectory.App(
            name: Self.app, bundles: .listed(["org.acme.chat", "org.acme.talk"]),
            environment: .fixed(.production), hasFCM: false)
        let directory = AppDirectory([
            AppDirectory.Instance(name: Self.instance, apps: [app], fcmApp: nil)
        ])
        let message = APNsMessage(
            token: Secret("ab".utf8), bundle: bundle, topicForm: form, pushType: .voip, priority: 10,
            payload: Secret("{}".utf8))
        return directory.route(.apns(message), of: Self.instance)
    }

    @Test(
        "An app without PushKit has no way for VoIP pushes, by type or by topic, and every other push has one"
    )
    func voip() {
        for takes in [true, false] {
            let app = AppDirectory.App(
                name: Self.app, bundles: .listed(["org.acme.chat"]), environment: .fixed(.production),
                hasFCM: true, takesVoIP: takes)
            let directory = AppDirectory([
                AppDirectory.Instance(name: Self.instance, apps: [app], fcmApp: Self.app)
            ])
            func hasRoute(_ bundle: String, _ form: APNsMessage.TopicForm, _ type: APNsPushType) -> Bool {
                let message = APNsMessage(
                    token: Secret("ab".utf8), bundle: bundle, topicForm: form, pushType: type, priority: 10,
                    payload: Secret("{}".utf8))
                return directory.route(.apns(message), of: Self.instance) != nil
            }
            #expect(hasRoute("org.acme.chat", .suffixedByType, .voip) == takes)
            #expect(hasRoute("org.acme.chat", .asNamed, .voip) == takes)
            #expect(hasRoute("org.acme.chat.voip", .asNamed, .voip) == takes)
            #expect(hasRoute("org.acme.chat.voip", .asNamed, .alert) == takes)
            #expect(hasRoute("org.acme.chat", .asNamed, .alert))
            #expect(hasRoute("org.acme.chat.voip-ptt", .asNamed, .pushtotalk))
            let google = FCMMessage(address: Secret("t".utf8), priority: .high, data: Secret("{}".utf8))
            #expect(directory.route(.fcm(google), of: Self.instance) != nil)
        }
    }

    @Test("A topic that was named whole finds its app with and without a push type's suffix")
    func namedTopics() {
        let lane = AppDirectory.Route.lane(
            LaneName(app: Self.app, service: .apns, environment: .production))
        #expect(route("org.acme.chat", .asNamed) == lane)
        for type in APNsPushType.allCases {
            #expect(route("org.acme.talk" + type.topicSuffix, .asNamed) == lane, "\(type)")
        }
        for stranger in [
            "org.acme", "org.acme.chat.", "org.acme.chat.voipx", ".voip", "org.acme.chat.voip.voip"
        ] {
            #expect(route(stranger, .asNamed) == nil, "\(stranger)")
        }
        // Where the suffix is ours to add, a bundle is a bundle.
        #expect(route("org.acme.chat", .suffixedByType) == lane)
        #expect(route("org.acme.chat.voip", .suffixedByType) == nil)
    }
}
