import AdminIngress
import HTTPIngress
import PushModel
import WireFormats
import ZulipPush

/// The operator's calls about origins, at the admin door: `GET /origins`, `POST /origins/invite`,
/// `/origins/suspend` and `/origins/resume` (DESIGN §5).
///
/// Bodies are JSON objects of `instance` and `host` or `id`; answers are JSON, and refusals one sentence.
struct OriginsDesk: Sendable {
    static let listPath = "/origins"
    static let invitePath = "/origins/invite"
    static let suspendPath = "/origins/suspend"
    static let resumePath = "/origins/resume"
    /// Origins of one answer; more are asked for with `after`.
    static let pageRows = 500

    private let instances: [(name: ConfiguredName, servers: ZulipServers)]

    init(_ configuration: RelayConfiguration, _ registry: any Registry, world: World) {
        instances = configuration.instances.map { instance in
            switch instance.kind {
            case .zulip: (instance.name, ZulipServers(instance.name, registry, world: world))
            }
        }
    }

    var calls: [AdminCall] {
        [
            call(Self.listPath, changes: false) { desk, inbound throws(Refusal) in
                try await desk.list(inbound)
            },
            call(Self.invitePath, changes: true) { desk, inbound throws(Refusal) in
                try await desk.invite(inbound)
            },
            call(Self.suspendPath, changes: true) { desk, inbound throws(Refusal) in
                try await desk.set(suspended: true, inbound)
            },
            call(Self.resumePath, changes: true) { desk, inbound throws(Refusal) in
                try await desk.set(suspended: false, inbound)
            }
        ]
    }

    /// Why a call is not done.
    private enum Refusal: Error {
        case status(Int, StaticString)
        case store(StoreError)
    }

    private func call(
        _ path: String, changes: Bool,
        _ answer: @escaping @Sendable (OriginsDesk, HTTPInbound) async throws(Refusal) -> [UInt8]
    ) -> AdminCall {
        AdminCall(path, changes: changes) { inbound in
            do throws(Refusal) {
                return HTTPOutbound(200, .json, try await answer(self, inbound))
            } catch {
                switch error {
                case .status(let status, let sentence): return .text(status, "\(sentence)")
                case .store(let error): return .text(503, error.sentence).retrying(after: .seconds(1))
                }
            }
        }
    }

    // MARK: Calls

    /// Query: `instance=NAME&after=REVISION`.
    private func list(_ inbound: HTTPInbound) async throws(Refusal) -> [UInt8] {
        var query: [Substring: Substring] = [:]
        for pair in (inbound.query ?? "").split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            if parts.count == 2 { query[parts[0]] = parts[1] }
        }
        let (name, servers) = try instance(query["instance"].map(String.init))
        guard let after = UInt64(query["after"] ?? "0") else {
            throw .status(400, "after is the number that the answer before this one gave as next.")
        }
        let page: (servers: [ZulipServer], next: UInt64?)
        do throws(StoreError) {
            page = try await servers.page(after: after, limit: Self.pageRows)
        } catch { throw .store(error) }
        var json = JSONWriter(reserving: 160 * page.servers.count + 64)
        json.beginObject()
        json.key("instance")
        json.string(name.text)
        json.key("origins")
        json.beginArray()
        for server in page.servers { Self.write(server, &json) }
        json.endArray()
        json.key("next")
        if let next = page.next { json.string(String(next)) } else { json.null() }
        json.endObject()
        return json.bytes
    }

    private static func write(_ server: ZulipServer, _ json: inout JSONWriter) {
        json.beginObject()
        json.key("id")
        json.string(server.id.text)
        json.key("host")
        json.string(server.hostname)
        json.key("contact")
        server.mail.reveal { json.string(utf8: $0) }
        json.key("standing")
        switch server.standing {
        case .active: json.string("active")
        case .deactivated: json.string("deactivated")
        case .suspended: json.string("suspended")
        }
        json.endObject()
    }

    private func invite(_ inbound: HTTPInbound) async throws(Refusal) -> [UInt8] {
        let body = try body(inbound)
        let (_, servers) = try instance(body["instance"]?.string)
        guard let host = body["host"]?.string else { throw .status(400, "host is missing.") }
        let end: UnixTime?
        do throws(StoreError) { end = try await servers.invite(host) } catch { throw .store(error) }
        guard let end else { throw .status(400, "This is no host name.") }
        var json = JSONWriter()
        json.beginObject()
        json.key("expires_at")
        json.int(end.seconds)
        json.endObject()
        return json.bytes
    }

    private func set(suspended: Bool, _ inbound: HTTPInbound) async throws(Refusal) -> [UInt8] {
        let body = try body(inbound)
        let (_, servers) = try instance(body["instance"]?.string)
        guard let id = body["id"]?.string.flatMap({ UUIDText($0) }) else {
            throw .status(400, "id is the UUID of an origin, as the list gives it.")
        }
        let change: ZulipServers.Change
        do throws(StoreError) {
            change = try await servers.set(suspended: suspended, id)
        } catch { throw .store(error) }
        switch change {
        case .done: return Array("{}".utf8)
        case .unknown: throw .status(404, "No origin of this id has signed up.")
        case .deactivated: throw .status(409, "This origin has ended its registration itself.")
        }
    }

    // MARK: Parts

    /// The instance that is meant; where there is one alone, it need not be named.
    private func instance(
        _ name: String?
    ) throws(Refusal) -> (name: ConfiguredName, servers: ZulipServers) {
        guard let name else {
            guard instances.count == 1, let only = instances.first else {
                throw .status(400, "There are several instances; say which one.")
            }
            return only
        }
        guard let found = instances.first(where: { $0.name.text == name }) else {
            throw .status(404, "The configuration has no instance of that name.")
        }
        return found
    }

    private func body(_ inbound: HTTPInbound) throws(Refusal) -> JSONObject {
        let parsed = inbound.withBody { bytes in
            // Whatever cannot be read gets the same answer.
            try? JSONValue.parse(bytes, limitBytes: AdminCall.bodyLimitBytes, depthLimit: 4)
        }
        guard let object = parsed?.object else { throw .status(400, "The body is no JSON object.") }
        return object
    }
}
