package import PushModel

/// Keys of followed topics that are in memory, and how far the rows of such topics were read: the state of
/// whoever follows them.
package struct TopicMemory: Sendable {
    private struct Kept {
        let keys: [Secret]
        let at: ContinuousClock.Instant
    }

    /// Up to which revision rows have been read.
    package private(set) var last: UInt64 = 0
    /// Up to which revision topics were looked through for those that are followed for nobody.
    package private(set) var swept: UInt64 = 0
    /// Times that the store was asked for a topic's keys.
    package private(set) var reads = 0
    private var isWhole = false
    private var kept: [UInt32: Kept] = [:]
    private let own: Set<UInt32>
    private let mostKeys: Int
    private let keptFor: Duration

    /// - Parameters:
    ///   - own: the server's topics, which are followed whoever has registered.
    ///   - mostKeys: that are in memory; a topic without one counts as one.
    ///   - keptFor: so long keys are in memory.
    package init(own: Set<UInt32>, mostKeys: Int, keptFor: Duration) {
        self.own = own
        self.mostKeys = mostKeys
        self.keptFor = keptFor
    }

    /// Topics whose keys are in memory.
    package var held: Int { kept.count }

    /// `nil`: the store has to be asked.
    package func keys(of topic: UInt32, at now: ContinuousClock.Instant) -> [Secret]? {
        kept[topic].flatMap { now - $0.at < keptFor ? $0.keys : nil }
    }

    /// The store has told keys.
    ///
    /// - Parameters:
    ///   - revision: ``last`` when it was asked. A row that was read since may say otherwise.
    ///   - now: when it was asked.
    /// - Returns: `false`: the topic is followed for nobody.
    package mutating func took(
        _ keys: [Secret], of topic: UInt32, askedAfter revision: UInt64, at now: ContinuousClock.Instant
    ) -> Bool {
        reads += 1
        guard last == revision else { return true }
        if keys.isEmpty, !own.contains(topic) { return false }
        makeRoom()
        kept[topic] = Kept(keys: keys, at: now)
        return true
    }

    /// The older half goes, so that looking for it costs little in the mean.
    private mutating func makeRoom() {
        // Topics that many share count for as many.
        let count = kept.values.reduce(0) { $0 + max(1, $1.keys.count) }
        guard count >= mostKeys, !kept.isEmpty else { return }
        let times = kept.values.map(\.at).sorted()
        let middle = times[times.count / 2]
        kept = kept.filter { $0.value.at > middle }
    }

    /// Lets go of keys of people about whom nobody asks any more.
    package mutating func forget(at now: ContinuousClock.Instant) {
        kept = kept.filter { now - $0.value.at < keptFor }
    }

    /// A page of rows was read on: their topics are followed from now on, with the keys that the store has.
    ///
    /// - Returns: whether now, for the first time, all were read.
    package mutating func read(_ ids: [UInt32], upTo revision: UInt64?, isEnd: Bool) -> Bool {
        for id in ids { kept[id] = nil }
        last = revision ?? last
        defer { isWhole = isWhole || isEnd }
        return isEnd && !isWhole
    }

    /// A page was looked through for those that are followed for nobody; behind the last one it begins anew.
    package mutating func swept(upTo revision: UInt64?, isEnd: Bool) { swept = isEnd ? 0 : revision ?? 0 }
}

extension StatusRecordNames {
    /// Keys of all followed topics that share four bytes: chance gives two, and whoever looks for names with
    /// the same bytes as another's is not to hide that one behind them.
    package func topicKeys(
        sharing id: UInt32, in registry: any Registry
    ) async throws(StoreError) -> [Secret] {
        var (keys, last) = ([Secret](), UInt64(0))
        while keys.count < StatusLimits.sharedTopics {
            let page = try await registry.page(
                .owner(topics(sharing: id)), after: last, limit: StatusLimits.sharedTopicsAtOnce)
            keys += page.compactMap { FollowedTopic($0)?.key }
            guard page.count == StatusLimits.sharedTopicsAtOnce, let end = page.last else { break }
            last = end.revision
        }
        return keys
    }
}
