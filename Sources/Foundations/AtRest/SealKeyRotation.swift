package import PushModel
import Synchronization

/// Brings a newer seal key of the file into use, and reseals the stored rows, while the relay serves.
///
/// Several relays may share the store. Each tells the others which keys it holds (``SealKeyHolder``), and
/// seals with the newest key that every living relay has told of: so no relay meets a row that it cannot
/// open. Once all of them seal with that key, the living relay with the lowest id goes through all rows, page
/// by page, and reseals those that an older key sealed, each only if it is unchanged. A crash loses only the
/// position: the next round skips what is done. When a round has found nothing more the old keys may go
/// (decision 0037).
package final class SealKeyRotation: Sendable {
    /// The parts of an engine that it needs beside the sealed store's own ports.
    package typealias Upkeep = StoredRows & StoreSettings & StoreResealing

    package struct Limits: Sendable {
        /// Rows read at once, and sealed anew in one commit: a few milliseconds of the store's time.
        package var page = 200
        /// The pause between two pages, so that others who wait for the store come first: at most 10,000 rows
        /// a second.
        package var pause: Duration = .milliseconds(20)
        /// How long after the last relay began to use the key a row under an older one may still be
        /// committed. The last round begins after it.
        package var settling: Duration = .seconds(20)

        /// Between two steps: how soon a changed key file, and what other relays tell, is seen.
        package var every: Duration = .seconds(5)

        package init() {}
    }

    package struct Progress: Sendable, Hashable {
        package enum Phase: String, Sendable, Hashable {
            /// The file has one seal key.
            case resting
            /// Not every living relay holds the new key, or uses it, yet.
            case waiting
            /// Rows are being sealed anew.
            case sealing
            /// Another relay on this store seals them anew.
            case elsewhere
            /// No row is left that an older key has sealed.
            case done
        }

        package var phase = Phase.resting
        /// Numbers of the file's keys, newest first.
        package var held: [UInt32] = []
        package var sealing: UInt32 = 0
        /// Relays that are waited for.
        package var missing = 0
        /// Of the round under way or, between two, of the last one.
        package var records = 0
        package var pushes = 0
        /// The part of the round's records that has been gone through, as their keys tell: 0 up to 1.
        package var share = 0.0
        /// Sealed anew since the start.
        package var renewed = 0
        /// Rows that do not open with the key that they name, or name one that the file does not have.
        package var unopened = 0
    }

    private struct State {
        var progress = Progress()
        /// Since when all living relays use the newest key, as far as this one has seen.
        var settledAt: ContinuousClock.Instant?
    }

    private let store: SealedStore
    private let upkeep: any Upkeep
    package let limits: Limits
    private let state = Mutex(State())

    package init(_ store: SealedStore, _ upkeep: any Upkeep, limits: Limits = Limits()) {
        self.store = store
        self.upkeep = upkeep
        self.limits = limits
    }

    /// As of ``AtRestKeys/storeName``.
    package var storeName: String { store.sealer.keys.storeName }

    package var progress: Progress {
        var progress = state.withLock(\.progress)
        progress.held = store.sealer.keys.seal.map(\.number)
        progress.sealing = store.sealer.sealing
        return progress
    }

    /// Takes over the keys of a changed file for opening; ``step()`` brings them into use for sealing.
    ///
    /// - Throws: `.wrongKey` when the file lacks a key that the store or this relay needs, or has another one
    ///   in its place; then nothing has changed.
    package func adopt(_ keys: AtRestKeys) async throws(StoreError) {
        let current = store.sealer.keys
        guard keys.lookup == current.lookup else { throw StoreError(.wrongKey) }
        for old in current.seal {
            let new = keys.sealKey(old.number)
            guard new.map({ $0 == old.key }) ?? (old.number != store.sealer.sealing) else {
                throw StoreError(.wrongKey)
            }
        }
        let candidate = Sealer(keys: keys, random: store.random)
        for (name, value) in try await upkeep.settings(StoreSetting.check) {
            try store.verify(value, name, candidate)
        }
        store.sealer.adopt(keys)
        state.withLock { $0.settledAt = nil }
        try await store.announce(upkeep, isStarting: false)
    }

    /// Returns the keys that may be removed: all older ones, once no row is left that they have sealed. From
    /// then on a start does not need them.
    ///
    /// - Returns: `nil` when it is too early.
    package func release() async throws(StoreError) -> [UInt32]? {
        let newest = store.sealer.keys.seal[0]
        let others = try await holders()
        guard store.sealer.sealing == newest.number,
            others.allSatisfy({ $0.map { $0.holds(newest) && $0.sealing == newest.number } ?? false }),
            try await isDone(newest)
        else { return nil }
        for name in try await upkeep.settings(StoreSetting.check).keys
        where name != "\(StoreSetting.check)\(newest.number)" {
            try await upkeep.put(setting: name, to: nil)
        }
        return store.sealer.keys.seal.dropFirst().map(\.number)
    }

    /// Takes back what was told to the others; at a graceful stop.
    package func farewell() async throws(StoreError) {
        try await upkeep.put(setting: SealKeyHolder.name(upkeep.owner), to: nil)
    }

    /// Goes as far as it can now; called every few seconds.
    ///
    /// - Throws: what the store throws; `.wrongKey` when another relay's file has another key of the newest
    ///   number. The next step begins where this one ended.
    package func step() async throws(StoreError) {
        try await store.announce(upkeep, isStarting: false)
        let newest = store.sealer.keys.seal[0]
        if store.sealer.sealing != newest.number, try await !begin(newest) { return }
        guard store.sealer.keys.seal.count > 1 else { return note { $0.phase = .resting } }
        if try await isDone(newest) { return note { $0.phase = .done } }
        let others = try await holders()
        let missing = others.count { $0?.sealing != newest.number }
        guard missing == 0 else {
            state.withLock { $0.settledAt = nil }
            return note { ($0.phase, $0.missing) = (.waiting, missing) }
        }
        let now = store.world.instant()
        let settledAt = state.withLock { state in
            state.settledAt = state.settledAt ?? now
            return state.settledAt ?? now
        }
        let isFirst = try await upkeep.livingOwners().allSatisfy { upkeep.owner.value < $0.value }
        guard isFirst else { return note { ($0.phase, $0.missing) = (.elsewhere, 0) } }
        note {
            ($0.phase, $0.missing, $0.records, $0.pushes, $0.unopened) = (.sealing, 0, 0, 0, 0)
            $0.share = 0
        }
        let found = try await round(newest.number)
        guard found == 0, now - settledAt >= limits.settling else { return }
        try await upkeep.put(setting: "\(StoreSetting.rotation)\(newest.number)", to: [])
        note { $0.phase = .done }
        store.journal.note("nothing is sealed with an older key", [.count: Int(newest.number)])
    }

    /// Uses a newer key when every living relay holds it; whether it does.
    private func begin(_ newest: AtRestKeys.SealKey) async throws(StoreError) -> Bool {
        for hasProof in [false, true] {
            // Looked at again after the proof is written: a relay that started in between has either seen the
            // proof, and then holds the key, or is seen here.
            let missing = try await holders().count { !($0?.holds(newest) ?? false) }
            guard missing == 0 else {
                note { ($0.phase, $0.missing) = (.waiting, missing) }
                return false
            }
            if !hasProof { try await store.prove(newest.number) }
        }
        guard store.sealer.use(newest.number) else { return false }
        try await store.announce(upkeep, isStarting: false)
        store.journal.note("a newer storage key is in use", [.count: Int(newest.number)])
        return true
    }

    /// What the other living relays have told, `nil` for one that has told nothing. Entries of dead relays
    /// are removed.
    private func holders() async throws(StoreError) -> [SealKeyHolder?] {
        let told = try await upkeep.settings(StoreSetting.holder)
        let living = try await upkeep.livingOwners()
        let kept = Set((living + [upkeep.owner]).map(SealKeyHolder.name))
        for name in told.keys where !kept.contains(name) { try await upkeep.put(setting: name, to: nil) }
        return living.map { told[SealKeyHolder.name($0)].flatMap { SealKeyHolder($0) } }
    }

    private func isDone(_ newest: AtRestKeys.SealKey) async throws(StoreError) -> Bool {
        try await store.settings.setting("\(StoreSetting.rotation)\(newest.number)") != nil
    }

    /// Goes through all rows once; how many an older key had sealed.
    private func round(_ number: UInt32) async throws(StoreError) -> Int {
        var found = 0
        var place: StoredPlace? = []
        // Ends: each page begins behind the last.
        while let after = place {
            let page = try await upkeep.records(after: after, limit: limits.page)
            note { progress in
                progress.records += page.rows.count
                progress.share = page.next == nil ? 1 : page.rows.last?.key.share ?? progress.share
                progress.unopened += page.unreadable.count
            }
            found += try await replace(page.rows.compactMap { renewed($0, number) })
            place = page.next
            guard await rest() else { return found + 1 }
        }
        place = []
        // Ends: as above; rows that come meanwhile are sealed with the new key.
        while let after = place {
            let page = try await upkeep.pushes(after: after, limit: limits.page)
            note { progress in
                progress.pushes += page.rows.count
                progress.unopened += page.unreadable.count
            }
            found += try await replace(page.rows.compactMap { renewed($0.push, number) })
            place = page.next
            guard await rest() else { return found + 1 }
        }
        return found
    }

    /// False when the relay stops: then the round is not complete.
    private func rest() async -> Bool {
        do { try await store.world.sleep(store.world.instant() + limits.pause) } catch { return false }
        return !Task.isCancelled
    }

    private func replace(_ rows: [Resealed]) async throws(StoreError) -> Int {
        guard !rows.isEmpty else { return 0 }
        let changed = try await upkeep.reseal(rows)
        note { $0.renewed += changed }
        return rows.count
    }

    /// `nil` for what needs nothing, or does not open.
    private func renewed(_ record: StoredRecord, _ number: UInt32) -> Resealed? {
        // An expired record has forgotten its body.
        guard !record.body.isEmpty else { return nil }
        return anew(record.body, number, SealedStore.place(of: record)).map { body in
            .record(record.key, revision: record.revision, body: body)
        }
    }

    private func renewed(_ push: StoredPush, _ number: UInt32) -> Resealed? {
        let place = SealedStore.withPlace(push) { Array($0) }
        return anew(push.sealed, number, place).map { sealed in
            .push(row: push.row, id: push.id, sealed: sealed)
        }
    }

    /// - Parameter place: what the column is bound to.
    private func anew(_ sealed: [UInt8], _ number: UInt32, _ place: [UInt8]) -> [UInt8]? {
        guard Sealer.number(of: sealed) != number else { return nil }
        // Counted: it does not open.
        if let renewed = place.withUnsafeBytes({ try? store.sealer.sealAnew(sealed, with: $0) }) {
            return renewed
        }
        note { $0.unopened += 1 }
        return nil
    }

    private func note(_ change: (inout Progress) -> Void) { state.withLock { change(&$0.progress) } }
}
