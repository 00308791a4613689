import PushModel
import WireFormats
import ZulipPush

/// The servers of a Zulip instance as origins.
struct ZulipOriginControl: OriginControl {
    private let servers: ZulipServers

    init(_ servers: ZulipServers) { self.servers = servers }

    func page(
        after revision: UInt64, limit: Int
    ) async throws(StoreError) -> (origins: [OriginFacts], next: UInt64?) {
        let page = try await servers.page(after: revision, limit: limit)
        var origins: [OriginFacts] = []
        for server in page.servers {
            let realms = try await servers.realms(of: server.id)
            origins.append(
                OriginFacts(
                    id: server.id.text, host: server.hostname, contact: server.mail,
                    standing: server.standing.ofOrigin, quota: server.quota,
                    counts: [("realms", realms.live), ("realms_deleted", realms.dead)]))
        }
        return (origins, page.next)
    }

    func count() async throws(StoreError) -> Int { try await servers.count() }
    func id(_ text: String) -> String? { UUIDText(text)?.text }

    func holder(of host: String) async throws(StoreError) -> String? {
        try await servers.holder(of: host)?.text
    }

    func holders(ofName host: String) async throws(StoreError) -> [String] {
        try await servers.holders(ofName: host).map(\.text)
    }

    func invite(_ host: String) async throws(StoreError) -> UnixTime? { try await servers.invite(host) }

    func set(suspended: Bool, _ id: String) async throws(StoreError) -> OriginChange {
        guard let id = UUIDText(id) else { return .unknown }
        return OriginChange(try await servers.set(suspended: suspended, id))
    }

    func set(quota: Int?, _ id: String) async throws(StoreError) -> OriginChange {
        guard let id = UUIDText(id) else { return .unknown }
        return OriginChange(try await servers.set(quota: quota, id))
    }

    func forget(_ id: String) async throws(StoreError) -> [NamedCount]? {
        guard let id = UUIDText(id), let forgotten = try await servers.forget(id) else { return nil }
        return [
            ("origins", forgotten.servers), ("hosts", forgotten.hosts), ("realms", forgotten.realms),
            ("devices", forgotten.devices)
        ]
    }
}

extension OriginChange {
    fileprivate init(_ change: ZulipServers.Change) {
        switch change {
        case .done: self = .done
        case .unknown: self = .unknown
        case .deactivated: self = .deactivated
        }
    }
}

extension ZulipServer.Standing {
    var ofOrigin: OriginFacts.Standing {
        switch self {
        case .active: .active
        case .deactivated: .deactivated
        case .suspended: .suspended
        }
    }
}
