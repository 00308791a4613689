import CoreMetrics
import Delivery
import PushModel
import Secp256k1Keys
import StatusPush
import Synchronization
import WakuIngress

/// What the node hands on, on its way into the relay, and what goes back. What is not for us, or wrong beyond
/// an answer, is counted and no more.
final class StatusPost: Sendable {
    /// The ingress holds the post, so the post does not hold the ingress.
    private struct Outlet: Sendable {
        weak var ingress: WakuIngress?
    }

    let name: ConfiguredName
    let reception: Reception<StatusRelay>
    let topics: StatusTopics
    private let share: StatusShare
    private let gateway: GorushGateway?
    private let registry: any Registry
    private let world: World
    private let metrics: any MetricsFactory
    private let outlet = Mutex(Outlet())
    private let gatewayFaults: Mutex<FaultRun>
    /// The gateway has taken a call since this post was made.
    private let gatewayTook = Atomic<Bool>(false)
    private let badTokens = Mutex(BadTokenTrust())
    /// When this process began to hear its node, in nanoseconds of Unix time as messages have it.
    private let heardSince: Int64

    init(
        _ reception: Reception<StatusRelay>, topics: StatusTopics, share: StatusShare,
        gateway: GorushGateway?, heardSince: UnixTime, on ground: HostingGround
    ) {
        self.heardSince = heardSince.milliseconds.multipliedReportingOverflow(by: 1_000_000).partialValue
        gatewayFaults = Mutex(FaultRun(ground.spans.statusHost.gatewayFaults))
        name = reception.instance
        self.reception = reception
        self.topics = topics
        self.share = share
        self.gateway = gateway
        registry = ground.registry
        world = ground.world
        metrics = ground.metrics
    }

    private var relay: StatusRelay { reception.role }

    /// What keeps a message in memory beside its payload while it waits.
    private static let messageBytes = 1_024

    /// Where answers are published.
    func publish(through ingress: WakuIngress) { outlet.withLock { $0.ingress = ingress } }

    /// Takes one message in, and answers it. When this returns, its pushes stand in the store, and the answer
    /// is on its way.
    var take: WakuIngress.Take { { arrival in await self.receive(arrival) } }

    /// What became of a message.
    private enum Taken {
        /// Nothing more is to be done with it, whoever hands it out again.
        case over(StatusReply?)
        /// Another process answers it, or the store was out: when it comes again it is looked at anew.
        case left
    }

    private func receive(_ arrival: WakuArrival) async -> Bool {
        switch await judge(arrival) {
        case .left: return false
        case .over(let reply):
            if let reply { await publish(reply) }
            return true
        }
    }

    /// One message after the other, so that no more than one is sealed at a time.
    private func publish(_ reply: StatusReply) async {
        for message in reply.messages(by: relay.identity) {
            guard let sealed = seal(message, of: reply), let ingress = outlet.withLock(\.ingress) else {
                return count("unanswered")
            }
            do throws(WakuError) { try await ingress.publish(sealed) } catch { return count("unanswered") }
        }
    }

    private func judge(_ arrival: WakuArrival) async -> Taken {
        let (message, topic) = (arrival.message, arrival.topic)
        guard share.falls(topic) else {
            count("elsewhere")
            return .left
        }
        do throws(StoreError) {
            guard let opened = try await open(message, topic),
                let inbound = read(opened, isStored: isStored(arrival))
            else { return .over(nil) }
            if case .query = inbound.body, isStale(arrival) {
                count("stale")
                return .over(nil)
            }
            let (reply, isTaken) = await judge(inbound, bytes: Self.messageBytes + message.payload.count)
            if case .registration = inbound.body { topics.ring() }
            guard isTaken || reply != nil else { return .left }
            return .over(await settled(reply))
        } catch {
            count("store-silent")
            return .left
        }
    }

    /// Whoever asked so long ago waits for no answer any more: a relay that starts has an hour of such
    /// queries from the store, each of which would be published to nobody. What comes live may have a clock
    /// that is far behind.
    private func isStale(_ arrival: WakuArrival) -> Bool {
        let sentAt = UnixTime(milliseconds: arrival.message.timestamp / 1_000_000)
        return arrival.source == .stored
            && world.now().since(sentAt) > StatusLimits.lateAnswer + WakuLimits.timestampSlack
    }

    /// Whether a message may be one that a relay before this one has taken already: it comes from the node's
    /// store, or the node kept it in its cache while nobody listened.
    private func isStored(_ arrival: WakuArrival) -> Bool {
        arrival.source == .stored || arrival.message.timestamp < heardSince
    }

    // MARK: Opening

    /// Topics are shared: that a message does not open is nothing out of the ordinary.
    private func open(
        _ message: WakuMessage, _ topic: UInt32
    ) async throws(StoreError) -> WakuPayload.Opened? {
        var fault = StatusError(.doesNotOpen)
        if topics.isOwn(topic) {
            do throws(StatusError) {
                return try WakuPayload.openAsymmetric(message.payload, with: relay.identity)
            } catch {
                fault = error
            }
        }
        let tries = StatusLimits.triedBytes / max(1, message.payload.count)
        for key in try await topics.keys(of: topic).prefix(tries) {
            do throws(StatusError) { return try WakuPayload.openSymmetric(message.payload, key: key) } catch {
                if error != StatusError(.doesNotOpen) { fault = error }
            }
        }
        count(fault.codeText)
        return nil
    }

