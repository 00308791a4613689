import AdminIngress
import HTTPIngress
import PushModel
import WireFormats

/// The operator's calls about origins, at the admin listener: `GET /origins` and
/// `/origins/invitations`, `POST /origins/invite`, `/origins/uninvite`, `/origins/suspend`, `/origins/resume`
/// and `/origins/quota` (docs/configuration.md).
///
/// Bodies are JSON objects of `instance` and `host` or `id`, for a quota also `pushes_per_minute`; answers
/// are JSON, and refusals one sentence.
struct OriginsDesk: Sendable {
    static let listPath = "/origins"
    static let invitationsPath = "/origins/invitations"
    static let invitePath = "/origins/invite"
    static let uninvitePath = "/origins/uninvite"
    static let suspendPath = "/origins/suspend"
    static let resumePath = "/origins/resume"
    static let quotaPath = "/origins/quota"
    /// Origins of one answer; more are asked for with `after`.
    static let pageRows = 500
    /// Pushes a minute, as `limits.pushes_per_minute` bounds them; 0 is no limit.
    static let quotas: ClosedRange<Int64> = 0...100_000_000

    private let instances: DeskInstances

    init(_ instances: DeskInstances) { self.instances = instances }

    var calls: [AdminCall] {
        [
            .desk(Self.listPath, takesBody: false, list),
            .desk(Self.invitationsPath, takesBody: false, invitations),
            .desk(Self.invitePath, takesBody: true, invite),
            .desk(Self.uninvitePath, takesBody: true, uninvite),
            .desk(Self.suspendPath, takesBody: true) { inbound throws(DeskRefusal) in
                try await set(suspended: true, inbound)
            },
            .desk(Self.resumePath, takesBody: true) { inbound throws(DeskRefusal) in
                try await set(suspended: false, inbound)
            },
            .desk(Self.quotaPath, takesBody: true, setQuota)
        ]
    }

    /// Query: as ``place(_:)`` reads it.
    private func list(_ inbound: HTTPInbound) async throws(DeskRefusal) -> [UInt8] {
        let (name, control, after) = try place(inbound)
        let page = try await stored { () throws(StoreError) in
            try await control.origins(after: after, limit: Self.pageRows)
        }
        return JSONWriter.object { json in
            json.member("instance", name.text)
            json.objects("origins", page.origins, Self.write)
            json.optional("next", page.next.map { String($0) })
        }
    }

    /// Query: as ``place(_:)`` reads it.
    private func invitations(_ inbound: HTTPInbound) async throws(DeskRefusal) -> [UInt8] {
        let (name, control, after) = try place(inbound)
        let page = try await stored { () throws(StoreError) in
            try await control.invitations(after: after, limit: Self.pageRows)
        }
        return JSONWriter.object { json in
            json.member("instance", name.text)
            json.objects("invitations", page.invitations) { invitation, json in
                json.member("host", invitation.host)
                json.member("expires_at", invitation.expiresAt.seconds)
            }
            json.optional("next", page.next.map { String($0) })
        }
    }

    /// The instance and the place in its list that a query names: `instance=NAME&after=REVISION`.
    private func place(
        _ inbound: HTTPInbound
    ) throws(DeskRefusal) -> (name: ConfiguredName, control: any OriginControl, after: UInt64) {
        let query = inbound.members
        let (name, control) = try instances.control(query["instance"])
        guard let after = UInt64(query["after"] ?? "0") else {
            throw .status(400, "after is the number that the answer before this one gave as next.")
        }
        return (name, control, after)
    }

    private static func write(_ origin: OriginFacts, _ json: inout JSONWriter) {
        json.member("id", origin.id.text)
        json.member("host", origin.host)
        json.member("contact", utf8: origin.contact)
        json.member("standing", origin.standing)
        json.member("seen_at", origin.seenAt.seconds)
        json.optional("pushes_per_minute", origin.quota.map { Int64($0) })
        json.counts(origin.counts)
    }

