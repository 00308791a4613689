import Delivery
import PushModel
import StatusPush
import WakuIngress

/// What the node hands on, on its way into the relay, and what goes back: takes the steps of each message's
/// conversation, and counts what they say.
final class StatusPost: Sendable {
    private typealias Step = StatusConversation.Step

    private let conversation: StatusConversation
    private let reception: Reception<StatusRelay>
    private let topics: StatusTopics
    private let share: StatusShare
    private let gateway: GorushGateway?
    private let outlet: WakuOutlet
    private let registry: any Registry
    private let world: World
    private let outcomes: WordMeter
    private let reportWithin: Duration

    /// - Parameter outlet: where answers are published.
    init(
        _ conversation: StatusConversation, _ reception: Reception<StatusRelay>, topics: StatusTopics,
        share: StatusShare, gateway: GorushGateway?, outlet: WakuOutlet, on context: HostingContext
    ) {
        self.conversation = conversation
        self.reception = reception
        self.topics = topics
        self.share = share
        self.gateway = gateway
        self.outlet = outlet
        registry = context.registry
        world = context.world
        outcomes = WordMeter(
            "sealbell_status_messages_total", by: "outcome", of: reception.instance, context.metrics)
        reportWithin = context.spans.statusHost.report
    }

    /// Takes one message in, and answers it. When this returns, its pushes stand in the store, and the answer
    /// is on its way.
    var take: WakuIngress.Take { { arrival in await self.receive(arrival) } }

    private func receive(_ arrival: WakuArrival) async -> Bool {
        var step = conversation.begin(
            arrival.message, on: arrival.topic, isFromStore: arrival.source == .stored,
            isOurs: share.falls(arrival.topic))
        // Ends: no kind of step comes twice but the last, once for each message of an answer.
        while true {
            if let outcome = step.outcome { outcomes.count(outcome.text) }
            switch step.next {
            case .findKeys(let unopened): step = await open(unopened, of: arrival.topic)
            case .judge(let question): step = await judge(question)
            case .handOver(let handover): step = await send(handover)
            case .publish(let publication): step = await publish(publication)
            case .end(let isTaken): return isTaken
            }
        }
    }

    private func open(_ unopened: StatusConversation.Unopened, of topic: UInt32) async -> Step {
        do throws(StoreError) {
            return unopened.open(with: try await topics.keys(of: topic))
        } catch {
            return unopened.storeFailed()
        }
    }

    private func judge(_ question: StatusConversation.Question) async -> Step {
        defer { if question.isRegistration { topics.ring() } }
        do throws(StatusError) {
            // Whom a message comes from by the network nobody tells.
            let reply = try await reception.receive(
                question.inbound, from: ClientKey(0), bytes: question.bytes)
            return question.taken(reply)
        } catch {
            return question.refused(error)
        }
    }

    private func send(_ handover: StatusConversation.Handover) async -> Step {
        guard let gateway else {
            return handover.settled(failed: Set(handover.pushes.indices), dead: [])
        }
        let end = world.instant() + reportWithin
        let (failed, dead) = await gateway.send(handover.pushes)
        let changes = handover.changes(failed: failed, dead: dead)
        // All at once, so that they share commits: the sender waits. What a store that fails leaves, the
        // conversation says.
        await withDiscardingTaskGroup { group in
            for change in changes.ends { group.addTask { _ = try? await self.registry.apply([change]) } }
        }
        if let change = changes.reopening {
            await reception.undo([change], bytes: handover.bytes, until: end)
        }
        return handover.settled(failed: failed, dead: dead)
    }

    private func publish(_ publication: StatusConversation.Publication) async -> Step {
        guard let message = publication.sealed() else { return publication.failed() }
        do throws(WakuError) { try await outlet.publish(message) } catch { return publication.failed() }
        return publication.published()
    }
}
