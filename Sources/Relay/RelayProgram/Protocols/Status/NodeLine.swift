import PushModel
import SealbellKit
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
    func open() async throws(CommandFailure) {
        try await ask { () throws(NodeFault) in
            do throws(NodeFault) { _ = try await calls.messages { _ in false } } catch {
                // Only a node that does not listen is told to: with each further time go-waku keeps every
                // message once more.
                guard case .status(404, _) = error else { throw error }
                try await calls.subscribe()
            }
        }
    }

    private func ask<Found>(
        _ body: () async throws(NodeFault) -> Found
    ) async throws(CommandFailure) -> Found {
        do throws(NodeFault) { return try await body() } catch {
            throw CommandFailure(.unavailable, "The Waku node does not do what it is asked.")
        }
    }

    /// Carries out what a device or a sender has to say.
    func answers(to call: Call) async throws(CommandFailure) -> [CallAnswer] {
        switch call.way {
        case .publish(let message):
            try await ask { () throws(NodeFault) in try await calls.publish(message) }
            return [.taken]
        case .history(let topic): return await history(of: topic).map { .waku($0) } + [.taken]
        // What it is to follow it hears by `settle`; there are no others.
        case .follow, .http, .say, .hear, .event, .lookUp: return [.taken]
        }
    }

    /// Tells servers until each of them has answered, and publishes the contact code.
    ///
    /// - Parameter keep: writes what the device keeps.
    /// - Parameter isEnough: ends it before.
    /// - Returns: what the answers meant; servers that did not answer in time are left out.
    func settle(
        _ device: inout StatusDevice, keep: (Secret) throws(CommandFailure) -> Void = { _ in },
        until isEnough: ([StatusInstallation.Event]) -> Bool = { _ in false }
    ) async throws(CommandFailure) -> [StatusInstallation.Event] {
        var events: [StatusInstallation.Event] = []
        let phone = KitPhone(device, world)
        defer { device = phone.device }
        try await settle(phone, keep: keep) { device in
            !device.servers.contains { $0.condition == .waiting } || isEnough(events)
        } hear: { device, message in
            if let event = device.heard(message, at: world.now()) { events.append(event) }
        }
        return events
    }

    /// Tells until what was to be told is settled.
    ///
    /// - Returns: what is settled in time.
    func settle(_ origin: inout StatusOrigin) async throws(CommandFailure) -> [Settled] {
        var settled: [Settled] = []
        let phone = KitPhone(origin, world)
        defer { origin = phone.device }
        try await settle(phone, keep: { _ in }) { origin in
            settled = origin.takeSettled()
            return !settled.isEmpty
        } hear: { origin, message in
            origin.heard(message, at: world.now())
        }
        return settled
    }

    private func settle<Party: NodeTalker>(
        _ phone: KitPhone<Party>, keep: (Secret) throws(CommandFailure) -> Void,
        isOver: (inout Party) -> Bool, hear: (inout Party, WakuMessage) -> Void
    ) async throws(CommandFailure) {
        let end = world.instant() + patience
        while true {
            try await phone.work(keep: keep, send: answers)
            // Not before: what is due for others is not said twice.
            if isOver(&phone.device) { return }
            let ids = Set(phone.device.topics.compactMap { WakuTopic.id(ofContentTopic: $0) })
            let heard = try await ask { () throws(NodeFault) in
                try await calls.messages { ids.contains($0) }.messages
            }
            for one in heard { hear(&phone.device, one.message) }
            // One more round says what an answer made due.
            guard world.instant() < end, await rest() else { return }
        }
    }

    /// Of a node without a store there is none.
    private func history(of topic: String) async -> [WakuMessage] {
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

/// A party that hears topics.
private protocol NodeTalker: KitTalker { var topics: [String] { get } }

extension StatusDevice: NodeTalker {}
extension StatusOrigin: NodeTalker {}
