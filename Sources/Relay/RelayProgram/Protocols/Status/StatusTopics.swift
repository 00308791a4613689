import PushModel
import Secp256k1Keys
import StatusPush
import Synchronization
import WakuIngress

/// Topics that are followed for people who have registered, at whatever process, and the keys that open what
/// comes there.
///
/// Which topics are followed is in memory, four bytes each (`FollowedTopics`); of their keys a few thousand
/// are (`TopicMemory`). A key is made once, when somebody registers, and its row is found by the topic: so a
/// message on a topic that is not followed costs a look-up in memory, one on a followed topic a row at most,
/// and none a key derivation.
final class StatusTopics: Sendable {
    let followed = FollowedTopics()
    private let names: StatusRecordNames
    private let registry: any Registry
    private let limits: StatusHostLimits
    private let world: World
    private let bell = Bell()
    private let memory: Mutex<TopicMemory>

    init(
        of identity: PublicPoint, _ names: StatusRecordNames, registry: any Registry,
        limits: StatusHostLimits,
        world: World
    ) {
        self.names = names
        self.registry = registry
        self.limits = limits
        self.world = world
        let own = WakuTopic.own(of: identity)
        memory = Mutex(TopicMemory(own: own, mostKeys: limits.keptKeys, keptFor: limits.keptFor))
        followed.follow(own)
    }

    /// Times that the store was asked for a topic's keys.
    var reads: Int { memory.withLock(\.reads) }
    /// Topics whose keys are in memory.
    var held: Int { memory.withLock(\.held) }

    /// Keys of whoever the topic is followed for; empty: nobody.
    func keys(of topic: UInt32) async throws(StoreError) -> [Secret] {
        let now = world.instant()
        let (kept, last) = memory.withLock { ($0.keys(of: topic, at: now), $0.last) }
        if let kept { return kept }
        let keys = try await names.topicKeys(sharing: topic, in: registry)
        memory.withLock { memory in
            if !memory.took(keys, of: topic, askedAfter: last, at: now) { followed.leave([topic]) }
        }
        return keys
    }

    // MARK: Following

    /// Somebody has registered here: rows are looked at at once.
    func ring() { bell.ring() }

    /// Looks for rows that another process has written, and lets go of keys of people about whom nobody asks
    /// any more.
    func look() {
        let now = world.instant()
        memory.withLock { $0.forget(at: now) }
        bell.ring()
    }

    /// Ends topics that are followed for nobody, a page at a time, from the first to the last and again.
    ///
    /// - Returns: `false`: the next page waits for the next sweep, since what is left behind costs a look-up
    ///   at most.
    func sweep(by relay: StatusRelay) async throws(StoreError) -> Bool {
        let after = memory.withLock(\.swept)
        let page = try await registry.page(names.followed, after: after, limit: limits.rowsPerPage)
        memory.withLock { $0.swept(upTo: page.last?.revision, isEnd: page.count < limits.rowsPerPage) }
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
            let last = memory.withLock(\.last)
            let records = try await registry.page(names.followed, after: last, limit: limits.rowsPerPage)
            let ids = records.compactMap { FollowedTopic($0)?.id }
            let isEnd = records.count < limits.rowsPerPage
            let isBeginning = memory.withLock { memory in
                followed.follow(ids)
                return memory.read(ids, upTo: records.last?.revision, isEnd: isEnd)
            }
            if isBeginning { followed.begin(with: []) }
            if isEnd { return }
        }
    }
}
