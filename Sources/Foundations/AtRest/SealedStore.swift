import Primitives
package import PushModel
import Synchronization

/// `Registry` and `Outbox` over any engine: names become digests, bodies and messages are sealed, and no
/// clear content goes further down (docs/architecture.md).
package final class SealedStore: Sendable {
    /// The engine, by the port that each part of this needs.
    let records: any StoredRecords
    let outbox: any StoredOutbox
    let owners: any StoredOwners
    let settings: any StoredSettings
    let sealer: Sealer
    let digests: Digests
    let random: RandomStream
    let world: World
    let journal: Journal
    /// What has become of pushes that do not open, until the store has recorded it.
    let broken = Mutex(BrokenPushes())
    /// The same of records.
    let brokenRecords = Mutex(BrokenRecords())
    /// Names of lanes as rows have them. Lanes come from the configuration: a handful, and of all that were
    /// ever configured 256 at most.
    private let lanes = Mutex<[LaneName: String]>([:])
    let doubted: DoubtedClock
    let services: PushServices
    package let news = RegistrationNews()

    /// How long a relay that starts counts as alive before its lease takes over.
    private static let startSpan = Duration.seconds(20)

    /// Opens the store: the sealed check values of all its keys must open. New rows are sealed with the
    /// newest key that the store knows; ``SealKeyRotation`` brings a newer key of the file into use.
    ///
    /// - Parameter services: whose messages are read; a push of another is set aside, as one that does not
    ///   open.
    /// - Parameter upkeep: the same engine, where other relays must learn which keys this one holds.
    /// - Throws: `.wrongKey` when the key file is another one, or lacks a key that the store was sealed with;
    ///   `.moved` and `.unfinished` when the store is the source of a copy, or half of its target.
    package init(
        engine: any Engine, keys: AtRestKeys, world: World, journal: Journal = .silent,
        services: PushServices = .standard, upkeep: (any StoredRows & StoreSettings)? = nil
    ) async throws(StoreError) {
        records = engine
        outbox = engine
        owners = engine
        settings = engine
        self.world = world
        self.journal = journal
        self.services = services
        random = RandomStream(world)
        sealer = Sealer(keys: keys, random: random)
        digests = Digests(lookup: keys.lookup)
        let last = try await engine.lastTime(.look)
        doubted = DoubtedClock(world, last: last) { step throws(StoreError) in
            try await engine.lastTime(step)
        }
        if let upkeep {
            // Told before anything is read: a process that begins to use a newer key, or to copy the store,
            // first writes that down and then looks which relays are there. So at least one of the two sees
            // the other.
            try await engine.renew(for: Self.startSpan)
            try await announce(upkeep, isStarting: true)
        }
        if try await settings.setting(StoreSetting.copiedTo) != nil { throw StoreError(.moved) }
        if try await settings.setting(StoreSetting.filledFrom) != nil { throw StoreError(.unfinished) }
        try await check(keys, upkeep)
        if let upkeep { try await announce(upkeep, isStarting: false) }
    }

    /// How far beyond the newest number of the file an engine is asked for keys that cannot list them.
    private static let lookAhead: UInt32 = 8

    private func check(_ keys: AtRestKeys, _ upkeep: (any StoredRows & StoreSettings)?)
        async throws(StoreError)
    {
        var known: UInt32?
        for (name, standing) in try await checks(keys, upkeep) {
            try verify(standing, name, sealer)
            guard let number = UInt32(name.dropFirst(StoreSetting.check.count)) else { continue }
            known = max(known ?? 0, number)
        }
        guard let known else {
            // An earlier build beside us asks for it, and would write addresses in another form without it.
            _ = try await settings.settle(setting: StoreSetting.form, to: [2])
            return try await prove(keys.seal[0].number)
        }
        guard sealer.use(known) else { throw StoreError(.wrongKey) }
    }

    private func checks(
        _ keys: AtRestKeys, _ upkeep: (any StoredRows & StoreSettings)?
    ) async throws(StoreError) -> [String: [UInt8]] {
        if let upkeep { return try await upkeep.settings(StoreSetting.check) }
        var found: [String: [UInt8]] = [:]
        for number in 1...(keys.seal[0].number + Self.lookAhead) {
            let name = "\(StoreSetting.check)\(number)"
            found[name] = try await settings.setting(name)
        }
        return found
    }

    /// Writes the check value of a key of the file, unless it exists; then it must open.
    ///
    /// - Throws: `.wrongKey` when another key of this number is known to the store.
    func prove(_ number: UInt32) async throws(StoreError) {
        let name = "\(StoreSetting.check)\(number)"
        let value = digests.check
        let sealed = Array(name.utf8).withUnsafeBytes { associated in
            sealer.seal(number, value, with: associated)
        }
        guard let sealed else { throw StoreError(.wrongKey) }
        try verify(try await settings.settle(setting: name, to: sealed), name, sealer)
    }

    func verify(_ standing: [UInt8], _ name: String, _ sealer: Sealer) throws(StoreError) {
        let result = Array(name.utf8).withUnsafeBytes { associated -> Bool in
            do {
                return try sealer.open(standing, with: associated) == Secret(digests.check)
            } catch {
                return false
            }
        }
        guard result else { throw StoreError(.wrongKey) }
    }

    /// The name of the row of a push that was sent under this name. Of a push without a row, and of one of an
    /// earlier version, it is the name itself.
    package func row(sentAs id: PushID) -> PushID { digests.row(sentAs: id) }

    func text(of lane: LaneName) -> String {
        lanes.withLock { lanes in
            if let text = lanes[lane] { return text }
            let text = lane.description
            if lanes.count >= 256 { lanes.removeAll() }
            lanes[lane] = text
            return text
        }
    }

    /// Tells the others on this store which keys this relay holds, if they have not been told.
    func announce(_ upkeep: any StoreSettings, isStarting: Bool) async throws(StoreError) {
        let name = SealKeyHolder.name(upkeep.owner)
        let value = SealKeyHolder(sealer, isStarting: isStarting).value
        if try await settings.setting(name) != value { try await upkeep.put(setting: name, to: value) }
    }
}
