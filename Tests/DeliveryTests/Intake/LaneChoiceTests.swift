import PushModel
import Testing

@testable import Delivery

/// Which app sends a push, by what its topic is.
@Suite("Routes to apps")
struct LaneChoiceTests {
    private static let instance = ConfiguredName("main")!
    private static let app = ConfiguredName("acme")!

    private func route(_ bundle: String, _ form: APNsMessage.TopicForm) -> AppDirectory.LaneChoice? {
        let app = AppDirectory.App(
            name: Self.app, outlets: [APNsOutlet(bundles: .listed(["org.acme.chat", "org.acme.talk"]))])
        let directory = AppDirectory([AppDirectory.Instance(name: Self.instance, apps: [app])])
        let message = APNsMessage(
            token: Secret("ab".utf8), bundle: bundle, topicForm: form, pushType: .voip, priority: 10,
            payload: Secret("{}".utf8))
        return directory.choice(.apns(message), of: Self.instance)
    }

    @Test(
        "An app without PushKit has no way for VoIP pushes, by type or by topic, and every other push has one"
    )
    func voip() {
        for takes in [true, false] {
            let app = AppDirectory.App(
                name: Self.app,
                outlets: [
                    APNsOutlet(bundles: .listed(["org.acme.chat"]), takesVoIP: takes),
                    FCMOutlet(isDefault: true)
                ])
            let directory = AppDirectory([AppDirectory.Instance(name: Self.instance, apps: [app])])
            func hasRoute(_ bundle: String, _ form: APNsMessage.TopicForm, _ type: APNsPushType) -> Bool {
                let message = APNsMessage(
                    token: Secret("ab".utf8), bundle: bundle, topicForm: form, pushType: type, priority: 10,
                    payload: Secret("{}".utf8))
                return directory.choice(.apns(message), of: Self.instance) != nil
            }
            #expect(hasRoute("org.acme.chat", .suffixedByType, .voip) == takes)
            #expect(hasRoute("org.acme.chat", .asNamed, .voip) == takes)
            #expect(hasRoute("org.acme.chat.voip", .asNamed, .voip) == takes)
            #expect(hasRoute("org.acme.chat.voip", .asNamed, .alert) == takes)
            #expect(hasRoute("org.acme.chat", .asNamed, .alert))
            #expect(hasRoute("org.acme.chat.voip-ptt", .asNamed, .pushtotalk))
            let google = FCMMessage(address: Secret("t".utf8), priority: .high, data: Secret("{}".utf8))
            #expect(directory.choice(.fcm(google), of: Self.instance) != nil)
        }
    }

    private static func directory(_ apps: [(String, [any ServiceOutlet])]) -> AppDirectory {
        AppDirectory([
            AppDirectory.Instance(
                name: instance,
                apps: apps.map { AppDirectory.App(name: ConfiguredName($0.0)!, outlets: $0.1) })
        ])
    }

    @Test("A message for FCM may name its app, if the instance has it there")
    func namedApps() {
        let directory = Self.directory([
            ("files", [FCMOutlet(isDefault: true)]), ("talk", [FCMOutlet(isDefault: false)]),
            ("phone", [APNsOutlet(bundles: .any)])
        ])
        func lane(_ app: String?) -> AppDirectory.LaneChoice? {
            let message = FCMMessage(
                address: Secret("t".utf8), app: app.map { ConfiguredName($0)! }, priority: .high,
                data: Secret("{}".utf8))
            return directory.choice(.fcm(message), of: Self.instance)
        }
        func sent(by app: String) -> AppDirectory.LaneChoice? {
            LaneName("\(app)/fcm/production").map { .lane($0) }
        }
        #expect(lane(nil) == sent(by: "files"))
        #expect(lane("files") == sent(by: "files"))
        #expect(lane("talk") == sent(by: "talk"))
        #expect(lane("phone") == nil, "an app without FCM")
        #expect(lane("other") == nil, "an app of another instance, or of none")
        let talkAlone = Self.directory([("talk", [FCMOutlet(isDefault: false)])])
        let plain = FCMMessage(address: Secret("t".utf8), priority: .high, data: Secret("{}".utf8))
        #expect(talkAlone.choice(.fcm(plain), of: Self.instance) == nil, "no app for those that name none")
    }

    @Test("A message for APNs may name its environment, if its app is served there")
    func namedEnvironments() throws {
        func route(_ policy: EnvironmentPolicy, _ environment: Environment?) -> AppDirectory.LaneChoice? {
            let message = APNsMessage(
                token: Secret("ab".utf8), bundle: "b", environment: environment, pushType: .alert,
                priority: 10, payload: Secret("{}".utf8))
            return Self.directory([("acme", [APNsOutlet(bundles: .any, environment: policy)])]).choice(
                .apns(message), of: Self.instance)
        }
        let production = try #require(LaneName("acme/apns/production"))
        let sandbox = try #require(LaneName("acme/apns/sandbox"))
        #expect(route(.learn, nil) == .either(LanePair(first: production, other: sandbox)))
        #expect(route(.learn, .production) == .lane(production))
        #expect(route(.learn, .sandbox) == .lane(sandbox))
        for (policy, lane) in [(Environment.production, production), (.sandbox, sandbox)] {
            for environment in Environment.allCases {
                let expected = environment == policy ? AppDirectory.LaneChoice.lane(lane) : nil
                #expect(route(.fixed(policy), environment) == expected)
            }
        }
    }

    @Test("A topic that was named whole finds its app with and without a push type's suffix")
    func namedTopics() {
        let lane = AppDirectory.LaneChoice.lane(
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
