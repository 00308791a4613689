package import Dialling
import Foundation
package import PushModel
import ServiceLifecycle

/// The engine on a PostgreSQL database that any number of processes share (decision 0034).
///
/// A few connections, each owned by one thread. Calls wait in one queue, and the next free thread takes all
/// of one kind that fit into a statement: calls that arrive while one commit waits for the disk or a standby
/// form the next commit. A cancelled caller keeps waiting, because its write may be under way; every wait is
/// bounded by ``PostgresLimits``.
///
/// A lost connection is reported as `uncertain` when a commit had been sent, and as `unavailable` when
/// nothing can have been written.
package final class PostgresStore: Sendable {
    let core: PostgresCore
    /// False for a guest in a database without a store: every question fails.
    package let hasSchema: Bool

    /// Opens the database and brings its schema up to this program's.
    ///
    /// - Parameter owner: this process; until its lease ends, no other process takes what it accepts.
    /// - Parameter isGuest: the schema is looked at and left as it is.
    /// - Parameter dialling: how the names of hosts are looked up and their addresses are tried.
    /// - Throws: `.denied`, `.unavailable`, `.notDurable`, `.newerSchema`, `.halfMigrated`, `.corrupt`.
    package init(
        _ address: PostgresAddress, owner: OwnerID, limits: PostgresLimits = PostgresLimits(),
        synchronous: Synchronous = .full, world: World, journal: Journal = .silent,
        isGuest: Bool = false, dialling: DialOptions = DialOptions()
    ) async throws(StoreError) {
        let connector = PostgresConnector(
            address: address, limits: limits, purpose: isGuest ? .inspection : .engine(synchronous),
            dialling: dialling)
        core = PostgresCore(
            owner: owner.value, limits: limits, connector: connector, world: world, journal: journal)
        let opened = await Self.open(core, isGuest: isGuest)
        hasSchema = try opened.get()
        core.start()
    }

    deinit { core.queue.close() }

    /// On a thread of its own: opening waits, and may wait long.
    private static func open(_ core: PostgresCore, isGuest: Bool) async -> Result<Bool, StoreError> {
        await withCheckedContinuation { continuation in
            let thread = Thread {
                do throws(StoreError) {
                    let session = try core.connector.connectPatiently()
                    var isThere = true
                    do throws(PostgresFault) {
                        if isGuest {
                            isThere = try PostgresSchema.stands(session)
                        } else {
                            try PostgresSchema.migrate(session, limits: core.limits)
                        }
                        if isThere { try core.owners.recount(session) }
                    } catch {
                        throw error.error.code == .uncertain ? StoreError(.unavailable) : error.error
                    }
                    continuation.resume(returning: .success(isThere))
                } catch {
                    continuation.resume(returning: .failure(error))
                }
            }
            thread.name = "postgres"
            thread.stackSize = 1 << 20
            thread.start()
        }
    }

    /// Sweeps marks and dead owners, paces vacuums, and forgets what was deleted, until cancelled or stopped.
    package func run() async throws {
        await cancelWhenGracefulShutdown {
            var schedule = ForgettingSchedule(now: self.core.world.instant(), limits: self.core.limits)
            var pace = VacuumPace()
            while !Task.isCancelled {
                let now = self.core.world.instant()
                do { try await self.core.world.sleep(now + self.core.limits.sweepEvery) } catch { break }
                // An unreachable database is reported by the calls that need it; the next sweep does this
                // work.
                do { try await self.sweep() } catch { continue }
                await self.look(by: &pace)
                await self.forget(by: &schedule)
            }
        }
    }

    /// One look at the tables of pushes.
    func keepPace(_ pace: VacuumPace) async throws(StoreError) -> VacuumPace {
        try await core.single(.bulk) { [core] session throws(PostgresFault) in
            try VacuumPacing(limits: core.limits, journal: core.journal).look(by: pace, session)
        }
    }

    private func look(by pace: inout VacuumPace) async {
        do { pace = try await keepPace(pace) } catch {
            core.journal.note("vacuum not paced", [.code: ErrorCode(error)], level: .warning)
        }
    }

    private func forget(by schedule: inout ForgettingSchedule) async {
        let (deletions, began) = (core.counts.deletions, core.world.instant())
        guard let scope = schedule.due(deletions, now: began, limits: core.limits) else { return }
        var found: PostgresForgotten?
        do { found = try await forgetNow(records: scope == .everything) } catch {
            core.journal.note("deleted rows not forgotten", [.code: ErrorCode(error)], level: .warning)
        }
        if found == .tooLarge { core.journal.note("deleted rows not forgotten: a table is too large") }
        schedule.tried(
            found, deletions: deletions, began: began, now: core.world.instant(), limits: core.limits)
    }

    /// Rewrites small tables and advances the log, so that neither contains a deleted byte.
    @discardableResult
    package func forgetNow(records: Bool = true) async throws(StoreError) -> PostgresForgotten {
        try await core.single(.bulk) { [core] session throws(PostgresFault) in
            try PostgresForgetting(limits: core.limits).forget(records: records, session)
        }
    }

    /// Removes what no longer counts. Bounded: each round removes as much as it may, or is the last.
    package func sweep() async throws(StoreError) {
        let core = core
        while try await core.single(.bulk, core.sweeping.dropMarks) >= core.limits.marksPerSweep {
            if Task.isCancelled { return }
        }
        try await core.single(.bulk, core.sweeping.buryOwners)
    }

    /// Gives up the lease, so that what is still owed is free at once, and closes the connections.
    ///
    /// Operations after it fail as `unavailable`. It waits for those under way, as long as they may take.
    package func close() async {
        // If the database cannot be reached, the lease ends by itself.
        do { try await core.single(.lease, patience: core.limits.closing, core.owners.giveUp) } catch {
            core.journal.note("lease not given up", [.code: ErrorCode(error)], level: .warning)
        }
        core.queue.close()
        await core.untilEnded()
    }
}
