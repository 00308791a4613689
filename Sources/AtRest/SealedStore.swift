import Primitives
package import PushModel

/// `Registry` and `Outbox` over any engine: names become digests, bodies and messages are sealed, and nothing
/// that could speak goes further down (DESIGN §3).
package final class SealedStore: Sendable {
    let engine: any Engine
    let sealer: Sealer
    let digests: Digests
    let random: RandomStream
    let world: World
    let journal: Journal

    /// Opens the store: the sealed check values of all its keys must open.
    ///
    /// - Throws: `.wrongKey` when the key file is another one, or lacks a key that the store was sealed with.
    package init(
        engine: any Engine, keys: AtRestKeys, world: World, journal: Journal = .silent
    ) async throws(StoreError) {
        self.engine = engine
        self.world = world
        self.journal = journal
        random = RandomStream(world)
        sealer = Sealer(keys: keys, random: random)
        digests = Digests(lookup: keys.lookup)
        try await check(keys)
    }

    /// How far beyond the newest number of the file the store is asked for keys: a restored old key file is
    /// recognised unless more rotations than this lie between.
    private static let lookAhead: UInt32 = 8

    private func check(_ keys: AtRestKeys) async throws(StoreError) {
        let newest = keys.seal[0].number
        for number in 1...(newest + Self.lookAhead) {
            let name = "check/\(number)"
            guard let standing = try await engine.setting(name) else { continue }
            try verify(standing, name)
        }
        let name = "check/\(newest)"
        let value = digests.check
        let sealed = Array(name.utf8).withUnsafeBytes { associated in
            sealer.seal(atMost: value.count, with: associated) { out in
                out.copyBytes(from: value)
                return value.count
            }
        }
        try verify(try await engine.settle(setting: name, to: sealed), name)
    }

    private func verify(_ standing: [UInt8], _ name: String) throws(StoreError) {
        let result = Array(name.utf8).withUnsafeBytes { associated -> Bool in
            do {
                return try sealer.open(standing, with: associated) == Secret(digests.check)
            } catch {
                return false
            }
        }
        guard result else { throw StoreError(.wrongKey) }
    }
}
