import Synchronization

/// How much of an outbox's bounds one app may fill, in percent. Engines ask at each acceptance; a reload may
/// change it.
///
/// An app whose lanes are halted by its credential sends nothing and goes on taking pushes in. Without a
/// share of its own it would fill the outbox, and every other app's calls would find it full.
package final class AppShare: Sendable {
    /// What one of several apps may fill: two would have to stand still at once to leave no room for a third.
    package static let ofSeveral = 50
    private let value: Atomic<Int>

    /// - Parameter apps: how many are configured; one has everything.
    package init(apps: Int = 1) { value = Atomic(Self.percent(apps)) }

    package func set(apps: Int) { value.store(Self.percent(apps), ordering: .relaxed) }

    /// That share of a bound, rounded up.
    ///
    /// - Parameter among: how many processes divide it.
    package func of(_ bound: Int, among: Int = 1) -> Int {
        let percent = value.load(ordering: .relaxed)
        guard percent < 100 else { return bound }
        let part = 100 * max(1, among)
        return bound / part * percent + (bound % part * percent + part - 1) / part
    }

    private static func percent(_ apps: Int) -> Int { apps > 1 ? ofSeveral : 100 }
}

/// What each app owes, counted by an engine as it goes. Lanes are in their text form, `app/service/…`.
package struct OwedByApp: Sendable {
    private struct Owed: Sendable {
        var rows = 0
        var bytes = 0
    }

    private var apps: [Substring: Owed] = [:]

    package init() {}

    /// Counts rows in, or out with negative numbers.
    package mutating func add(_ lane: String, rows: Int, bytes: Int) {
        let app = Self.app(lane)
        var owed = apps[app] ?? Owed()
        owed.rows = max(0, owed.rows + rows)
        owed.bytes = max(0, owed.bytes + bytes)
        // Apps go with a reload; what they owed runs out.
        apps[app] = owed.rows == 0 ? nil : owed
    }

    /// Whether none of the pushes' apps would then owe more than this.
    package func hasRoom(for pushes: [StoredPush], rows: Int, bytes: Int) -> Bool {
        var after = OwedByApp()
        for push in pushes { after.add(push.lane, rows: 1, bytes: push.sealed.count) }
        return after.apps.allSatisfy { app, more in
            (apps[app]?.rows ?? 0) + more.rows <= rows && (apps[app]?.bytes ?? 0) + more.bytes <= bytes
        }
    }

    private static func app(_ lane: String) -> Substring {
        // What stands aside of a lane is its app's too.
        let lane = Aside.lane(lane) ?? lane
        // Not a piece of the lane's own storage, which it would keep.
        return Substring(String(lane[..<(lane.firstIndex(of: "/") ?? lane.endIndex)]))
    }
}
