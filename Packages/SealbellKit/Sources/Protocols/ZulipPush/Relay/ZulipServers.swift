package import PushModel
package import WireFormats

/// The servers of one instance, in the hands of the operator: who has signed up, who may, who is
/// suspended (`sealbell origins`). No peer reaches it.
package struct ZulipServers: Sendable {
    /// How often a change is tried again when the server's own calls write the same record in between.
    static let tries = 4

    private let instance: ConfiguredName
    let registry: any Registry
    let keys: ZulipRecordNames
    let world: World

    package init(_ instance: ConfiguredName, _ registry: any Registry, world: World) {
        self.instance = instance
        self.registry = registry
        keys = ZulipRecordNames(instance)
        self.world = world
    }

    /// Servers in the order in which their records were last written, after the given revision.
    ///
    /// - Returns: at most `limit`, and the revision to go on after; `nil` at the end.
    package func page(
        after revision: UInt64, limit: Int
    ) async throws(StoreError) -> (servers: [ZulipServer], next: UInt64?) {
        let records = try await registry.page(.space(keys.serverSpace), after: revision, limit: limit)
        return (
            records.compactMap { ZulipServer(body: $0.body) },
            records.count < limit ? nil : records.last?.revision
        )
    }

    /// How many have signed up, those that have ended their registration too.
    package func count() async throws(StoreError) -> Int {
        var count = 0
        var after: UInt64 = 0
        // Ends: the revisions rise, and the servers are finite.
        while true {
            let page = try await page(after: after, limit: 1_000)
            count += page.servers.count
            guard let next = page.next else { return count }
            after = next
        }
    }

    /// How many realms a server has: those that it reports, and those that it reports no longer.
    package func realms(of server: UUIDText) async throws(StoreError) -> (live: Int, dead: Int) {
        let realms = try await registry.realms(of: server, keys)
        let dead = realms.count { $0.realm.isLocallyDeleted }
        return (realms.count - dead, dead)
    }

    /// Whose a realm is.
    package struct RealmHolder: Sendable {
        package let realm: ZulipRealm
        /// `nil`: it was forgotten, and the realm is free for anyone who reports it.
        package let server: ZulipServer?
        /// When the server last reported it, or no longer did.
        package let since: UnixTime
    }

    /// `nil` for a realm that no server has reported.
    package func holder(ofRealm realm: UUIDText) async throws(StoreError) -> RealmHolder? {
        guard let record = try await registry.find([keys.realm(realm)])[0],
            let known = ZulipRealm(body: record.body)
        else { return nil }
        let server = try await registry.find([keys.server(known.server)])[0]
        return RealmHolder(
            realm: known, server: server.flatMap { ZulipServer(body: $0.body) }, since: record.touchedAt)
    }

    /// Suspends a server or lifts that. It keeps its host name, realms and devices; to the server itself it
    /// looks deactivated.
    ///
    /// - Throws: what the store says; `.unavailable` when the record never stood still.
    package func set(suspended: Bool, _ id: UUIDText) async throws(StoreError) -> OriginChange {
        try await change(id) { $0.standing = suspended ? .suspended : .active }
    }

    /// Gives a server a quota of its own. Its next call is measured by it.
    ///
    /// - Parameter quota: pushes a minute, 0 for no limit; `nil`: the instance's again.
    /// - Throws: what the store says; `.unavailable` when the record never stood still.
    package func set(quota: Int?, _ id: UUIDText) async throws(StoreError) -> OriginChange {
        try await change(id) { $0.quota = quota }
    }

    /// The server that has a host: the one of exactly that port, else the only one of that name. `nil` when
    /// there is none, when several have the name, or when the text is no host name.
    package func holder(of host: String) async throws(StoreError) -> UUIDText? {
        guard let name = ZulipHostname(Array(host.utf8)) else { return nil }
        if let exact = try await registry.find([keys.host(name)])[0]?.holder { return exact }
        let all = try await holders(ofName: host)
        return all.count == 1 ? all[0] : nil
    }

    /// The servers of a name, at whatever port; of a text with a port that one's.
    package func holders(ofName host: String) async throws(StoreError) -> [UUIDText] {
        guard let name = ZulipHostname(Array(host.utf8)) else { return [] }
        var holders = [try await registry.find([keys.host(name)])[0]?.holder].compactMap { $0 }
        guard name.text == name.name else { return holders }
        for holder in try await registry.holders(of: keys.name(name), limit: ZulipLimits.hostsPerName)
        where !holders.contains(holder) {
            holders.append(holder)
        }
        return holders
    }

    private func change(
        _ id: UUIDText, _ edit: (inout ZulipServer) -> Void
    ) async throws(StoreError) -> OriginChange {
        for _ in 0..<Self.tries {
            guard let record = try await registry.find([keys.server(id)])[0],
                var server = ZulipServer(body: record.body)
            else { return .unknown }
            guard server.standing != .deactivated else { return .deactivated }
            edit(&server)
            let put = server.record(keys, now: world.now())
            if try await registry.apply([.put(put, if: .revision(record.revision))]) == .committed {
                return .done
            }
        }
        throw StoreError(.unavailable)
    }

    /// Admits one sign-up of a host within ``ZulipLimits/invitationLife``.
    ///
    /// - Returns: the end of the invitation; `nil` when the text is no host name.
    package func invite(_ host: String) async throws(StoreError) -> UnixTime? {
        let now = world.now()
        guard let change = ZulipInvitation.change(host, instance: instance, now: now) else { return nil }
        _ = try await registry.apply([change])
        return now + ZulipLimits.invitationLife
    }
}
