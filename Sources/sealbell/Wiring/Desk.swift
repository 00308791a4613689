import AdminIngress
import HTTPIngress
import PushModel
import WireFormats
import ZulipPush

/// Why an operator's call is not done. One sentence of ours; nothing of the call is repeated.
enum DeskRefusal: Error {
    case status(Int, StaticString)
    case store(StoreError)

    var outbound: HTTPOutbound {
        switch self {
        case .status(let status, let sentence): .text(status, "\(sentence)")
        case .store(let error): .text(503, error.sentence).retrying(after: .seconds(1))
        }
    }
}

extension AdminCall {
    /// A call whose answer is JSON, or a refusal's sentence.
    static func desk(
        _ path: String, changes: Bool,
        _ answer: @escaping @Sendable (HTTPInbound) async throws(DeskRefusal) -> [UInt8]
    ) -> AdminCall {
        AdminCall(path, changes: changes) { inbound in
            do throws(DeskRefusal) {
                return HTTPOutbound(200, .json, try await answer(inbound))
            } catch {
                return error.outbound
            }
        }
    }
}

extension HTTPInbound {
    /// The members of a query; of two of one name the last counts.
    var members: [Substring: Substring] {
        var members: [Substring: Substring] = [:]
        for pair in (query ?? "").split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            if parts.count == 2 { members[parts[0]] = parts[1] }
        }
        return members
    }

    /// The body's JSON object. Its strings are `String`: not for a call that carries a token.
    func object() throws(DeskRefusal) -> JSONObject {
        let parsed = withBody { bytes in
            // Whatever cannot be read gets the same answer.
            try? JSONValue.parse(bytes, limitBytes: AdminCall.bodyLimitBytes, depthLimit: 4)
        }
        guard let object = parsed?.object else { throw .status(400, "The body is no JSON object.") }
        return object
    }
}

/// The instances of a configuration, as an operator's call names one.
struct DeskInstances: Sendable {
    typealias Instance = (name: ConfiguredName, servers: ZulipServers)

    private let instances: [Instance]

    init(_ configuration: RelayConfiguration, _ registry: any Registry, world: World) {
        instances = configuration.instances.compactMap { instance in
            switch instance.kind {
            case .zulip: (instance.name, ZulipServers(instance.name, registry, world: world))
            // Nobody signs up there.
            case .marmot: nil
            }
        }
    }

    /// Those of every instance.
    var servers: [ZulipServers] { instances.map(\.servers) }

    /// Some instance, for what is the same over all of them.
    var first: ZulipServers? { instances.first?.servers }

    /// The instance that is meant; where there is one alone, it need not be named.
    func instance(_ name: String?) throws(DeskRefusal) -> Instance {
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

    /// The origin that `id` or `host` of a body names, and its instance.
    func origin(
        _ body: JSONObject
    ) async throws(DeskRefusal) -> (id: UUIDText, servers: ZulipServers) {
        let (_, servers) = try instance(body["instance"]?.string)
        if let host = body["host"]?.string {
            let holder: UUIDText?
            do throws(StoreError) { holder = try await servers.holder(of: host) } catch {
                throw .store(error)
            }
            guard let holder else {
                throw .status(
                    404, "No origin of this host name has signed up, or several have at ports of their own.")
            }
            return (holder, servers)
        }
        guard let id = body["id"]?.string.flatMap({ UUIDText($0) }) else {
            throw .status(400, "An origin is named by the id or the host name that the list gives.")
        }
        return (id, servers)
    }

    /// All origins that `host` of a body names, at whatever port; or the one of `id`. Never none.
    func origins(
        _ body: JSONObject
    ) async throws(DeskRefusal) -> (ids: [UUIDText], servers: ZulipServers) {
        guard let host = body["host"]?.string else {
            let (id, servers) = try await origin(body)
            return ([id], servers)
        }
        let (_, servers) = try instance(body["instance"]?.string)
        let holders: [UUIDText]
        do throws(StoreError) { holders = try await servers.holders(ofName: host) } catch {
            throw .store(error)
        }
        guard !holders.isEmpty else { throw .status(404, "No origin of this host name has signed up.") }
        return (holders, servers)
    }
}
