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

    /// One that has signed up.
    package struct Listed: Sendable {
        package let server: ZulipServer
        /// When it last signed up, changed its form or reported its realms, which servers do hourly.
        package let seenAt: UnixTime
    }

    /// Servers in the order in which their records were last written, after the given revision.
    ///
    /// - Returns: at most `limit`, and the revision to go on after; `nil` at the end.
    package func page(
        after revision: UInt64, limit: Int
    ) async throws(StoreError) -> (servers: [Listed], next: UInt64?) {
        let records = try await registry.page(.space(keys.serverSpace), after: revision, limit: limit)
        return (
            records.compactMap { record in
                ZulipServer(body: record.body).map { Listed(server: $0, seenAt: record.touchedAt) }
            },
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

    /// What stands under a server.
    package struct Holdings: Sendable, Hashable {
        /// Realms that it reports.
        package let realms: Int
        /// Those that it reports no longer.
        package let deadRealms: Int
        /// Registrations in all of them, those that have ended and are not removed yet too.
        package let devices: Int

        package init(realms: Int, deadRealms: Int, devices: Int) {
            self.realms = realms
            self.deadRealms = deadRealms
            self.devices = devices
        }
    }

    package func holdings(of server: UUIDText) async throws(StoreError) -> Holdings {
        let realms = try await registry.realms(of: server, keys)
        let dead = realms.count { $0.realm.isLocallyDeleted }
        let tallies = try await registry.tally(
            realms.map { keys.devices(of: $0.realm.tenancy) }, weighing: false)
        return Holdings(
            realms: realms.count - dead, deadRealms: dead, devices: tallies.reduce(0) { $0 + $1.records })
    }

    /// The host name of a server; `nil` where none of that id has signed up, or it has left.
    package func host(of server: UUIDText) async throws(StoreError) -> String? {
        let record = try await registry.find([keys.server(server)])[0]
        let host = record.flatMap { ZulipServer(body: $0.body) }?.hostname
        return host?.isEmpty == false ? host : nil
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
            var put = server.record(keys, now: world.now())
            // The operator's word is none of the server's: it was last seen when it was.
            put.touchedAt = record.touchedAt
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

    /// Invitations that nobody has used and that have not ended, in the order in which they were written,
    /// after the given revision.
    ///
    /// - Returns: at most `limit`, and the revision to go on after; `nil` at the end.
    package func invitations(
        after revision: UInt64, limit: Int
    ) async throws(StoreError) -> (invitations: [OriginInvitation], next: UInt64?) {
        let records = try await registry.page(.space(keys.invitationSpace), after: revision, limit: limit)
        let now = world.now()
        return (
            records.filter { $0.expiresAt > now }.map(ZulipInvitation.read),
            records.count < limit ? nil : records.last?.revision
        )
    }

    /// Takes an invitation back.
    ///
    /// - Returns: whether there was one; `nil` when the text is no host name.
    package func uninvite(_ host: String) async throws(StoreError) -> Bool? {
        guard let name = ZulipHostname(Array(host.utf8)) else { return nil }
        let key = keys.invitation(name)
        guard try await registry.find([key])[0] != nil else { return false }
        _ = try await registry.apply([.delete(key, if: .any)])
        return true
    }
}
