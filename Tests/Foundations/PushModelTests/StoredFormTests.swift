import PushModel
import Testing

/// The bytes that stores of earlier versions hold, put together here by their description alone.
@Suite("Stored forms of messages")
struct StoredFormTests {
    struct Form: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let message: ProviderMessage
        let bytes: [UInt8]
    }

    /// Four bytes of length, big-endian, and the bytes.
    private static func field(_ text: String) -> [UInt8] {
        [0, 0, UInt8(text.utf8.count >> 8), UInt8(text.utf8.count & 255)] + Array(text.utf8)
    }

    private static func apns(
        _ form: APNsMessage.TopicForm, _ expiration: Int64?, _ collapseID: String?,
        _ environment: Environment? = nil
    ) -> ProviderMessage {
        .apns(
            APNsMessage(
                token: Secret("ab12".utf8), bundle: "org.acme", topicForm: form,
                environment: environment, pushType: .voip, priority: 10,
                expiration: expiration.map { UnixTime(milliseconds: $0) },
                collapseID: collapseID.map { Secret($0.utf8) }, payload: Secret("{}".utf8)))
    }

    private static let apnsHead = field("ab12") + field("org.acme") + field("voip") + [10]

    static let forms = [
        Form(
            testDescription: "APNs, the least", message: apns(.suffixedByType, nil, nil),
            bytes: [1] + apnsHead + [0] + [0] + field("{}")),
        Form(
            testDescription: "APNs, everything", message: apns(.suffixedByType, 0x0102_0304, "c"),
            bytes: [1] + apnsHead + [1, 0, 0, 0, 0, 1, 2, 3, 4] + [1] + field("c") + field("{}")),
        Form(
            testDescription: "APNs, the topic as named", message: apns(.asNamed, nil, "c"),
            bytes: [3] + apnsHead + [0] + [1] + field("c") + field("{}")),
        Form(
            testDescription: "APNs, for production", message: apns(.suffixedByType, nil, "c", .production),
            bytes: [4, 0, 0] + apnsHead + [0] + [1] + field("c") + field("{}")),
        Form(
            testDescription: "APNs, for the sandbox, the topic as named",
            message: apns(.asNamed, nil, nil, .sandbox),
            bytes: [4, 1, 1] + apnsHead + [0] + [0] + field("{}")),
        Form(
            testDescription: "FCM, for an app",
            message: .fcm(
                FCMMessage(
                    address: Secret("f:1".utf8), app: ConfiguredName("talk"), priority: .normal,
                    data: Secret("{}".utf8))),
            bytes: [5] + field("talk") + field("f:1") + [1] + [0] + [0] + field("{}")),
        Form(
            testDescription: "FCM, with a notice",
            message: .fcm(
                FCMMessage(
                    address: Secret("f:1".utf8), priority: .high, data: Secret("{}".utf8), notice: "News")),
            bytes: [6] + field("News") + field("") + field("f:1") + [0] + [0] + [0] + field("{}")),
        Form(
            testDescription: "FCM, with a notice, for an app",
            message: .fcm(
                FCMMessage(
                    address: Secret("f:1".utf8), app: ConfiguredName("talk"), priority: .high,
                    data: Secret("{}".utf8), notice: "News")),
            bytes: [6] + field("News") + field("talk") + field("f:1") + [0] + [0] + [0] + field("{}")),
        Form(
            testDescription: "FCM, the least",
            message: .fcm(
                FCMMessage(address: Secret("f:1".utf8), priority: .normal, data: Secret("{}".utf8))),
            bytes: [2] + field("f:1") + [1] + [0] + [0] + field("{}")),
        Form(
            testDescription: "FCM, everything",
            message: .fcm(
                FCMMessage(
                    address: Secret("f:1".utf8), priority: .high, ttl: .seconds(1),
                    collapseKey: Secret("k".utf8), data: Secret("{}".utf8))),
            bytes: [2] + field("f:1") + [0] + [1, 0, 0, 0, 0, 0, 0, 3, 232] + [1] + field("k") + field("{}")),
        Form(
            testDescription: "A call of an origin",
            message: .uplink(
                UplinkMessage(
                    kind: .notification, method: .post, server: "https://push.example",
                    path: Secret("/a".utf8), contentType: "application/json", body: Secret("{}".utf8),
                    subject: Secret("s".utf8))),
            bytes: [7, 1, 1] + field("https://push.example") + field("/a") + field("application/json")
                + field("{}") + field("s"))
    ]

    private func written(_ message: ProviderMessage) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: message.value.storedSize)
        let count = bytes.withUnsafeMutableBytes { out in
            var writer = StoredWriter(out)
            message.value.write(to: &writer)
            return writer.count
        }
        return Array(bytes[..<count])
    }

    /// `nil` unless a message stands there, and nothing behind it.
    private func read(_ bytes: [UInt8], _ services: PushServices = .standard) -> ProviderMessage? {
        bytes.withUnsafeBytes { raw in
            var reader = StoredReader(raw)
            let message = services.read(&reader)
            return reader.isAtEnd ? message : nil
        }
    }

    @Test("Each is written as it always was, and read again", arguments: forms)
    func bytes(_ form: Form) throws {
        #expect(written(form.message) == form.bytes)
        let back = try #require(read(form.bytes))
        #expect(back.service == form.message.service)
        #expect(written(back) == form.bytes)
    }

    @Test("Cut off anywhere, or with a byte too many, it is none", arguments: forms)
    func truncated(_ form: Form) {
        for count in form.bytes.indices { #expect(read(Array(form.bytes[..<count])) == nil, "\(count)") }
        #expect(read(form.bytes + [0]) == nil)
    }

    @Test("Fields that no message has are none")
    func wrong() {
        let tail: [UInt8] = [0, 0] + Self.field("{}")
        #expect(read([1] + Self.field("ab") + Self.field("b") + Self.field("nonsense") + [10] + tail) == nil)
        #expect(read([2] + Self.field("f:1") + [7] + tail) == nil, "a priority")
        #expect(read([2] + Self.field("f:1") + [0] + [2, 0] + Self.field("{}")) == nil, "there or not")
        let alert = Self.field("ab") + Self.field("b") + Self.field("alert") + [10] + tail
        #expect(read([1] + alert) != nil && read([4, 0, 1] + alert) != nil)
        #expect(read([4, 2, 0] + alert) == nil, "a form of topic")
        #expect(read([4, 0, 2] + alert) == nil, "an environment")
        #expect(read([5] + Self.field("No app") + Self.field("f:1") + [1] + tail) == nil)
        let call = ["h", "/", "", "", "s"].flatMap { Self.field($0) }
        #expect(read([7, 0, 0] + call) != nil)
        #expect(read([7, 9, 0] + call) == nil, "a kind of call")
        #expect(read([7, 0, 9] + call) == nil, "a method")
        #expect(read([0xFF] + Self.field("f:1")) == nil, "a tag of nobody")
        #expect(read([2, 0xFF, 0xFF, 0xFF, 0xFF, 0]) == nil, "a length beyond all")
    }

    @Test("Of a service that is not in the list nothing is read")
    func unlisted() {
        let apple = PushServices([APNsMessage.self])
        for form in Self.forms {
            #expect((read(form.bytes, apple) != nil) == (form.message.service == .apns))
        }
    }

    @Test(
        "A call goes to host and port of its server",
        arguments: [
            ("https://push.example", "push.example:443"), ("http://127.0.0.1", "127.0.0.1:80"),
            ("https://push.example:8443", "push.example:8443"), ("https://[::1]", "[::1]:443"),
            ("https://[::1]:9", "[::1]:9"), ("", ":443")
        ])
    func authority(_ server: String, _ authority: String) {
        let message = UplinkMessage(
            kind: .staleList, method: .get, server: server, path: Secret("/".utf8), contentType: "",
            body: Secret([]), subject: Secret([]))
        #expect(message.authority == authority)
    }

    @Test("Every word is listed once, and means what delivery asks")
    func words() {
        let words = PushServices.standard.messages.flatMap { $0.reasons } + Reason.ours
        #expect(Set(words.map(\.rawValue)).count == words.count)
        #expect(Reason.apns("BadDeviceToken") == .badDeviceToken)
        #expect(Reason.apns("UNREGISTERED") == nil, "a word of another service")
        #expect(Reason.apns("Ok") == nil, "a word of ours")
        #expect(words.filter { $0.meaning.contains(.mayBeElsewhere) } == [.badDeviceToken])
    }

    @Test("A service's name has its form, and a lane of an unknown service has a name all the same")
    func names() throws {
        for text in ["", "APNS", "a/b", "a-b", "aaaaaaaaaaaaaaaa"] {
            #expect(PushService(text) == nil, "\(text)")
            #expect(LaneName("acme/\(text)/production") == nil, "\(text)")
        }
        let lane = try #require(LaneName("acme/later/production"))
        #expect(lane.service.name == "later" && lane.description == "acme/later/production")
        #expect(LaneName("acme/apns/production")?.service == .apns)
    }
}
