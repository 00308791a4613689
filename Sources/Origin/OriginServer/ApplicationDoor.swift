package import HTTPIngress
import NIOCore
import Primitives
package import PushModel
import Synchronization
import WireFormats

/// What an application can ask an origin to do, and the results.
package protocol OriginNotifying: Sendable {
    /// Owes a notification to all devices of a user.
    ///
    /// - Parameter id: of the notification, 32 hex digits; chosen by the caller.
    /// - Parameter beside: changes for the same commit, by how many devices there are.
    /// - Returns: how many devices there are; `nil`: a change did not meet its condition, and nothing is
    ///   owed.
    /// - Throws: `.unknownUser`, `.tooMuchContent`, `.overloaded`.
    func notify(
        _ user: String, id: String, _ content: NotificationContent, beside: @Sendable (Int) -> [Change]
    ) async throws(OriginError) -> Int?
    /// Takes notifications off the screens of a user's devices.
    ///
    /// - Parameter id: of the withdrawal, which is a notification of its own; beside and result as above.
    func withdraw(
        _ user: String, _ ids: [String], id: String, beside: @Sendable (Int) -> [Change]
    ) async throws(OriginError) -> Int?
    /// - Returns: `nil` for an unknown id, or one older than a day.
    func devices(of id: String) async throws(OriginError) -> [NotifiedDevice]?
}

/// What a notification says.
package struct NotificationContent: Sendable {
    package var text: String
    /// The sender; `nil`: the user themselves.
    package var sender: String?

    package init(text: String, sender: String? = nil) {
        self.text = text
        self.sender = sender
    }
}

