import PushModel
import Synchronization
import WireFormats

/// How many registrations each server has, and each of its realms, as far as it was counted lately.
///
/// The store counts, and that is a walk over all of them; so it is asked once for many registrations, and
/// what is new since is added here. With several relays on a store each adds its own, so a bound may be
/// passed by ``ZulipBounds/newPerCount`` for each of them, and no more.
final class RegistrationCounts: Sendable {
    /// Servers remembered. When there are more, all are forgotten and counted again.
    private static let servers = 1_024
    /// After this time a count is made again.
    private static let life = Duration.seconds(600)
    /// A bound that is met is looked at again after so long: registrations may have gone.
    private static let patience = Duration.seconds(60)

    private struct Entry {
        var server: RecordTally
        var realms: [ZulipTenancy: RecordTally]
        var new = 0
        let countedAt: ContinuousClock.Instant
    }

    private let entries = Mutex<[UUIDText: Entry]>([:])
    private let bounds: ZulipBounds

    init(_ bounds: ZulipBounds) { self.bounds = bounds }

    /// The result for a new registration.
    enum Room { case uncounted, enough, none }

    /// Whether there is room for one more registration of so many bytes; where there is, it is counted.
    func take(_ bytes: Int, _ realm: ZulipTenancy, of server: UUIDText, at now: ContinuousClock.Instant)
        -> Room
    {
        entries.withLock { entries in
            guard var entry = entries[server], entry.new < bounds.newPerCount,
                now - entry.countedAt < Self.life
            else { return .uncounted }
            // A realm that has come since begins with nothing, as far as is known.
            let inRealm = entry.realms[realm] ?? .none
            let one = RecordTally(records: 1, bytes: bytes)
            let isWithin =
                (inRealm + one).isWithin(bounds.registrationsPerRealm, bounds.registrationBytesPerRealm)
                && (entry.server + one).isWithin(
                    bounds.registrationsPerServer, bounds.registrationBytesPerServer)
            guard isWithin else { return now - entry.countedAt < Self.patience ? .none : .uncounted }
            entry.new += 1
            entry.realms[realm] = inRealm + one
            entry.server = entry.server + one
            entries[server] = entry
            return .enough
        }
    }

    func note(
        _ realms: [ZulipTenancy: RecordTally], of server: UUIDText, at now: ContinuousClock.Instant
    ) {
        let all = realms.values.reduce(RecordTally.none, +)
        entries.withLock { entries in
            if entries.count >= Self.servers, entries[server] == nil { entries.removeAll() }
            entries[server] = Entry(server: all, realms: realms, countedAt: now)
        }
    }
}

extension RecordTally {
    fileprivate func isWithin(_ records: Int, _ bytes: Int) -> Bool {
        self.records <= records && self.bytes <= bytes
    }
}

extension ZulipRelay {
    /// Counts a new registration against the bounds of its realm and its server.
    ///
    /// - Parameter bytes: about what its record takes.
    /// - Throws: `.tooManyRegistrations`; `.overloaded` when the store is out.
    func takeRoom(_ bytes: Int, in realm: AuthorisedRealm) async throws(ZulipError) {
        let (tenancy, server) = (realm.realm.tenancy, realm.caller.server.id)
        var room = counts.take(bytes, tenancy, of: server, at: world.instant())
        if case .uncounted = room {
            counts.note(try await counted(server, with: tenancy), of: server, at: world.instant())
            room = counts.take(bytes, tenancy, of: server, at: world.instant())
        }
        // What has just been counted for nothing else is room for nothing.
        guard case .enough = room else { throw ZulipError(.tooManyRegistrations) }
    }

    private func counted(
        _ server: UUIDText, with tenancy: ZulipTenancy
    ) async throws(ZulipError) -> [ZulipTenancy: RecordTally] {
        do throws(StoreError) {
            let known = try await registry.realms(of: server, keys)
            let tenancies = Set(known.map(\.realm.tenancy)).union([tenancy])
            let owners = Array(tenancies)
            let tallies = try await registry.tally(owners.map { keys.devices(of: $0) }, weighing: true)
            return Dictionary(zip(owners, tallies), uniquingKeysWith: { first, _ in first })
        } catch {
            throw ZulipError(.overloaded)
        }
    }
}
