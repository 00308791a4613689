package import PushModel
import Synchronization

/// The network between simulated Waku nodes: all others receive once what one of them publishes. It has a
/// store that keeps messages and that every node knows.
package final class WakuNetworkSimulator: Sendable {
    /// How many messages the store keeps; then the one with the oldest timestamp is dropped.
    package static let storedMessages = 50_000
    /// How many messages are recognised when they come again; nodes forget them after minutes.
    static let knownMessages = 100_000
    /// How far a message's date may be from the store's clock for it to be kept.
    package static let timestampVariance: Int64 = 20_000_000_000

    /// A stored message, and its place in the order of pages.
    struct Stored: Sendable {
        let message: SimulatedWakuMessage
        let pubsubTopic: String
        let hash: [UInt8]

        func comes(before other: Stored) -> Bool {
            (message.timestamp, hash.beginning) < (other.message.timestamp, other.hash.beginning)
        }
    }

    private struct State {
        var nodes: [ObjectIdentifier: WakuNodeHub] = [:]
        var stored: [Stored] = []
        var known: Set<[UInt8]> = []
        var published = 0
    }

    let world: World
    private let state = Mutex(State())
    private let readers = NoteReaders<SimulatedWakuMessage>(ahead: 65_536)

    package init(world: World = .live) { self.world = world }

    /// Messages that were new to the network.
    package var published: Int { state.withLock(\.published) }
    package var storedCount: Int { state.withLock(\.stored.count) }

    /// The clock's time in the form of messages.
    package var now: Int64 { world.now().milliseconds * 1_000_000 }

    func join(_ node: WakuNodeHub) { state.withLock { $0.nodes[ObjectIdentifier(node)] = node } }
    func leave(_ node: WakuNodeHub) { state.withLock { $0.nodes[ObjectIdentifier(node)] = nil } }

    /// Hands a message to every node that listens on the topic, and to the store if that accepts it.
    package func publish(_ message: SimulatedWakuMessage, on pubsubTopic: String) {
        let hash = message.hash(on: pubsubTopic)
        let nodes = state.withLock { state -> [WakuNodeHub]? in
            if state.known.count >= Self.knownMessages { state.known.removeAll() }
            guard state.known.insert(hash).inserted else { return nil }
            state.published += 1
            if !message.isEphemeral, abs(message.timestamp - now) <= Self.timestampVariance {
                Self.keep(Stored(message: message, pubsubTopic: pubsubTopic, hash: hash), &state)
            }
            return Array(state.nodes.values)
        }
        guard let nodes else { return }
        for node in nodes { node.hear(message, on: pubsubTopic) }
        readers.tell(message)
    }

    /// Messages that any node publishes from now on, each once.
    package func messages() -> AsyncStream<SimulatedWakuMessage> { readers.stream() }

    /// Puts a message into the store only, regardless of its date, like one that was published before anybody
    /// listened.
    package func archive(_ message: SimulatedWakuMessage, on pubsubTopic: String) {
        let stored = Stored(
            message: message, pubsubTopic: pubsubTopic, hash: message.hash(on: pubsubTopic))
        state.withLock { Self.keep(stored, &$0) }
    }

    /// Forgets everything stored, like a store that lost its disk.
    package func forget() { state.withLock { $0.stored = [] } }

    /// A page of the stored messages, in the order of timestamps.
    ///
    /// - Returns: `nil` if the cursor is not from this store.
    func page(_ query: WakuStoreQuery) -> (messages: [Stored], cursor: [UInt8]?)? {
        state.withLock { state -> ([Stored], [UInt8]?)? in
            var fitting = state.stored.filter { query.fits($0) }
            if !query.isAscending { fitting.reverse() }
            var start = 0
            if let cursor = query.cursor {
                guard let at = fitting.firstIndex(where: { $0.hash == cursor }) else { return nil }
                start = at + 1
            }
            let page = Array(fitting[start...].prefix(query.pageSize))
            return (page, start + page.count < fitting.count ? page.last?.hash : nil)
        }
    }

    private static func keep(_ stored: Stored, _ state: inout State) {
        guard !state.stored.contains(where: { $0.hash == stored.hash }) else { return }
        // Nearly always the newest.
        var at = state.stored.count
        while at > 0, stored.comes(before: state.stored[at - 1]) { at -= 1 }
        state.stored.insert(stored, at: at)
        if state.stored.count > storedMessages { state.stored.removeFirst() }
    }
}

/// A query to a store.
struct WakuStoreQuery: Sendable {
    var pubsubTopic: String?
    var contentTopics: Set<String> = []
    var start: Int64?
    var end: Int64?
    var cursor: [UInt8]?
    var isAscending = true
    var pageSize = 20
    var includesData = false

    func fits(_ stored: WakuNetworkSimulator.Stored) -> Bool {
        (pubsubTopic == nil || stored.pubsubTopic == pubsubTopic)
            && (contentTopics.isEmpty || contentTopics.contains(stored.message.contentTopic))
            && (start.map { stored.message.timestamp >= $0 } ?? true)
            && (end.map { stored.message.timestamp <= $0 } ?? true)
    }
}

extension [UInt8] {
    /// The first eight bytes of the hash, which order messages of one moment.
    fileprivate var beginning: UInt64 { prefix(8).reduce(0) { $0 << 8 | UInt64($1) } }
}