/// The door of applications: `POST /notify` and `GET /notify/ID`, with a bearer token.
///
///     POST /notify {"user": "ada", "content": "Dinner is ready", "key": "dinner-7"}
///     202 {"id": "…", "devices": 2}
package struct ApplicationDoor: HTTPFace {
    package let name: ConfiguredName
    private let token: Secret
    private let origin: any OriginNotifying
    private let registry: any Registry
    private let space: OriginSpace
    private let world: World
    private let pace: Pace

    /// A text that leaves room for names beside it in what push services take.
    package static let contentBytes = 4_096
    private static let bodyBytes = 16 << 10
    private static let keyBytes = 128
    /// How long a repeated key is answered the same.
    private static let keyLife = Duration.seconds(86_400)
    /// In one withdrawal: as many as one push names.
    private static let withdrawn = 200

    /// The digest of the applications' token that is kept, so that a memory image of an idle process does not
    /// show the token. Tokens are random, so no slow hash is needed.
    package static func digest(of token: Secret) -> Secret { Secret(SHA256.hash(token)) }

    /// - Parameter token: its ``digest(of:)``.
    /// - Parameter perMinute: notifications and withdrawals of all applications together.
    package init(
        _ space: OriginSpace, token: Secret, origin: any OriginNotifying, registry: any Registry,
        perMinute: Int, world: World
    ) {
        name = space.instance
        self.space = space
        self.token = token
        self.origin = origin
        self.registry = registry
        self.world = world
        pace = Pace(perMinute, world)
    }

    package var routes: [HTTPRoute] {
        [
            HTTPRoute(.exact("/notify"), bodyLimitBytes: Self.bodyBytes),
            HTTPRoute(.prefix("/notify/"), bodyLimitBytes: 0)
        ]
    }

    package func respond(to inbound: HTTPInbound) async -> HTTPOutbound {
        do throws(ApplicationRefusal) { return try await answer(inbound) } catch { return error.outbound }
    }

    package func refuse(_ refusal: IngressRefusal, tag: Int) -> HTTPOutbound {
        switch refusal {
        case .bodyTooLarge: ApplicationRefusal(413, "A call has at most \(Self.bodyBytes) bytes.").outbound
        case .overloaded, .noAnswer: ApplicationRefusal.overloaded.outbound
        case .clientShare: ApplicationRefusal.rateLimited(.seconds(1)).outbound
        case .notFound: ApplicationRefusal(404, "There is nothing at this path.").outbound
        case .malformed, .headersTooLarge, .slowSender, .unsupportedVersion, .unsupportedTransferCoding,
            .unsupportedExpectation:
            plainRefusal(refusal)
        }
    }

    private func answer(_ inbound: HTTPInbound) async throws(ApplicationRefusal) -> HTTPOutbound {
        try check(inbound)
        switch (inbound.path, inbound.method) {
        case ("/notify", .post): return HTTPOutbound(202, .json, try await notify(inbound))
        case ("/notify", _): throw .wrongMethod("POST")
        case (_, .get), (_, .head): return HTTPOutbound(200, .json, try await tell(inbound))
        default: throw .wrongMethod("GET, HEAD")
        }
    }

    private func check(_ inbound: HTTPInbound) throws(ApplicationRefusal) {
        guard inbound.headerCount("authorization") <= 1 else { throw .unauthorised }
        let field = inbound.header("authorization") ?? ""
        guard field.utf8.count > 7, field.prefix(7).lowercased() == "bearer ",
            Self.digest(of: Secret(field.utf8.dropFirst(7))) == token
        else { throw .unauthorised }
    }

    // MARK: Notifying

    private func notify(_ inbound: HTTPInbound) async throws(ApplicationRefusal) -> [UInt8] {
        let call = try ApplicationCall(inbound, Self.contentBytes, Self.keyBytes, Self.withdrawn)
        if let wait = pace.take() { throw .rateLimited(wait) }
        let record = call.key.map { self.record(of: $0, user: call.user) }
        // One key gives one id, so that an interrupted call is recognised when it is repeated.
        let id =
            record.map { $0.name.reveal { Hex.encode($0.prefix(16)) } } ?? Hex.encode(world.randomBytes(16))
        if let record, let stands = try await find(record) { return stands }
        let now = world.now()
        // The answer is stored under the key in the commit that owes the notification, so that a repeat gets
        // the same answer, and two calls at the same time make one notification.
        let devices = try await carryOut(call, id) { devices in
            guard let record else { return [] }
            let kept = Record(
                key: record, touchedAt: now, expiresAt: now + Self.keyLife,
                body: Secret(Self.body(id, devices)))
            return [.put(kept, if: .absent)]
        }
        if let devices { return Self.body(id, devices) }
        guard let record, let stands = try await find(record) else { throw .overloaded }
        return stands
    }

    private func carryOut(
        _ call: ApplicationCall, _ id: String, beside: @Sendable (Int) -> [Change]
    ) async throws(ApplicationRefusal) -> Int? {
        do throws(OriginError) {
            switch call.order {
            case .notify(let content):
                return try await origin.notify(call.user, id: id, content, beside: beside)
            case .withdraw(let ids):
                return try await origin.withdraw(call.user, ids, id: id, beside: beside)
            }
        } catch { throw ApplicationRefusal(error) }
    }

    private static func body(_ id: String, _ devices: Int) -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("id", id)
        writer.member("devices", Int64(devices))
        writer.endObject()
        return writer.bytes
    }

    // MARK: Repeats

    private func record(of key: String, user: String) -> RecordKey {
        RecordKey(Space(space.instance, "key"), Secret(SHA256.hash(Array("\(user)\n\(key)".utf8))))
    }

    private func find(_ key: RecordKey) async throws(ApplicationRefusal) -> [UInt8]? {
        do throws(StoreError) {
            return try await registry.find([key]).first??.body.reveal { Array($0) }
        } catch { throw .overloaded }
    }

    // MARK: Telling

    private func tell(_ inbound: HTTPInbound) async throws(ApplicationRefusal) -> [UInt8] {
        let found: [NotifiedDevice]?
        do throws(OriginError) {
            found = try await origin.devices(of: String(inbound.path.dropFirst("/notify/".count)))
        } catch { throw ApplicationRefusal(error) }
        guard let found else {
            throw ApplicationRefusal(404, "Nobody knows this notification, or a day has passed.")
        }
        return NotifiedDevice.json(found)
    }
}

extension NotifiedDevice {
    /// For each device the result of the notification: `waiting`, `accepted`, `dead` or `refused`; since
    /// when, in milliseconds of Unix time; why; and the reference under which the relay knows the push.
    ///
    /// - Parameter calls: the owed calls that it became, for operators.
    package static func json(_ devices: [NotifiedDevice], calls: [PushID]? = nil) -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        if let calls {
            writer.beginArray("calls")
            for call in calls { writer.string(call.text) }
            writer.endArray()
        }
        writer.beginArray("devices")
        for device in devices {
            writer.beginObject()
            for (name, value) in [("device", device.name), ("state", "\(device.state)")] {
                writer.key(name)
                writer.string(value)
            }
            writer.member("at", device.at.milliseconds)
            if !device.reason.isEmpty {
                writer.member("reason", device.reason)
            }
            if !device.reference.isEmpty {
                writer.member("reference", device.reference)
            }
            writer.endObject()
        }
        writer.endArray()
        writer.endObject()
        return writer.bytes
    }
}

/// A body of `POST /notify`, well-formed.
private struct ApplicationCall {
    enum Order {
        case notify(NotificationContent)
        case withdraw([String])
    }

    let user: String
    let order: Order
    let key: String?

