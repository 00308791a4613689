import PushModel
import Secp256k1Keys
import StatusPush
import Synchronization
import WakuIngress

/// What opens a message, by its content topic: the server's own key, or keys of topics that are followed for
/// people who have registered.
///
/// Which topics are followed is in memory, four bytes each (`FollowedTopics`); of their keys a few thousand
/// are. A key is made once, when somebody registers, and its row is found by the topic: so a message on a
/// topic that is not followed costs a look-up in memory, one on a followed topic a row at most, and none a
/// key derivation.
final class StatusTopics: Sendable {
    private struct Kept {
        let keys: [Secret]
        let at: ContinuousClock.Instant
    }

    private struct State {
        /// Up to which revision rows have been read.
        var last: UInt64 = 0
        /// Whether all have been read once.
        var isWhole = false
        var kept: [UInt32: Kept] = [:]
        var reads = 0
        /// Up to which revision topics were looked through for those that are followed for nobody.
        var swept: UInt64 = 0
    }

    let identity: PublicPoint
    let followed = FollowedTopics()
    private let own: Set<UInt32>
    private let names: StatusKeys
    private let registry: any Registry
    private let limits: StatusHostLimits
    private let world: World
    private let bell = Bell()
    private let state = Mutex(State())

    init(
        of identity: PublicPoint, _ names: StatusKeys, registry: any Registry, limits: StatusHostLimits,
        world: World
    ) {
        self.identity = identity
        own = [WakuTopic.partitioned(of: identity).id, WakuTopic.personal(of: identity).id]
        self.names = names
        self.registry = registry
        self.limits = limits
        self.world = world
        followed.follow(own)
    }

    /// Times that the store was asked for a topic's keys.
    var reads: Int { state.withLock(\.reads) }
    /// Topics whose keys are in memory.
    var held: Int { state.withLock(\.kept.count) }

    /// Whether messages of the topic are sealed to the server's own key. Topics are shared: it may be
    /// followed for somebody as well.
    func isOwn(_ topic: UInt32) -> Bool { own.contains(topic) }

    /// Keys of whoever the topic is followed for; empty: nobody.
    func keys(of topic: UInt32) async throws(StoreError) -> [Secret] {
        let now = world.instant()
        let (kept, last) = state.withLock { state -> ([Secret]?, UInt64) in
            let kept = state.kept[topic].flatMap { now - $0.at < limits.keptFor ? $0.keys : nil }
            return (kept, state.last)
        }
        if let kept { return kept }
        let keys = try await read(topic)
        state.withLock { state in
            state.reads += 1
            // A row that was read meanwhile may say otherwise.
            guard state.last == last else { return }
            if keys.isEmpty, !own.contains(topic) {
                followed.leave([topic])
            } else {
                makeRoom(&state)
                state.kept[topic] = Kept(keys: keys, at: now)
            }
        }
        return keys
    }

    /// All keys of four bytes: chance gives two, and whoever looks for names with the same bytes as another's
    /// is not to hide that one behind them.
    private func read(_ topic: UInt32) async throws(StoreError) -> [Secret] {
        var (keys, last) = ([Secret](), UInt64(0))
        while keys.count < StatusLimits.sharedTopics {
            let page = try await registry.page(
                .owner(names.topics(sharing: topic)), after: last, limit: StatusLimits.sharedTopicsAtOnce)
            keys += page.compactMap { FollowedTopic($0)?.key }
            guard page.count == StatusLimits.sharedTopicsAtOnce, let end = page.last else { break }
            last = end.revision
        }
        return keys
    }

    /// The older half goes, so that looking for it costs little in the mean.
    private func makeRoom(_ state: inout State) {
        // Topics that many share count for as many.
        let count = state.kept.values.reduce(0) { $0 + max(1, $1.keys.count) }
        guard count >= limits.keptKeys, !state.kept.isEmpty else { return }
        let times = state.kept.values.map(\.at).sorted()
        let middle = times[times.count / 2]
        state.kept = state.kept.filter { $0.value.at > middle }
    }

    // MARK: Following

    /// Somebody has registered here: rows are looked at at once.
    func ring() { bell.ring() }

    /// Looks for rows that another process has written, and lets go of keys of people about whom nobody asks
    /// any more.
    func look() {
        let now = world.instant()
        state.withLock { state in
            state.kept = state.kept.filter { now - $0.value.at < limits.keptFor }
        }
        bell.ring()
    }

    /// Ends topics that are followed for nobody, a page at a time, from the first to the last and again.
    ///
    /// - Returns: `false`: the next page waits for the next sweep, since what is left behind costs a look-up
    ///   at most.
    func sweep(by relay: StatusRelay) async throws(StoreError) -> Bool {
        let after = state.withLock(\.swept)
        let page = try await registry.page(names.followed, after: after, limit: limits.rowsPerPage)
        state.withLock { $0.swept = page.count < limits.rowsPerPage ? 0 : page.last?.revision ?? 0 }
        let gone: [Change]
        // The role asks nobody but the store.
        do throws(StatusError) { gone = try await relay.unneeded(among: page) } catch {
            throw StoreError(.unavailable)
        }
        // Each by itself: one that is refused has met a registration.
        for change in gone { _ = try await registry.apply([change]) }
        return false
    }

    /// Follows what stands in the store, until cancelled.
    func follow() async {
        while !Task.isCancelled {
            do throws(StoreError) {
                try await readOn()
            } catch {
                // The sleep ends early only by cancellation, which ends the loop.
                do { try await world.sleep(world.instant() + limits.storeRest) } catch { return }
                continue
            }
            await bell.wait()
        }
    }

    /// A page at a time, so that others' reads come in between.
    private func readOn() async throws(StoreError) {
        while !Task.isCancelled {
            let last = state.withLock(\.last)
            let records = try await registry.page(names.followed, after: last, limit: limits.rowsPerPage)
            let ids = records.compactMap { FollowedTopic($0)?.id }
            let isEnd = records.count < limits.rowsPerPage
            let isBeginning = state.withLock { state in
                followed.follow(ids)
                for id in ids { state.kept[id] = nil }
                state.last = records.last?.revision ?? state.last
                defer { state.isWhole = state.isWhole || isEnd }
                return isEnd && !state.isWhole
            }
            if isBeginning { followed.begin(with: []) }
            if isEnd { return }
        }
    }
}
