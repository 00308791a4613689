package import PushModel
import Synchronization

/// Rewrites addresses of registrations that an earlier version wrote, while the relay serves, so that
/// addresses at two instances do not look alike (decision 0107).
///
/// Several relays may share the store. Each tells the others that it knows both forms, and the form changes
/// once every living relay has told so. From then on the living relay with the lowest id goes through all
/// records, page by page, and changes each row only if it is unchanged. A crash loses only the position. When
/// a round has found nothing more, later starts do not look for the former form again.
package final class AddressMove: Sendable {
    private let store: SealedStore
    private let upkeep: any SealKeyRotation.Upkeep
    private let limits: SealKeyRotation.Limits
    /// Since when this relay has known that no relay of an earlier version is there.
    private let since = Mutex<ContinuousClock.Instant?>(nil)
    private let isTidy = Mutex(false)

    package init(
        _ store: SealedStore, _ upkeep: any SealKeyRotation.Upkeep,
        limits: SealKeyRotation.Limits = SealKeyRotation.Limits()
    ) {
        self.store = store
        self.upkeep = upkeep
        self.limits = limits
    }

    /// Whether no record has the former form any more.
    package var isDone: Bool { store.addressForm.withLock { $0 } == .own }

    /// Goes as far as it can now; called every few seconds.
    package func step() async throws(StoreError) {
        guard !isDone else { return try await tidy() }
        try await store.lookAtForm()
        let living = try await upkeep.livingOwners()
        switch store.addressForm.withLock({ $0 }) {
        case .own: return try await tidy()
        case .former:
            let told = try await upkeep.settings(StoreSetting.forms)
            guard living.allSatisfy({ told[AddressForm.name($0)] != nil }) else { return }
            _ = try await store.settings.settle(
                setting: StoreSetting.form, to: [AddressForm.moving.rawValue])
            try await store.lookAtForm()
        case .moving: break
        }
        let now = store.world.instant()
        let began = since.withLock { since in
            since = since ?? now
            return since ?? now
        }
        guard living.allSatisfy({ upkeep.owner.value < $0.value }), try await round() == 0 else { return }
        // Others learn of it with their next step, and until then may write records behind our position. If
        // we are alone on an engine that no other process opens, there is nobody to wait for.
        guard living.isEmpty || now - began >= limits.settling else { return }
        try await upkeep.put(setting: StoreSetting.form, to: [AddressForm.own.rawValue])
        try await store.lookAtForm()
        try await tidy()
        store.journal.note("addresses of registrations are named by instance")
    }

    /// Takes back what was told to the others; at a graceful stop.
    package func farewell() async throws(StoreError) {
        try await upkeep.put(setting: AddressForm.name(upkeep.owner), to: nil)
    }

    /// Removes what relays that are gone have told; once, because relays no longer tell it.
    private func tidy() async throws(StoreError) {
        guard !isTidy.withLock({ $0 }) else { return }
        let kept = Set((try await upkeep.livingOwners() + [upkeep.owner]).map(AddressForm.name))
        for name in try await upkeep.settings(StoreSetting.forms).keys where !kept.contains(name) {
            try await upkeep.put(setting: name, to: nil)
        }
        isTidy.withLock { $0 = true }
    }

    /// Goes through all records once; how many stood in the former form.
    private func round() async throws(StoreError) -> Int {
        var found = 0
        var place: StoredPlace? = []
        // Ends: each page begins behind the last.
        while let after = place {
            let page = try await upkeep.records(after: after, limit: limits.page)
            let rows = page.rows.compactMap { row -> Resealed? in
                guard let former = row.address, let moved = store.moved(row) else { return nil }
                return .address(moved, from: former)
            }
            if !rows.isEmpty { _ = try await upkeep.reseal(rows) }
            found += rows.count
            place = page.next
            guard place != nil else { return found }
            // A stop leaves the round unfinished.
            let next = store.world.instant() + limits.pause
            do { try await store.world.sleep(next) } catch { return found + 1 }
            guard !Task.isCancelled else { return found + 1 }
        }
        return found
    }
}
