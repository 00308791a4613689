import PushModel
import Synchronization
import WireFormats

/// How often registrations used each of the relay's keys, by day (§14.15): who retires a key in use cuts off
/// every app that holds it.
///
/// The count stands in a record of its own for each key, day and process, and is written with the
/// registration that it counts. Two registrations that are committed in another order than they were judged
/// in leave it one too low until the next.
final class KeyUses: Sendable {
    private struct State {
        var process: [UInt8] = []
        var day: Int64 = 0
        var counts: [String: Int64] = [:]
    }

    private let state = Mutex(State())

    /// What a registration writes that uses a key now.
    func change(_ publicKey: String, _ keys: ZulipRecordNames, _ world: World) -> Change? {
        let now = world.now()
        guard let key = try? Base64.decode(publicKey) else { return nil }  // It is one of ours.
        let day = ZulipKeyUse.day(now)
        let (process, count) = state.withLock { state in
            if state.process.isEmpty { state.process = world.randomBytes(16) }
            // Yesterday's records stand.
            if state.day != day { (state.day, state.counts) = (day, [:]) }
            state.counts[publicKey, default: 0] += 1
            return (state.process, state.counts[publicKey] ?? 1)
        }
        var writer = BodyWriter(format: ZulipKeyUse.format)
        writer.int(day)
        writer.int(count)
        let record = Record(
            key: keys.keyUse(key, day: day, process: process), owner: keys.uses(of: key), touchedAt: now,
            expiresAt: UnixTime(seconds: (day + 1) * 86_400) + ZulipLimits.keyUsesKept,
            body: writer.take())
        return .put(record, if: .any)
    }
}

/// What is known of one of the relay's keys.
package struct ZulipKeyUse: Sendable {
    package let publicKey: String
    /// When a relay on this store first had it in its file; `nil`: none has begun with it.
    package let since: UnixTime?
    /// Registrations on each day that had any, oldest first; a day is its first moment in UTC.
    package let days: [(day: UnixTime, count: Int)]

    static let format: UInt8 = 1
    static func day(_ time: UnixTime) -> Int64 { time.seconds / 86_400 }

    /// Registrations within so many days up to now, today's too.
    package func count(within days: Int64, of now: UnixTime) -> Int {
        let first = UnixTime(seconds: (Self.day(now) - days) * 86_400)
        return self.days.reduce(0) { $0 + ($1.day >= first ? $1.count : 0) }
    }

    static func read(_ body: Secret) -> (day: Int64, count: Int64)? {
        body.reveal { bytes in
            guard var reader = BodyReader(bytes, format: format), let day = reader.int(),
                let count = reader.int(), reader.isAtEnd
            else { return nil }
            return (day, count)
        }
    }
}

extension ZulipServers {
    package func now() -> UnixTime { world.now() }

    /// Notes which keys stand in the file since now, and forgets those that do no longer.
    package func noteKeys(_ publicKeys: [String]) async throws(StoreError) {
        let known = try await registry.page(.space(keys.keySpace), after: 0, limit: Self.keysKept)
        let names = publicKeys.compactMap { try? Base64.decode($0) }.map { Secret($0) }
        var changes = known.filter { record in !names.contains { $0 == record.key.name } }.map {
            PushModel.Change.delete($0.key, if: .any)
        }
        let now = world.now()
        for name in names where !known.contains(where: { $0.key.name == name }) {
            let record = Record(key: keys.heldKey(name), touchedAt: now, body: Secret([1]))
            changes.append(.put(record, if: .any))
        }
        if !changes.isEmpty { _ = try await registry.apply(changes) }
    }

    /// Since when each key stands in the file, and how often registrations used it.
    package func uses(of publicKeys: [String]) async throws(StoreError) -> [ZulipKeyUse] {
        var uses: [ZulipKeyUse] = []
        for text in publicKeys {
            guard let key = try? Base64.decode(text) else { continue }  // The file's reader has checked it.
            let held = try await registry.find([keys.heldKey(Secret(key))])[0]
            var counts: [Int64: Int64] = [:]
            var after: UInt64 = 0
            // Ends: the revisions rise, and records go after 42 days.
            while true {
                let page = try await registry.page(
                    .owner(keys.uses(of: key)), after: after, limit: Self.keysKept)
                for use in page.compactMap({ ZulipKeyUse.read($0.body) }) {
                    counts[use.day] = (counts[use.day] ?? 0) &+ use.count
                }
                guard let last = page.last else { break }
                after = last.revision
            }
            let days = counts.sorted { $0.key < $1.key }.map {
                (UnixTime(seconds: $0.key * 86_400), Int(clamping: $0.value))
            }
            uses.append(ZulipKeyUse(publicKey: text, since: held?.touchedAt, days: days))
        }
        return uses
    }

    /// As many keys as a file may hold.
    private static let keysKept = 1_000
}
