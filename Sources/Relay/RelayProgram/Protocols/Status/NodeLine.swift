import PushModel
import StatusPush
import WakuIngress

/// A client's way to the network, over a node of its own: it publishes what a device or a sender has to say,
/// and brings it what comes, until nothing waits any more.
struct NodeLine: Sendable {
    private let calls: WakuCalls
    private let world: World
    private let patience: Duration

    /// Between two polls.
    private static let rest = Duration.milliseconds(100)
    /// How far back contact codes are looked for; a server is asked for what is older.
    private static let reach = Duration.seconds(600)
    /// Pages of that at most: as much as a busy network has in that time.
    private static let pages = 200

    init(node: WakuNode, web: any WebFetch, world: World, patience: Duration) {
        calls = WakuCalls(node: node, web: web)
        (self.world, self.patience) = (world, patience)
    }

    /// Begins to hear. What the node had heard before is passed over.
    func open() async throws(NodeFault) {
        do throws(NodeFault) { _ = try await calls.messages { _ in false } } catch {
            // Only a node that does not listen is told to: with each further time go-waku keeps every message
            // once more.
            guard case .status(404, _) = error else { throw error }
            try await calls.subscribe()
        }
    }

    func publish(_ message: WakuMessage) async throws(NodeFault) { try await calls.publish(message) }

    /// Tells servers until each of them has answered, and publishes the contact code.
    ///
    /// - Parameter isEnough: ends it before.
    /// - Returns: what the answers meant; servers that did not answer in time are left out.
    func settle(
        _ device: inout StatusDevice, until isEnough: ([StatusInstallation.Event]) -> Bool = { _ in false }
    ) async throws(NodeFault) -> [StatusInstallation.Event] {
        var events: [StatusInstallation.Event] = []
        let end = world.instant() + patience
        while true {
            let due = device.due(at: world.now())
            for call in due {
                // What it is to follow it hears below.
                if case .publish(let message) = call.way { try await calls.publish(message) }
                device.answered(.taken, to: call, at: world.now())
            }
            let isWaiting = device.servers.contains { $0.condition == .waiting }
            if due.isEmpty, !isWaiting || isEnough(events) { return events }
            for message in try await heard(device.topics) {
                if let event = device.heard(message, at: world.now()) { events.append(event) }
            }
            // One more round says what an answer made due.
            guard world.instant() < end, await rest() else { return events }
        }
    }

    /// Tells until what was to be told is settled.
    ///
    /// - Returns: what is settled in time.
    func settle(_ origin: inout StatusOrigin) async throws(NodeFault) -> [Settled] {
        let end = world.instant() + patience
        while true {
            for call in origin.due(at: world.now()) {
                switch call.way {
                case .publish(let message): try await calls.publish(message)
                case .history(let topic):
                    for message in try await history(of: topic) {
                        origin.answered(.waku(message), to: call, at: world.now())
                    }
                // What it is to follow it hears below; there are no others.
                case .follow, .http, .say, .hear, .event, .lookUp: break
                }
                origin.answered(.taken, to: call, at: world.now())
            }
            // Not before: what is due for others is not said twice.
            let settled = origin.takeSettled()
            if !settled.isEmpty { return settled }
            for message in try await heard(origin.topics) { origin.heard(message, at: world.now()) }
            guard world.instant() < end, await rest() else { return [] }
        }
    }

    private func heard(_ topics: [String]) async throws(NodeFault) -> [WakuMessage] {
        let ids = Set(topics.compactMap { WakuTopic.id(ofContentTopic: $0) })
        return try await calls.messages { ids.contains($0) }.messages.map(\.message)
    }

    /// Of a node without a store there is none.
    private func history(of topic: String) async throws(NodeFault) -> [WakuMessage] {
        guard let id = WakuTopic.id(ofContentTopic: topic) else { return [] }
        let now = world.now()
        let range = Self.nanoseconds(now - Self.reach)...Self.nanoseconds(now + Self.reach)
        var messages: [WakuMessage] = []
        var cursor: String?
        for _ in 0..<Self.pages {
            let page: NodePage
            do throws(NodeFault) {
                page = try await calls.history(range, cursor: cursor) { $0 == id }
            } catch {
                return messages
            }
            messages += page.batch.messages.map(\.message)
            guard let next = page.cursor else { return messages }
            cursor = next
        }
        return messages
    }

    private static func nanoseconds(_ time: UnixTime) -> Int64 {
        let (product, overflow) = time.milliseconds.multipliedReportingOverflow(by: 1_000_000)
        return overflow ? .max : product
    }

    /// False when the caller was cancelled.
    private func rest() async -> Bool {
        do {
            try await world.sleep(world.instant() + Self.rest)
            return true
        } catch { return false }
    }
}
