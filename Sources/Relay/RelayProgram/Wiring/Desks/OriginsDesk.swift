import AdminIngress
import HTTPIngress
import PushModel
import WireFormats

/// The operator's calls about origins, at the admin listener: `GET /origins`, `POST /origins/invite`,
/// `/origins/suspend`, `/origins/resume` and `/origins/quota` (docs/configuration.md).
///
/// Bodies are JSON objects of `instance` and `host` or `id`, for a quota also `pushes_per_minute`; answers
/// are JSON, and refusals one sentence.
struct OriginsDesk: Sendable {
    static let listPath = "/origins"
    static let invitePath = "/origins/invite"
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
            .desk(Self.listPath, changes: false, list), .desk(Self.invitePath, changes: true, invite),
            .desk(Self.suspendPath, changes: true) { inbound throws(DeskRefusal) in
                try await set(suspended: true, inbound)
            },
            .desk(Self.resumePath, changes: true) { inbound throws(DeskRefusal) in
                try await set(suspended: false, inbound)
            },
            .desk(Self.quotaPath, changes: true, setQuota)
        ]
    }

    /// Query: `instance=NAME&after=REVISION`.
    private func list(_ inbound: HTTPInbound) async throws(DeskRefusal) -> [UInt8] {
        let query = inbound.members
        let (name, control) = try instances.control(query["instance"])
        guard let after = UInt64(query["after"] ?? "0") else {
            throw .status(400, "after is the number that the answer before this one gave as next.")
        }
        let page = try await stored { () throws(StoreError) in
            try await control.origins(after: after, limit: Self.pageRows)
        }
        return JSONWriter.object { json in
            json.member("instance", name.text)
            json.objects("origins", page.origins, Self.write)
            json.optional("next", page.next.map { String($0) })
        }
    }

    private static func write(_ origin: OriginFacts, _ json: inout JSONWriter) {
        json.member("id", origin.id.text)
        json.member("host", origin.host)
        json.member("contact", utf8: origin.contact)
        json.member("standing", origin.standing)
        json.optional("pushes_per_minute", origin.quota.map { Int64($0) })
        json.counts(origin.counts)
    }

    private func invite(_ inbound: HTTPInbound) async throws(DeskRefusal) -> [UInt8] {
        let body = try inbound.object()
        let (_, control) = try instances.control(body["instance"]?.string)
        guard let host = body["host"]?.string else { throw .status(400, "host is missing.") }
        let end = try await stored { () throws(StoreError) in try await control.invite(host) }
        guard let end else { throw .status(400, "This is no host name.") }
        return JSONWriter.object { $0.member("expires_at", end.seconds) }
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
        return Self.answer(ids)
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
        return Self.answer([id])
    }

    private static func check(_ change: OriginChange) throws(DeskRefusal) {
        switch change {
        case .done: return
        case .unknown: throw .status(404, "No origin of this id has signed up.")
        case .deactivated: throw .status(409, "This origin has ended its registration itself.")
        }
    }

    /// `{"id":…,"ids":[…]}`, so that anyone who named a host learns which origins it was; `id` is the first.
    private static func answer(_ ids: [UUIDText]) -> [UInt8] {
        JSONWriter.object { json in
            json.optional("id", ids.first?.text)
            json.beginArray("ids")
            for id in ids { json.string(id.text) }
            json.endArray()
        }
    }
}
