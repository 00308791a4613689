package import PushModel
package import WireFormats

/// How many records of each kind were forgotten.
package struct ZulipForgotten: Sendable, Hashable {
    package var servers = 0
    package var hosts = 0
    package var realms = 0
    package var devices = 0

    package init() {}
}

/// Forgetting, in the hands of the operator. No peer reaches it.
extension ZulipServers {
    /// Records that one commit deletes at most: it holds the writer for some tens of milliseconds.
    package static let forgottenPerCommit = 10_000

    /// Forgets a server, its host name, its realms and their devices.
    ///
    /// In one commit. Where there are more devices than one commit takes, the server is suspended first and
    /// devices go in several; whatever ends it in between, the same call goes on where it ended.
    ///
    /// - Returns: `nil` when no server of that id has signed up.
    /// - Throws: what the store says; `.unavailable` when the record never stood still.
    package func forget(
        _ id: UUIDText, perCommit: Int = ZulipServers.forgottenPerCommit
    ) async throws(StoreError) -> ZulipForgotten? {
        var forgotten = ZulipForgotten()
        for _ in 0..<Self.tries {
            guard let record = try await registry.find([keys.server(id)])[0],
                let server = ZulipServer(body: record.body)
            else { return forgotten == ZulipForgotten() ? nil : forgotten }
            let realms = try await all(.owner(keys.server(id))) + all(.owner(keys.leaving(id)))
            let isDone = try await forget(server, record, realms, perCommit, &forgotten)
            guard isDone else { continue }
            // A registration that was judged before the server was gone may have been written behind our
            // list.
            forgotten.devices += try await forgetDevices(of: realms, perCommit)
            return forgotten
        }
        throw StoreError(.unavailable)
    }

    /// Forgets whose a realm is, and all its devices. Anyone who reports it next has it.
    ///
    /// The realm goes first: nothing can then be registered in it, and if this is interrupted, nobody can
    /// reach its devices.
    ///
    /// - Returns: `nil` when no server has reported it.
    /// - Throws: what the store says; `.unavailable` when the record never stood still.
    package func forgetRealm(
        _ realm: UUIDText, perCommit: Int = ZulipServers.forgottenPerCommit
    ) async throws(StoreError) -> ZulipForgotten? {
        for _ in 0..<Self.tries {
            guard let record = try await registry.find([keys.realm(realm)])[0] else { return nil }
            let delete = Change.delete(record.key, if: .revision(record.revision))
            guard try await registry.apply([delete]) == .committed else { continue }
            var forgotten = ZulipForgotten()
            forgotten.realms = 1
            forgotten.devices = try await forgetDevices(of: owner(ofDevices: record), perCommit)
            return forgotten
        }
        throw StoreError(.unavailable)
    }

    /// Forgets one device of a realm: the app registers it anew at its next start, if it is still there.
    ///
    /// - Returns: how many records went, 0 or 1.
    package func forgetDevice(_ realm: UUIDText, _ device: DeviceName) async throws(StoreError) -> Int {
        guard let record = try await record(realm, device) else { return 0 }
        _ = try await registry.apply([.delete(record.key, if: .any)])
        return 1
    }

    /// A device's registration; `nil` for one that is not registered, or in a realm that nobody has reported.
    package func record(_ realm: UUIDText, _ device: DeviceName) async throws(StoreError) -> Record? {
        let found = try await registry.find([keys.realm(realm)])[0]
        guard let known = found.flatMap({ ZulipRealm(body: $0.body) }) else { return nil }
        return try await registry.find([keys.device(known.tenancy, device)])[0]
    }

    /// How a device of a realm stands, as its server names it.
    package struct DeviceFacts: Sendable {
        /// Since when the push service has refused it; `nil`: it is live.
        package let expired: UnixTime?
        /// When it last registered.
        package let touchedAt: UnixTime
        /// When it will be collected, unless it registers again.
        package let ends: UnixTime
        /// `nil` of one that has expired: no more is known of it.
        package let kind: TokenKind?
        /// The APNs topic.
        package let appID: String?
    }

