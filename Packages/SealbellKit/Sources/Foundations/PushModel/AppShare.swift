import Synchronization

/// How much of an outbox's bounds one app may fill, in percent. Engines ask at each acceptance; a reload may
/// change it.
///
/// An app whose lanes are halted by its credential sends nothing and goes on taking pushes in. Without a
/// share of its own it would fill the outbox, and every other app's calls would find it full.
package final class AppShare: Sendable {
    /// The share of each app if there are several: two would have to be halted at once to leave no room for a
    /// third.
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

        mutating func add(rows: Int, bytes: Int) {
            self.rows = max(0, self.rows + rows)
            self.bytes = max(0, self.bytes + bytes)
        }

        func fits(_ more: Owed, rows: Int, bytes: Int) -> Bool {
            self.rows + more.rows <= rows && self.bytes + more.bytes <= bytes
        }
    }

    private var owed: [Owed] = []
    /// Places in `owed`, by app.
    private var apps: [String: Int] = [:]
    /// The same by lane, so that a push costs one look-up and no new text. As many as lanes were configured
    /// since the start.
    private var lanes: [String: Int] = [:]
    /// The lane of the last push: nearly always the next is of it too.
    private var last: (lane: String, place: Int)?

    package init() {}

    /// Counts rows in, or out with negative numbers.
    package mutating func add(_ lane: String, rows: Int, bytes: Int) {
        owed[place(of: lane)].add(rows: rows, bytes: bytes)
    }

    /// Whether none of the pushes' apps would then owe more than this.
    package func hasRoom(for pushes: [StoredPush], rows: Int, bytes: Int) -> Bool {
        guard let lane = pushes.first?.lane else { return true }
        // As nearly every call has it: no table is made for one app.
        if pushes.allSatisfy({ $0.lane == lane }) {
            let more = Owed(rows: pushes.count, bytes: pushes.reduce(0) { $0 + $1.sealed.count })
            let owed = known(lane).map { self.owed[$0] } ?? current(Self.app(lane))
            return owed.fits(more, rows: rows, bytes: bytes)
        }
        var after: [String: Owed] = [:]
        for push in pushes {
            after[Self.app(push.lane), default: Owed()].add(rows: 1, bytes: push.sealed.count)
        }
        return after.allSatisfy { current($0).fits($1, rows: rows, bytes: bytes) }
    }

    private func current(_ app: String) -> Owed { apps[app].map { owed[$0] } ?? Owed() }

    private func known(_ lane: String) -> Int? {
        if let last, last.lane == lane { return last.place }
        return lanes[lane]
    }

    private mutating func place(of lane: String) -> Int {
        if let last, last.lane == lane { return last.place }
        let place = found(lane)
        last = (lane, place)
        return place
    }

    private mutating func found(_ lane: String) -> Int {
        if let known = lanes[lane] { return known }
        let app = Self.app(lane)
        let place = apps[app] ?? owed.count
        if place == owed.count { owed.append(Owed()) }
        apps[app] = place
        lanes[lane] = place
        return place
    }

    private static func app(_ lane: String) -> String {
        // Rows of a lane that are set aside count for its app too.
        let lane = Aside.lane(lane) ?? lane
        return String(lane[..<(lane.firstIndex(of: "/") ?? lane.endIndex)])
    }
}
