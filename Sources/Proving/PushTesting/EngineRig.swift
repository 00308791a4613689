package import PushModel

/// How a conformance test opens an engine.
package struct EngineRig: Sendable {
    package var clock: ManualClock
    /// The share of the store that one app may fill; engines are opened with it. All of it, unless a rule
    /// says otherwise.
    package var share: AppShare
    /// Opens a new, empty store with a limit of `EngineConformance.rowBound` owed pushes.
    package var first: @Sendable (OwnerID) async throws -> any Engine
    /// Opens the same store for another owner. An engine for one process closes `earlier` first, as if its
    /// process had died.
    package var next: @Sendable (_ earlier: any Engine, OwnerID) async throws -> any Engine
    /// Whether `earlier` goes on working while `next` does.
    package var isShared: Bool

    package init(
        clock: ManualClock, share: AppShare, isShared: Bool,
        first: @escaping @Sendable (OwnerID) async throws -> any Engine,
        next: @escaping @Sendable (any Engine, OwnerID) async throws -> any Engine
    ) {
        self.clock = clock
        self.share = share
        self.isShared = isShared
        self.first = first
        self.next = next
    }
}

/// A way in which an engine broke a rule.
package struct ConformanceFault: Error, CustomStringConvertible {
    package let description: String
}

func expect(_ isTrue: Bool, _ sentence: String, line: UInt = #line) throws {
    if !isTrue { throw ConformanceFault(description: "\(sentence) (line \(line))") }
}

/// One rule that every engine keeps.
package struct ConformanceCase: Sendable, CustomStringConvertible {
    package let description: String
    package let run: @Sendable (EngineRig) async throws -> Void

    init(_ description: String, _ run: @escaping @Sendable (EngineRig) async throws -> Void) {
        self.description = description
        self.run = run
    }
}

/// Rows for tests.
enum Samples {
    static let ours = OwnerID(Digest16(high: 1, low: 1))
    static let theirs = OwnerID(Digest16(high: 2, low: 2))
    static let lane = "acme-chat/apns/production"

    /// Spread over all bits, as a keyed digest is.
    static func digest(_ number: UInt64) -> Digest16 {
        var random = SeededRandom(seed: number)
        return Digest16(high: random.next(), low: random.next())
    }

    static func record(
        _ key: UInt64, version: UInt64 = 0, touched: Int64 = 1000, expires: UnixTime = .distantFuture,
        owner: UInt64? = nil, address: UInt64? = nil
    ) -> StoredRecord {
        StoredRecord(
            key: digest(key), space: "main/device", owner: owner.map(digest),
            address: address.map(digest), version: version, state: .live,
            touchedAt: UnixTime(milliseconds: touched), expiresAt: expires, revision: 0,
            body: [UInt8](repeating: UInt8(truncatingIfNeeded: key), count: 40))
    }

    static func push(
        _ number: UInt64, _ rig: EngineRig, pushClass: PushClass = .normal, origin: UInt64 = 1,
        parked: Bool = false, mark: UInt64? = nil, dueIn: Duration = .zero
    ) -> StoredPush {
        let now = rig.clock.now
        return StoredPush(
            row: 0, id: PushID(digest(number &+ 1_000_000)), lane: lane, pushClass: pushClass,
            origin: digest(origin &+ 5000), record: nil, touchedAt: now, notBefore: now + dueIn,
            custodyEnds: now + .seconds(86_400), attempt: 0, epoch: 0, parked: parked,
            mark: mark.map { digest($0 &+ 9000) }, sealed: [UInt8](repeating: 7, count: 300))
    }

    static func step(
        _ push: StoredPush, _ admission: StoredAdmission, _ step: Settlement.Step,
        first: OutcomeKind? = .accepted
    ) throws -> StoredSettlement {
        guard case .owed(let row, let epoch) = admission else {
            throw ConformanceFault(description: "the push was not taken")
        }
        return StoredSettlement(
            row: row, id: push.id, epoch: epoch, mark: push.mark, step: step, first: first)
    }

    static func accept(
        _ pushes: [StoredPush], _ engine: any Engine, _ rig: EngineRig, changes: [StoredChange] = []
    ) async throws -> [StoredAdmission] {
        let answer = try await engine.accept(pushes, changes: changes, now: rig.clock.now)
        guard case .committed(let admissions) = answer, admissions.count == pushes.count else {
            throw ConformanceFault(description: "the call was refused, or answered another number of items")
        }
        return admissions
    }
}
