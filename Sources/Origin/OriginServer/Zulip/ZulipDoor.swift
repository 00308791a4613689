package import HTTPIngress
import NIOCore
import Synchronization
package import PushModel
import WireFormats
import ZulipPush

/// An origin's door for Zulip's clients: registering phones, and events about them (§3, §14.4, §14.10).
package final class ZulipDoor: HTTPFace {
    package let name: ConfiguredName
    private let users: ZulipUsers
    private let notifier: ZulipNotifier
    package let challenge: HostChallenge
    private var context: ZulipOriginContext { users.context }
    private let legacy = Atomic<Int>(0)

    /// Plaintext registrations that were refused since the start.
    package var legacyRefused: Int { legacy.load(ordering: .relaxed) }

    package init(_ users: ZulipUsers, _ notifier: ZulipNotifier) {
        name = users.context.space.instance
        self.users = users
        self.notifier = notifier
        challenge = HostChallenge(users.context.world)
    }

    /// Paths beside those of ``OriginPath``, and how a route's tag tells them.
    private enum Place: String, CaseIterable {
        case settings = "/api/v1/server_settings"
        case register = "/api/v1/register"
        case events = "/api/v1/events"
        case me = "/api/v1/users/me"
    }

    package static let paths = Place.allCases.map(\.rawValue) + OriginPath.allCases.map(\.rawValue)

    package var routes: [HTTPRoute] {
        Self.paths.map { HTTPRoute(.exact($0), bodyLimitBytes: ZulipOriginLimits.formBodyBytes) }
            // What lies beside them gets this protocol's 404, not the server's.
            + [HTTPRoute(.prefix("/api/v1/"), bodyLimitBytes: ZulipOriginLimits.formBodyBytes)]
    }

    // MARK: Answers

    package func respond(to inbound: HTTPInbound) async -> HTTPOutbound {
        do throws(DoorRefusal) {
            return HTTPOutbound(200, .json, try await answer(inbound))
        } catch { return error.outbound }
    }

    package func refuse(_ refusal: IngressRefusal, tag: Int) -> HTTPOutbound {
        switch refusal {
        case .bodyTooLarge: DoorRefusal(413, "BAD_REQUEST", "The request is too large.").outbound
        case .notFound: DoorRefusal.unknownPath.outbound
        case .overloaded, .noAnswer: DoorRefusal.overloaded.outbound
        case .clientShare: DoorRefusal.rateLimited.outbound
        case .malformed, .headersTooLarge, .slowSender, .unsupportedVersion, .unsupportedTransferCoding,
            .unsupportedExpectation:
            plainRefusal(refusal)
        }
    }

    private func answer(_ inbound: HTTPInbound) async throws(DoorRefusal) -> [UInt8] {
        if let place = Place(rawValue: inbound.path) {
            switch (place, inbound.method) {
            case (.settings, .get), (.settings, .head): return try await settings(inbound)
            case (.register, .post):
                let user = try await user(inbound)
                return try await register(user, body(inbound))
            case (.events, .get):
                let user = try await user(inbound)
                return try await poll(user, Query(inbound.query))
            case (.events, .delete):
                let user = try await user(inbound)
                return try close(user, inbound)
            case (.me, .get), (.me, .head): return me(try await user(inbound))
            case (.settings, _), (.me, _): throw .wrongMethod("GET, HEAD")
            case (.register, _): throw .wrongMethod("POST")
            case (.events, _): throw .wrongMethod("GET, DELETE")
            }
        }
        if inbound.path.hasPrefix(ZulipTransfer.path) {
            guard inbound.method == .get || inbound.method == .head else { throw .wrongMethod("GET, HEAD") }
            guard let body = challenge.body(at: inbound.path) else { throw .noChallenge }
            return body
        }
        guard let path = OriginPath(rawValue: inbound.path) else { throw .unknownPath }
        guard inbound.method == .post || path.isLegacy && inbound.method == .delete else {
            throw .wrongMethod(path.isLegacy ? "POST, DELETE" : "POST")
        }
        let user = try await user(inbound)
        return try await call(path, user, body(inbound))
    }

    private func body(_ inbound: HTTPInbound) -> Secret { inbound.withBody { Secret(copying: $0) } }

    private func user(_ inbound: HTTPInbound) async throws(DoorRefusal) -> OriginUser {
        guard inbound.headerCount("authorization") <= 1 else { throw .malformedCredentials }
        guard let field = inbound.header("authorization") else { throw .noCredentials }
        guard let credentials = BasicCredentials(field) else { throw .malformedCredentials }
        let user: OriginUser?
        do throws(OriginError) { user = try await context.people.authenticate(credentials, .apiKey) } catch {
            throw .overloaded
        }
        guard let user else { throw .wrongCredentials }
        return user
    }

    // MARK: Calls

    private func facts(of realm: OriginRealm) -> OriginSettings {
        OriginSettings(
            version: users.settings.version, realmURL: realm.url, realmName: realm.name,
            hasRelay: context.origin() != nil, profiles: users.settings.profiles)
    }

    private func settings(_ inbound: HTTPInbound) async throws(DoorRefusal) -> [UInt8] {
        // Right behind a start.
        if context.people.realms.isEmpty {
            do throws(OriginError) { try await context.people.load() } catch { throw .overloaded }
        }
        guard let realm = context.people.realm(at: inbound.header("host")) else {
            throw DoorRefusal(404, "NONEXISTENT_SUBDOMAIN", "There is no organization here yet.")
        }
        return facts(of: realm).body()
    }

    /// Notifications name their user by the number.
    private func me(_ user: OriginUser) -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        for (name, text) in [("result", "success"), ("msg", "")] {
            writer.key(name)
            writer.string(text)
        }
        writer.member("user_id", user.id)
        writer.endObject()
        return writer.bytes
    }

    private func register(_ user: OriginUser, _ body: Secret) async throws(DoorRefusal) -> [UInt8] {
        let found: OriginRealm?
        do throws(OriginError) { found = try await context.people.find(realm: user.realm) } catch {
            throw .overloaded
        }
        guard let realm = found else { throw .overloaded }
        let form: OriginStateForm
        do throws(OriginRefusal) { form = try OriginStateForm(body) } catch { throw DoorRefusal(error) }
        let (facts, polls) = (facts(of: realm), users.polls)
        let requirement = EncryptionRequirement(
            serverRequires: users.settings.requiresEncryption, realmRequires: realm.requiresEncryption)
        do throws(ZulipUsersRefusal) {
            return try await users.change(
                user.name, realm: user.realm, id: user.id, { _ in ZulipStep() },
                behind: { registrations, _ in
                    let queue = polls.open(user.name, of: user.realm, types: form.events)
                    return registrations.body(
                        form, queue: queue, settings: facts, requirement: requirement)
                })
        } catch { throw DoorRefusal(error) }
    }

    private func poll(_ user: OriginUser, _ query: Query) async throws(DoorRefusal) -> [UInt8] {
        let (queue, last) = (try query.queue(), try query.lastEvent())
        let body: [UInt8]?
        do throws(OriginRefusal) {
            body = try await users.polls.poll(
                user.name, queue, after: last, blocks: query["dont_block"]?.lowercased() != "true")
        } catch { throw DoorRefusal(error) }
        guard let body else { throw .rateLimited }
        return body
    }

    private func close(_ user: OriginUser, _ inbound: HTTPInbound) throws(DoorRefusal) -> [UInt8] {
        // Clients send it in either place.
        let query = inbound.query.map { Query($0) } ?? Query(String(buffer: inbound.body))
        let queue = try query.queue()
        do throws(OriginRefusal) { try users.polls.close(user.name, queue) } catch {
            throw DoorRefusal(error)
        }
        return Array(#"{"result":"success","msg":""}"#.utf8)
    }

    private func call(
        _ path: OriginPath, _ user: OriginUser, _ body: Secret
    ) async throws(DoorRefusal) -> [UInt8] {
        if path.isLegacy { legacy.wrappingAdd(1, ordering: .relaxed) }
        let request: OriginRequest
        do throws(OriginRefusal) {
            request = try OriginRequest(path, body: body, hasRelay: context.origin() != nil)
        } catch { throw DoorRefusal(error) }
        if let profile = request.call.profile, !users.settings.profiles.contains(profile) {
            throw DoorRefusal(400, "BAD_REQUEST", "This server does not serve this kind of registration.")
        }
        do throws(ZulipUsersRefusal) {
            if case .test(let subject) = request.call {
                try await test(user, subject)
                return request.body(ZulipStep())
            }
            let world = context.world
            return try await users.change(
                user.name, realm: user.realm, id: user.id,
                { (registrations) throws(OriginRefusal) in
                    var generator = WorldGenerator(world: world)
                    return try registrations.receive(request.call, now: world.now(), using: &generator)
                }, behind: { _, step in request.body(step) })
        } catch { throw DoorRefusal(error) }
    }

    private func test(
        _ user: OriginUser, _ subject: ZulipQueueItem.Subject?
    ) async throws(ZulipUsersRefusal) {
        // Nobody to notify is refused there.
        _ = try await notifier.notify(
            user, id: Hex.encode(context.world.randomBytes(16)),
            .test(time: context.world.now().seconds), isTest: true, of: subject)
    }
}

extension OriginCall {
    /// The profile whose clients make this call; `nil`: all do.
    fileprivate var profile: ZulipProfile? {
        switch self {
        case .addDevice, .removeDevice, .registerDevice: .v12
        case .registerAccount(let form): form.profile
        case .forget, .test: nil
        }
    }
}

/// Parameters of `GET` and `DELETE /api/v1/events`.
private struct Query {
    private let form: Form?

    init(_ text: String?) {
        do throws(FormatError) { form = try Form.parse(Array((text ?? "").utf8)) } catch { form = nil }
    }

    subscript(_ name: String) -> String? { form?.text(name) }

    func queue() throws(DoorRefusal) -> String {
        guard let queue = self["queue_id"] else { throw .missing("queue_id") }
        // Some clients send it as JSON.
        return queue.hasPrefix("\"") && queue.hasSuffix("\"") ? String(queue.dropFirst().dropLast()) : queue
    }

    func lastEvent() throws(DoorRefusal) -> Int64 {
        guard let text = self["last_event_id"] else { throw .missing("last_event_id") }
        guard let last = Int64(text) else {
            throw DoorRefusal(400, "BAD_REQUEST", "Invalid `last_event_id`")
        }
        return last
    }
}
