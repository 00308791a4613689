package import PushModel
package import ZulipPush

/// One device of a user, as an operator sees it: without keys and tokens.
package struct RegistrationSummary: Sendable {
    /// `account 7`, `device 12`.
    package let device: String
    package let profile: ZulipProfile
    package let state: ZulipEvent.Status
    /// Why it failed.
    package let code: String?
    /// When its app called, while the relay has not answered.
    package let waitingSince: UnixTime?
    package let tries: Int
    /// The relay's public key to which its registration is sealed, while the relay has not answered: with the
    /// answer the server forgets it.
    package let bouncerKey: String?

    init(
        _ device: String, _ profile: ZulipProfile, _ state: ZulipEvent.Status, _ code: String?,
        _ item: ZulipQueueItem?
    ) {
        self.device = device
        self.profile = profile
        self.state = state
        self.code = code
        waitingSince = item?.calledAt
        tries = item?.tries ?? 0
        bouncerKey = item?.registration.bouncerKey
    }
}

/// The totals of all users' registrations.
package struct RegistrationTally: Sendable {
    package struct Group: Sendable, Hashable {
        package let profile: ZulipProfile
        package let state: ZulipEvent.Status
    }

    package var devices: [Group: Int] = [:]
    package var oldestWaiting: UnixTime?
    /// How many waiting registrations are sealed to each of the relay's public keys. Clients may name any
    /// key, so only the first ``keysCounted`` different ones are counted.
    package var waitingKeys: [String: Int] = [:]

    private static let keysCounted = 32

    mutating func add(_ rows: [RegistrationSummary]) {
        for row in rows {
            devices[Group(profile: row.profile, state: row.state), default: 0] += 1
            if let since = row.waitingSince { oldestWaiting = min(oldestWaiting ?? since, since) }
            if let key = row.bouncerKey, waitingKeys[key] != nil || waitingKeys.count < Self.keysCounted {
                waitingKeys[key, default: 0] += 1
            }
        }
    }
}

extension ZulipRegistrations {
    var summary: [RegistrationSummary] {
        let devices = devices.values.sorted { $0.id < $1.id }.map { row in
            let item = row.registration.flatMap { queue[$0] }
            // Its token died at its push service, and its app has not come back yet.
            let isDead = row.errorCode == nil && row.tokenID == nil && item == nil
            return RegistrationSummary(
                "device \(row.id)", .v12,
                row.errorCode != nil || isDead ? .failed : row.tokenID != nil ? .active : .pending,
                row.errorCode ?? (isDead ? "no token" : nil), item)
        }
        let accounts = accounts.values.sorted { $0.id < $1.id }.map { row in
            RegistrationSummary(
                "account \(row.id)", row.profile,
                row.errorCode != nil ? .failed : row.deviceID != nil ? .active : .pending,
                row.errorCode, row.registration.flatMap { queue[$0] })
        }
        return devices + accounts
    }
}

extension ZulipUsers {
    package func summary(of user: OriginUser) async throws(OriginError) -> [RegistrationSummary] {
        try await read(user.name, realm: user.realm, id: user.id).registrations.summary
    }

    /// Walks over all users.
    package func tally() async throws(OriginError) -> RegistrationTally {
        var tally = RegistrationTally()
        var after: UInt64 = 0
        while true {
            let page: [Record]
            do throws(StoreError) {
                page = try await context.registry.page(.space(key("").space), after: after, limit: 256)
            } catch { throw OriginError(error) }
            for record in page {
                if let (_, rows) = read(record, realm: "") { tally.add(rows.summary) }
            }
            guard page.count == 256, let last = page.last else { return tally }
            after = last.revision
        }
    }

    /// - Returns: whether it was there.
    package func drop(
        _ device: ZulipQueueItem.Subject, of user: OriginUser
    ) async throws(OriginError) -> Bool {
        let world = context.world
        do throws(ZulipUsersRefusal) {
            return try await change(
                user.name, realm: user.realm, id: user.id,
                { (registrations) throws(OriginRefusal) in
                    let call: OriginCall =
                        switch device {
                        case .account(let id): .forget(id)
                        case .device(let id): .removeDevice(id)
                        }
                    var generator = WorldGenerator(world: world)
                    return try registrations.receive(call, now: world.now(), using: &generator)
                }, behind: { _, step in !step.changes.isEmpty })
        } catch {
            switch error {
            case .origin(let error): throw error
            // A device that is not there.
            case .refused: return false
            }
        }
    }
}