    private static let noHost = DeskRefusal.status(
        400, "This is no host name: a name alone, as chat.example.org, without https:// and without a path.")

    private func invite(_ inbound: HTTPInbound) async throws(DeskRefusal) -> [UInt8] {
        let (host, control) = try host(inbound)
        let end = try await stored { () throws(StoreError) in try await control.invite(host) }
        guard let end else { throw Self.noHost }
        return JSONWriter.object { json in
            json.member("host", Self.name(host))
            json.member("expires_at", end.seconds)
        }
    }

    private func uninvite(_ inbound: HTTPInbound) async throws(DeskRefusal) -> [UInt8] {
        let (host, control) = try host(inbound)
        let was = try await stored { () throws(StoreError) in try await control.uninvite(host) }
        guard let was else { throw Self.noHost }
        guard was else { throw .status(404, "This host name has no invitation; it may have used it.") }
        return JSONWriter.object { $0.member("host", Self.name(host)) }
    }

    /// What is invited of a host: its name. A server that comes again at another port is the same one.
    private static func name(_ host: String) -> String { host.prefix { $0 != ":" }.lowercased() }

    /// The host that a body names, signed up or not, and the origins of the instance that is meant.
    private func host(
        _ inbound: HTTPInbound
    ) throws(DeskRefusal) -> (host: String, control: any OriginControl) {
        let body = try inbound.object()
        let (_, control) = try instances.control(body["instance"]?.string)
        guard let host = body["host"]?.string else { throw .status(400, "host is missing.") }
        return (host, control)
    }

    /// A host name without port means every origin of that name.
    private func set(suspended: Bool, _ inbound: HTTPInbound) async throws(DeskRefusal) -> [UInt8] {
        let (ids, control) = try await instances.origins(inbound.object())
        for id in ids {
            try Self.check(
                try await stored { () throws(StoreError) in
                    try await control.set(suspended: suspended, id)
                })
        }
        return try await Self.answer(ids, control)
    }

    /// `pushes_per_minute` is a number, or `null` for the configuration's.
    private func setQuota(_ inbound: HTTPInbound) async throws(DeskRefusal) -> [UInt8] {
        let body = try inbound.object()
        let quota: Int?
        switch body["pushes_per_minute"] {
        case .null?: quota = nil
        case .number(let number)?:
            guard let value = number.int64, Self.quotas.contains(value) else {
                throw .status(400, "A quota is 0 to 100,000,000 pushes a minute; 0 is no limit.")
            }
            quota = Int(value)
        default: throw .status(400, "pushes_per_minute is a number, or null for the configuration's.")
        }
        let (id, control) = try await instances.origin(body)
        try Self.check(
            try await stored { () throws(StoreError) in try await control.set(quota: quota, id) })
        return try await Self.answer([id], control)
    }

    private static func check(_ change: OriginChange) throws(DeskRefusal) {
        switch change {
        case .done: return
        case .unknown: throw .status(404, "No origin of this id has signed up.")
        case .deactivated: throw .status(409, "This origin has ended its registration itself.")
        }
    }

    /// `{"id":…,"ids":[…],"hosts":[…]}`, so that anyone who named a host learns which origins it was, and
    /// anyone who named an id learns whose it is; `id` is the first.
    private static func answer(
        _ ids: [UUIDText], _ control: any OriginControl
    ) async throws(DeskRefusal) -> [UInt8] {
        let hosts = try await stored { () throws(StoreError) in
            var hosts: [String] = []
            for id in ids { hosts.append(try await control.host(of: id) ?? "") }
            return hosts
        }
        return JSONWriter.object { json in
            json.optional("id", ids.first?.text)
            json.beginArray("ids")
            for id in ids { json.string(id.text) }
            json.endArray()
            json.beginArray("hosts")
            for host in hosts { json.string(host) }
            json.endArray()
        }
    }
}
