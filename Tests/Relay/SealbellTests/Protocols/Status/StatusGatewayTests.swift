import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import PushModel
import PushTesting
import Simulators
import StatusPush
import Synchronization
import Testing
import WebClient
import WireFormats

@testable import RelayProgram

/// A gorush as far as deployed servers know it: it judges what it is sent, and answers what a test says.
final class GorushDouble: Sendable {
    enum Answer: Sendable {
        case taken
        /// The status, and a body.
        case other(Int, String)
        /// `logs` names these places of the call, by number or by token.
        case failing([Int], byToken: Bool)
        /// `logs` names all of the call's tokens with this error, without numbers; hidden as gorush hides
        /// them unless it is told not to.
        case refusing(String, isHidden: Bool)
        /// It has a platform switched off, and passes over what is for it.
        case without(platform: Int64)
        /// It takes the call, and says nothing.
        case silent
    }

    private struct State {
        var answer = Answer.taken
        /// It answers the next call alone.
        var isOnce = false
        var calls: [[JSONValue]] = []
        var faults: [String] = []
    }

    private let state = Mutex(State())
    private let channel: any Channel

    var port: Int { channel.localAddress?.port ?? 0 }
    var calls: [[JSONValue]] { state.withLock(\.calls) }
    /// What deployed servers never send.
    var faults: [String] { state.withLock(\.faults) }
    func turn(_ answer: Answer) { state.withLock { ($0.answer, $0.isOnce) = (answer, false) } }
    /// The next call is answered so, and those behind it are taken.
    func turnOnce(_ answer: Answer) { state.withLock { ($0.answer, $0.isOnce) = (answer, true) } }

    private init(_ channel: any Channel) { self.channel = channel }

    static func with(_ body: (GorushDouble) async throws -> Void) async throws {
        let box = Mutex<GorushDouble?>(nil)
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.configureHTTPServerPipeline()
                    try channel.pipeline.syncOperations.addHandler(
                        Reader { head, body in
                            guard let double = box.withLock(\.self) else { return (500, "") }
                            return double.judge(head, body)
                        })
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let double = GorushDouble(channel)
        box.withLock { $0 = double }
        do { try await body(double) } catch {
            try await channel.close()
            throw error
        }
        try await channel.close()
    }

