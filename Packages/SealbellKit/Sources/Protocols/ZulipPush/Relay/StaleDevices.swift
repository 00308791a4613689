import PushModel
import WireFormats

/// `push/e2ee/stale_devices` (§14.7): what a server's daily look asks for. A notification tells it only of
/// dead devices that somebody writes to.
extension ZulipRelay {
    /// Ids of one page that cost what a push does.
    private static let idsPerUnit = 100

    func staleDevices(_ form: StaleForm, _ credentials: ServerCredentials) async throws(ZulipError)
        -> ZulipVerdict
    {
        let found = try await find([serverKey(credentials), keys.realm(form.realm)])
        let realm = try await authorise(form.realm, credentials, found)
        let now = world.now()
        let index = RecordIndex.expired(
            owner: keys.devices(of: realm.realm.tenancy), by: now - ZulipLimits.staleAge)
        let page: [Record]
        do {
            // One more tells whether there are more.
            page = try await registry.page(index, after: UInt64(form.after), limit: form.limit + 1)
        } catch { throw ZulipError(.overloaded) }
        let ids = page.prefix(form.limit).map { Int64(clamping: $0.version) }
        var verdict = ZulipVerdict(
            changes: realm.caller.endings(keys, now: now),
            reply: .now(.stale(ids, next: page.count > form.limit ? ids.last : nil)),
            quota: realm.caller.server.quota)
        verdict.charge = OriginCharge(
            of: Secret(realm.caller.server.id.bytes), units: 1 + ids.count / Self.idsPerUnit)
        return verdict
    }
}