    /// The message inside, if it is for a server.
    private func read(_ opened: WakuPayload.Opened, isStored: Bool) -> StatusInbound? {
        do throws(StatusError) {
            guard let wrapped = try Wrapping.unwrap(opened.data) else {
                count("foreign")
                return nil
            }
            let message = try MetadataMessage(
                reading: wrapped,
                fallback: relay.policy.compatibility == .statusGo ? opened.signer : nil)
            guard let inbound = try StatusInbound(message, isStored: isStored) else {
                count("foreign")
                return nil
            }
            return inbound
        } catch {
            count(error.codeText)
            return nil
        }
    }

    // MARK: Answering

    /// - Returns: what is answered, and whether the message is done with: not where the store was out.
    private func judge(_ inbound: StatusInbound, bytes: Int) async -> (reply: StatusReply?, isTaken: Bool) {
        do throws(StatusError) {
            // Whom a message comes from by the network nobody tells.
            let reply = try await reception.receive(inbound, from: ClientKey(0), bytes: bytes)
            count("taken")
            return (reply, true)
        } catch {
            count(error.codeText)
            return (relay.reply(to: inbound, refusing: error), !error.isOverloaded)
        }
    }

    /// The reply once the gateway has answered, where there is one.
    private func settled(_ reply: StatusReply?) async -> StatusReply? {
        guard let reply, let handover = reply.handover, let gateway else { return reply }
        let (failures, outcomes) = await gateway.send(handover.pushes)
        for outcome in outcomes { take(outcome) }
        let dead = dead(failures, among: handover.pushes)
        await end(dead.map { handover.pushes[$0] })
        if failures.failed.count == handover.pushes.count, dead.count < handover.pushes.count {
            // A store that fails here leaves the request remembered: a sender then asks with other bytes.
            _ = try? await registry.apply([handover.reopening])
        }
        return reply.settled(failed: failures.failed, dead: dead)
    }

    /// Ends registrations whose tokens are dead. Each for itself, since one that was renewed meanwhile stays,
    /// and all at once, so that they share commits: the sender waits.
    private func end(_ pushes: [GatewayHandover.Push]) async {
        let now = world.now()
        await withDiscardingTaskGroup { group in
            for push in pushes {
                // A store that fails here leaves it as it is; the next push ends it.
                group.addTask {
                    _ = try? await self.registry.apply([
                        .expire(push.record, at: now, if: push.isUnchanged)
                    ])
                }
            }
        }
    }

    /// Places of pushes whose token is dead, so that the registration ends as with a lane.
    private func dead(_ failures: GorushFailures, among pushes: [GatewayHandover.Push]) -> Set<Int> {
        badTokens.withLock { trust in
            let isProof = pushes.indices.contains { pushes[$0].isApple && !failures.failed.contains($0) }
            if isProof { trust.accepted() }
            return Set(
                failures.words.sorted { $0.key < $1.key }.filter { _, word in
                    word == .dead || trust.isBelieved()
                }.map(\.key))
        }
    }

    /// - Returns: `nil` for what no node carries, which is nothing that is made here.
    private func seal(_ message: Secret, of reply: StatusReply) -> WakuMessage? {
        guard message.count <= StatusLimits.carriedData else { return nil }
        // Deployed clients take nothing whose payload is unsigned.
        let payload = WakuPayload.sealAsymmetric(message, to: reply.recipient, signer: relay.identity, world)
        let (nanoseconds, overflow) = world.now().milliseconds.multipliedReportingOverflow(by: 1_000_000)
        return WakuMessage(
            payload: payload, contentTopic: reply.topic.contentTopic, timestamp: overflow ? 0 : nanoseconds)
    }

    // MARK: Counting

    private func count(_ outcome: String) {
        Counter(
            label: "sealbell_status_messages_total",
            dimensions: [("instance", name.text), ("outcome", outcome)], factory: metrics
        ).increment()
    }

    var hasGateway: Bool { gateway != nil }
    var gatewayHasTaken: Bool { gatewayTook.load(ordering: .relaxed) }

    /// Calls in a row that the gateway did not take; 0: too few to tell of.
    var gatewayFailures: Int { gatewayFaults.withLock { $0.told(at: world.instant()) } }

    private func take(_ outcome: GorushGateway.Outcome) {
        let now = world.instant()
        gatewayFaults.withLock { faults in
            switch outcome {
            // What it refuses are tokens, dead ones for the most part: it works.
            case .taken, .refused:
                faults.succeeded()
                gatewayTook.store(true, ordering: .relaxed)
            case .failed, .unreachable: faults.failed(at: now)
            }
        }
        Counter(
            label: "sealbell_status_gateway_calls_total",
            dimensions: [("instance", name.text), ("outcome", outcome.rawValue)], factory: metrics
        ).increment()
    }
}