    /// `nil` for one that is not registered, or in a realm that nobody has reported.
    package func facts(
        ofDevice device: DeviceName, in realm: UUIDText
    ) async throws(StoreError) -> DeviceFacts? {
        guard let record = try await record(realm, device) else { return nil }
        let registration = ZulipRegistration(body: record.body)
        let expired: UnixTime? = if case .expired(let at) = record.state { at } else { nil }
        return DeviceFacts(
            expired: expired, touchedAt: record.touchedAt, ends: record.expiresAt, kind: registration?.kind,
            appID: registration?.appID)
    }

    /// The key under which all registrations of one address and app id are found.
    ///
    /// - Parameter appID: the bundle id that an Apple device registered with; `nil`: a device of FCM.
    package func address(_ token: Secret, appID: String?) -> RecordKey {
        keys.address(ZulipRegistration(kind: appID == nil ? .fcm : .apns, token: token, appID: appID))
    }

    /// The rooms of devices.
    package var registrationSpaces: [Space] { keys.registrationSpaces }

    // MARK: Parts

    /// False when the server's record was written meanwhile, and everything must be looked at anew.
    private func forget(
        _ server: ZulipServer, _ record: Record, _ realms: [Record], _ perCommit: Int,
        _ forgotten: inout ZulipForgotten
    ) async throws(StoreError) -> Bool {
        var devices: [RecordKey] = []
        for realm in realms {
            devices += try await all(.owner(owner(ofDevices: realm))).map(\.key)
            guard !devices.isEmpty, devices.count + realms.count + 5 > perCommit else { continue }
            // From here on nothing is added.
            _ = try await set(suspended: true, server.id)
            forgotten.devices += try await forgetDevices(of: realms, perCommit)
            return false
        }
        let hosts = try await hostChanges(server)
        // `Change` alone would be this type's own word for what came of one.
        var changes: [Change] = [.delete(record.key, if: .revision(record.revision))]
        changes += hosts
        changes.append(.delete(keys.oldKey(of: server.id, before: server.keyHash), if: .any))
        // As they were seen: another server may take a realm over once this one has deactivated itself.
        for realm in realms { changes.append(.delete(realm.key, if: .revision(realm.revision))) }
        for device in devices { changes.append(.delete(device, if: .any)) }
        guard try await registry.apply(changes) == .committed else { return false }
        forgotten.servers += 1
        forgotten.hosts += hosts.isEmpty ? 0 : 1
        forgotten.realms += realms.count { $0.key.space == keys.realmSpace }
        forgotten.devices += devices.count
        return true
    }

    /// The host and its name, where they are still this server's, with what hangs on them.
    private func hostChanges(_ server: ZulipServer) async throws(StoreError) -> [Change] {
        guard let host = ZulipHostname(Array(server.hostname.utf8)) else { return [] }
        let freed = try await registry.freed([keys.host(host), keys.name(host)], of: server.id)
        if freed.isEmpty { return [] }
        return freed + [.delete(keys.invitation(host), if: .any)]
    }

    /// What a server's records of realms, its own and those that others took over, have their devices under.
    private func owner(ofDevices realm: Record) -> RecordKey {
        ZulipRealm(body: realm.body).map { keys.devices(of: $0.tenancy) } ?? realm.key
    }

    private func forgetDevices(of realms: [Record], _ perCommit: Int) async throws(StoreError) -> Int {
        var count = 0
        for realm in realms { count += try await forgetDevices(of: owner(ofDevices: realm), perCommit) }
        return count
    }

    /// Expired ones too, in commits of so many.
    private func forgetDevices(of realm: RecordKey, _ perCommit: Int) async throws(StoreError) -> Int {
        var count = 0
        // Ends: each round removes what it counts.
        while true {
            let gone = try await registry.forget(owner: realm, limit: perCommit)
            count += gone
            if gone < perCommit { return count }
        }
    }

    private func all(_ index: RecordIndex) async throws(StoreError) -> [Record] {
        var records: [Record] = []
        var after: UInt64 = 0
        // Ends: the revisions rise, and the records of one owner are finite. A page may be short before the
        // end, because what has expired is counted and left out.
        while true {
            let page = try await registry.page(index, after: after, limit: Self.pageRows)
            records += page
            guard let last = page.last else { return records }
            after = last.revision
        }
    }

    /// So many that a page of nothing but expired records, which would look like the end, does not happen.
    private static let pageRows = 10_000
}