    init(
        _ inbound: HTTPInbound, _ contentBytes: Int, _ keyBytes: Int, _ withdrawn: Int
    ) throws(ApplicationRefusal) {
        let parsed = inbound.withBody { bytes in
            // Every unreadable body gets the same answer.
            try? JSONValue.parse(bytes, limitBytes: 16 << 10, depthLimit: 4)
        }
        guard let body = parsed?.object else {
            throw ApplicationRefusal(400, "The body is no JSON object.")
        }
        guard let user = body["user"]?.string else {
            throw ApplicationRefusal(400, "The member user is missing.")
        }
        self.user = user
        if let member = body["key"] {
            guard let key = member.string, (1...keyBytes).contains(key.utf8.count) else {
                throw ApplicationRefusal(400, "A key is a text of 1 to \(keyBytes) bytes.")
            }
            self.key = key
        } else {
            key = nil
        }
        switch (body["content"], body["withdraw"]) {
        case (let content?, nil): order = .notify(try Self.content(content, contentBytes))
        case (nil, let ids?): order = .withdraw(try Self.ids(ids, withdrawn))
        default: throw ApplicationRefusal(400, "Say either content or withdraw.")
        }
    }

    private static func content(
        _ value: JSONValue, _ limit: Int
    ) throws(ApplicationRefusal) -> NotificationContent {
        let content = NotificationContent(
            text: value.string ?? value["text"]?.string ?? "", sender: value["sender"]?.string)
        guard (1...limit).contains(content.text.utf8.count), content.sender?.utf8.count ?? 0 <= 256,
            value["sender"] == nil || content.sender != nil
        else {
            throw ApplicationRefusal(
                400, "Content is a text of 1 to \(limit) bytes, or an object with text and sender.")
        }
        return content
    }

    private static func ids(_ value: JSONValue, _ limit: Int) throws(ApplicationRefusal) -> [String] {
        let ids = value.array?.compactMap(\.string) ?? []
        guard (1...limit).contains(ids.count), ids.count == value.array?.count,
            ids.allSatisfy({ $0.utf8.count == 32 && $0.allSatisfy(\.isHexDigit) })
        else { throw ApplicationRefusal(400, "Withdrawn are 1 to \(limit) ids of notifications.") }
        return ids
    }
}

private struct ApplicationRefusal: Error {
    let status: Int
    let sentence: String
    var headers: [(name: StaticString, value: String)] = []

    init(_ status: Int, _ sentence: String) {
        self.status = status
        self.sentence = sentence
    }

    init(_ error: OriginError) {
        switch error.code {
        case .overloaded, .damagedRecord: self = .overloaded
        case .rateLimited: self = .rateLimited(.seconds(1))
        case .unknownUser: self.init(404, error.sentence)
        case .tooMuchContent, .badName, .nameTaken, .unknownRealm, .tooManyRealms, .tooManyKeys,
            .realmInUse:
            self.init(400, error.sentence)
        }
    }

    static var unauthorised: ApplicationRefusal {
        var refusal = ApplicationRefusal(401, "A bearer token is needed here.")
        refusal.headers = [(name: "www-authenticate", value: "Bearer")]
        return refusal
    }

    static var overloaded: ApplicationRefusal {
        var refusal = ApplicationRefusal(503, "The server cannot take this now; try again later.")
        refusal.headers = [(name: "retry-after", value: "1")]
        return refusal
    }

    static func rateLimited(_ wait: Duration) -> ApplicationRefusal {
        var refusal = ApplicationRefusal(429, "More is asked for than origin.limits allows.")
        let seconds = max(1, (wait.wholeMilliseconds + 999) / 1_000)
        refusal.headers = [(name: "retry-after", value: String(seconds))]
        return refusal
    }

    static func wrongMethod(_ methods: String) -> ApplicationRefusal {
        var refusal = ApplicationRefusal(405, "This path knows \(methods).")
        refusal.headers = [(name: "allow", value: methods)]
        return refusal
    }

    var outbound: HTTPOutbound {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("error", sentence)
        writer.endObject()
        return HTTPOutbound(status, .json, writer.bytes, headers: headers)
    }
}

/// Limits calls a minute, of all applications together.
private final class Pace: Sendable {
    private let buckets: Mutex<RateBuckets<Int>>
    private let world: World

    init(_ perMinute: Int, _ world: World) {
        buckets = Mutex(RateBuckets(perMinute: perMinute, capacity: 1, start: world.instant()))
        self.world = world
    }

    /// - Returns: how long to wait; `nil`: not at all.
    func take() -> Duration? {
        let decision = buckets.withLock { $0.take(1, of: 0, now: world.instant()) }
        if case .refused(let wait) = decision { return wait }
        return nil
    }
}