    /// - Returns: `nil`: no answer.
    private func judge(_ head: HTTPRequestHead, _ body: [UInt8]) -> (Int, String)? {
        state.withLock { state in
            func fault(_ words: String) { state.faults.append(words) }
            if head.method != .POST || head.uri != "/api/push" { fault("\(head.method) \(head.uri)") }
            if head.headers.first(name: "content-type") != "application/json" { fault("content type") }
            guard let list = (try? JSONValue.parse(body))?["notifications"]?.array, !list.isEmpty,
                list.count <= 100
            else {
                fault("notifications")
                return (400, #"{"code":400,"message":"Missing notifications field."}"#)
            }
            for one in list { Self.faults(one).forEach(fault) }
            state.calls.append(list)
            let answer = state.answer
            if state.isOnce { (state.answer, state.isOnce) = (.taken, false) }
            switch answer {
            case .taken: return (200, #"{"counts":\#(Self.counts(list)),"logs":[],"success":"ok"}"#)
            case .without(let platform):
                let kept = list.filter { $0["platform"]?.int64 != platform }
                return (200, #"{"counts":\#(Self.counts(kept)),"logs":[],"success":"ok"}"#)
            case .other(let status, let body): return (status, body)
            case .silent: return nil
            case .refusing(let error, let isHidden):
                let logs = list.map { one in
                    var token = one["tokens"]?[0]?.string ?? ""
                    let stars = String(repeating: "*", count: 10)
                    if isHidden { token = stars + token.dropFirst(10).dropLast(10) + stars }
                    return #"{"type":"failed-push","token":"\#(token)","message":"m","error":"\#(error)"}"#
                }
                let counts = Self.counts(list)
                return (
                    200,
                    #"{"counts":\#(counts),"logs":[\#(logs.joined(separator: ","))],"success":"ok"}"#
                )
            case .failing(let places, let byToken):
                let logs = places.map { place in
                    let id = byToken ? "" : #""notif_id":"\#(list[place]["notif_id"]?.string ?? "")","#
                    let token = list[place]["tokens"]?[0]?.string ?? ""
                    return #"{\#(id)"type":"failed-push","platform":"ios","token":"\#(token)","error":"x"}"#
                }
                let counts = Self.counts(list)
                return (
                    200,
                    #"{"counts":\#(counts),"logs":[\#(logs.joined(separator: ","))],"success":"ok"}"#
                )
            }
        }
    }

    /// As gorush counts since 2024: each token, and a topic that is not empty.
    private static func counts(_ list: [JSONValue]) -> Int {
        list.reduce(0) { sum, one in
            sum + (one["tokens"]?.array?.count ?? 0) + ((one["topic"]?.string ?? "").isEmpty ? 0 : 1)
        }
    }

    /// One entry against what deployed servers send: one token, a platform, a text, a topic that is empty for
    /// Google, and three texts of hex digits.
    private static func faults(_ one: JSONValue) -> [String] {
        var faults: [String] = []
        let platform = one["platform"]?.int64
        if one["tokens"]?.array?.count != 1 { faults.append("tokens") }
        if platform != 1, platform != 2 { faults.append("platform") }
        if one["message"]?.string?.isEmpty ?? true { faults.append("message") }
        let topic = one["topic"]?.string
        if topic == nil || (platform == 2) != (topic == "") { faults.append("topic") }
        for name in ["encryptedMessage", "chatId", "publicKey"] {
            let text = one["data"]?[name]?.string ?? ""
            if !text.hasPrefix("0x") || text.contains(where: { !$0.isHexDigit && $0 != "x" }) {
                faults.append(name)
            }
        }
        for name in ["sound", "badge", "title", "mutable_content", "priority", "to"] where one[name] != nil {
            faults.append("\(name) is there")
        }
        return faults
    }

    private final class Reader: ChannelInboundHandler {
        typealias InboundIn = HTTPServerRequestPart
        typealias OutboundOut = HTTPServerResponsePart
        private let judge: @Sendable (HTTPRequestHead, [UInt8]) -> (Int, String)?
        private var head: HTTPRequestHead?
        private var body: [UInt8] = []

        init(_ judge: @escaping @Sendable (HTTPRequestHead, [UInt8]) -> (Int, String)?) {
            self.judge = judge
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch unwrapInboundIn(data) {
            case .head(let head): (self.head, body) = (head, [])
            case .body(let bytes): body += bytes.readableBytesView
            case .end:
                guard let head, let (status, text) = judge(head, body) else { return }
                let bytes = ByteBuffer(string: text)
                let headers: HTTPHeaders = [
                    "content-type": "application/json; charset=utf-8",
                    "content-length": "\(bytes.readableBytes)"
                ]
                let answer = HTTPResponseHead(
                    version: .http1_1, status: .init(statusCode: status), headers: headers)
                context.write(wrapOutboundOut(.head(answer)), promise: nil)
                context.write(wrapOutboundOut(.body(.byteBuffer(bytes))), promise: nil)
                context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
            }
        }
    }
}

/// The relay in front of a gorush of the operator's, over real sockets.
@Suite("Status with an external gorush", .timeLimit(.minutes(30)))
struct StatusGatewayTests {
    private func conversation(
        _ more: String = "", of service: DeviceToken.Service = .apns, withApps: Bool = true,
        spans: (inout Surroundings) -> Void = { _ in },
        _ body: @escaping (RunningRelay, GorushDouble, StatusMember, StatusMember) async throws -> Void
    ) async throws {
        try await GorushDouble.with { gorush in
            let keys = ", gorush: { url: \"http://127.0.0.1:\(gorush.port)\" }" + more
            let text = withApps ? RelayStage.status(keys) : RelayStage.statusWithoutApps(gorush: gorush.port)
            try await RelayStage.running(text, spans: spans) { relay in
                try await relay.listens()
                try await StatusMember.two(relay.stage, service) { bob, alice in
                    try await bob.register(at: [try relay.statusKey()])
                    try await body(relay, gorush, bob, alice)
                }
            }
        }
    }

    @Test("A request becomes one call as deployed servers make it, and is owed nowhere")
    func taken() async throws {
        try await conversation { relay, gorush, bob, alice in
            #expect(try await alice.tell(bob.point, "one") == .delivered)
            #expect(gorush.faults == [] && gorush.calls.count == 1)
            let one = try #require(gorush.calls.first?.first)
            #expect(one["tokens"]?[0]?.string == bob.token && one["topic"]?.string == StatusMember.topic)
            #expect(one["message"]?.string == "You have a new message")
            #expect(one["data"]?["installation_ids"]?[0]?.string == bob.device.installation.installationID)
            #expect(try await relay.owed() == 0)
            #expect(relay.stage.apns.deliveries().isEmpty)
            // The phone opens it, as gorush hands data on.
            let data = try #require(one["data"])
            var writer = JSONWriter()
            writer.value(data)
            let message = try #require(try bob.opened(Secret(writer.bytes)))
            #expect(message.content.map { $0 == Secret("one".utf8) } == true)
        }
    }

    @Test("With status-go's ways there is nothing that deployed servers do not send")
    func literal() async throws {
        try await conversation(", compatibility: status-go") { _, gorush, bob, alice in
            #expect(try await alice.tell(bob.point, "one") == .delivered)
            let one = try #require(gorush.calls.first?.first)
            let members = one.object?.members.map(\.name)
            #expect(members == ["tokens", "platform", "message", "topic", "data"])
            #expect(
                one["data"]?.object?.members.map(\.name) == ["encryptedMessage", "chatId", "publicKey"])
        }
    }

    @Test("What gorush names in its logs, refuses or answers otherwise has failed, and may be tried again")
    func refused() async throws {
        try await conversation { relay, gorush, bob, alice in
            let answers: [GorushDouble.Answer] = [
                .failing([0], byToken: false), .failing([0], byToken: true), .other(500, "{}"),
                .other(200, "not JSON"), .other(200, "{}"),
                .other(200, #"{"counts":1,"logs":[{"token":"hidden*****"}],"success":"ok"}"#),
                // The platform is switched off there.
                .other(200, #"{"counts":0,"logs":[],"success":"ok"}"#)
            ]
            alice.origin.requestPause = .milliseconds(50)
            for answer in answers {
                let before = gorush.calls.count
                gorush.turnOnce(answer)
                // Heard as a failure: the sender rests, and asks again.
                let outcome = try await alice.tell(bob.point, "once more")
                #expect(outcome == .delivered, "\(answer)")
                #expect(gorush.calls.count == before + 2)
            }
            #expect(try await relay.owed() == 0)
        }
    }

    @Test("Without an app in the configuration, phones of both services are pushed to", arguments: services)
    func withoutApps(_ service: DeviceToken.Service) async throws {
        try await conversation(of: service, withApps: false) { relay, gorush, bob, alice in
            #expect(try await alice.tell(bob.point, "one") == .delivered)
            #expect(gorush.faults == [] && gorush.calls.first?.first?["tokens"]?[0]?.string == bob.token)
            let person = try Operator(relay)
            // What iPhones registered is found by their topic, which no app says here.
            let more = service == .apns ? ["--app-id", StatusMember.topic] : []
            let told = await person.run(["forget", "address"] + more, input: bob.token)
            #expect(told.out == ["Forgotten: 1 device, 0 environments."])
        }
    }

    @Test("A topic of no app of the instance's is refused when it registers, and not given to gorush")
    func foreignTopic() async throws {
        try await conversation { relay, gorush, bob, alice in
            let server = try relay.statusKey()
            bob.topic = "org.other"
            #expect(try await bob.register(at: [server]) == [.refused(server, .unsupportedToken)])
            #expect(gorush.calls == [])
            bob.topic = StatusMember.topic
            #expect(try await bob.register(at: [server]) == [.registered(server)])
            #expect(try await alice.tell(bob.point, "one") == .delivered && gorush.calls.count == 1)
        }
    }

    @Test("With a platform switched off there, its phones have failed, and the others have not")
    func platformOff() async throws {
        try await conversation { relay, gorush, bob, alice in
            try await StatusMember.with(relay.stage, .fcm) { carol in
                try await carol.register(at: [try relay.statusKey()])
                gorush.turn(.without(platform: 2))
                alice.origin.requestPause = .milliseconds(5)
                let ids = try alice.origin.notify(
                    StatusNotification(
                        messageID: Secret(World.live.randomBytes(32)), .group(chat: Secret("chat".utf8))),
                    to: [bob.point, carol.point], at: World.live.now())
                var settled: [Settled] = []
                // Bound: each settles once.
                while settled.count < 2 {
                    let some = try await alice.line.settle(&alice.origin)
                    try #require(!some.isEmpty)
                    settled += some
                }
                #expect(settled.first { $0.id == ids[0] }?.outcome == .delivered)
                #expect(settled.first { $0.id == ids[1] }?.outcome == .taken(installations: 0, failed: 1))
                // Asked for each platform by itself, so that what one has dropped is not taken for the
                // other's.
                let platforms = gorush.calls.map { Set($0.compactMap { $0["platform"]?.int64 }) }
                #expect(platforms.allSatisfy { $0.count == 1 } && platforms.contains([1]))
            }
        }
    }

    private static let services: [DeviceToken.Service] = [.apns, .fcm]
    private static let googleInvalid = "The registration token is not a valid FCM registration token"

    @Test(
        "A token that gorush names as dead ends the registration, and the sender hears so at once",
        arguments: [
            (DeviceToken.Service.apns, "Unregistered", false), (.apns, "ExpiredToken", true),
            (.fcm, googleInvalid, true), (.fcm, "unregistered device", false)
        ])
    func dead(_ service: DeviceToken.Service, _ error: String, _ isHidden: Bool) async throws {
        try await conversation(of: service) { relay, gorush, bob, alice in
            gorush.turn(.refusing(error, isHidden: isHidden))
            alice.origin.requestPause = .milliseconds(50)
            #expect(try await alice.tell(bob.point, "one") == .taken(installations: 0, failed: 1))
            #expect(gorush.calls.count == 1)
            gorush.turn(.taken)
            // Nobody is there any more, until the phone registers its next token. No server answers, however
            // long it is waited for.
            alice.origin.answerWait = .milliseconds(500)
            #expect(try await alice.tell(bob.point, "two") != .delivered)
            #expect(gorush.calls.count == 1)
            let next = Hex.encode(World.live.randomBytes(32))
            bob.deviceToken = service == .apns ? try .apns(hex: next) : try .fcm("c:APA91b\(next)")
            let server = try relay.statusKey()
            #expect(try await bob.register(at: [server]) == [.registered(server)])
            try await StatusMember.with(relay.stage) { carol in
                let outcome = try await carol.tell(bob.point, "three")
                #expect(outcome == .delivered)
            }
            #expect(gorush.calls.last?.first?["tokens"]?[0]?.string?.hasSuffix(next) == true)
            #expect(!(relay.stage.log.all.joined().contains(bob.token)))
        }
    }

    @Test(
        "What may be the fault of gorush's settings, or pass, ends no registration",
        arguments: [
            (
                DeviceToken.Service.apns,
                [
                    "BadDeviceToken", "DeviceTokenNotForTopic", "ExpiredProviderToken", "unregistered",
                    googleInvalid
                ]
            ), (.fcm, ["Requested entity was not found.", "SenderId mismatch", "Unregistered"])
        ])
    func doubtful(_ service: DeviceToken.Service, _ errors: [String]) async throws {
        try await conversation(of: service) { _, gorush, bob, alice in
            alice.origin.requestPause = .milliseconds(50)
            for (count, error) in errors.enumerated() {
                gorush.turnOnce(.refusing(error, isHidden: false))
                let outcome = try await alice.tell(bob.point, "once more")
                #expect(outcome == .delivered && gorush.calls.count == 2 * count + 2, "\(error)")
            }
        }
    }

    @Test("Once Apple has taken a push by this gorush, a token that it does not know there is dead")
    func badToken() async throws {
        try await conversation { _, gorush, bob, alice in
            let before = try await alice.tell(bob.point, "one")
            gorush.turn(.refusing("BadDeviceToken", isHidden: true))
            let after = try await alice.tell(bob.point, "two")
            #expect(before == .delivered && after == .taken(installations: 0, failed: 1))
            #expect(gorush.calls.count == 2)
        }
    }

    @Test("A gorush that does not answer in time has failed")
    func silent() async throws {
        let spans = { (around: inout Surroundings) in
            around.spans.statusHost.gateway = .seconds(1)
            around.web.leastDeadline = .zero
        }
        try await conversation(spans: spans) { relay, gorush, bob, alice in
            gorush.turn(.silent)
            _ = try alice.origin.notify(
                StatusNotification(messageID: Secret(World.live.randomBytes(32)), .direct), to: [bob.point],
                at: World.live.now())
            let (line, ready) = (alice.line, alice.origin)
            async let settled = line.settled(ready)
            try await relay.until(
                "sealbell_status_gateway_calls_total", ["instance": "main", "outcome": "unreachable"],
                reaches: 1)
            gorush.turn(.taken)
            let (origin, outcomes) = try await settled
            alice.origin = origin
            #expect(outcomes == [.delivered])
        }
    }
}

extension NodeLine {
    /// The same with a value that comes back changed.
    func settled(_ origin: StatusOrigin) async throws -> (StatusOrigin, [StatusDispatch.Outcome]) {
        var origin = origin
        let outcomes = try await settle(&origin).map(\.outcome)
        return (origin, outcomes)
    }
}
