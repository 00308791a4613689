package import PushModel
package import SealbellKit
import Secp256k1Keys

/// What the relay says to one message of the Waku network, from the message's bytes to the bytes that answer
/// it.
///
/// A state machine without I/O. A ``Step`` names what is to be done next and what is to be counted; the value
/// in it takes what came of that, and gives the next step:
///
///     begin ─► findKeys ─► judge ─► handOver ─► publish … publish ─► end
///
/// Whoever takes the steps holds the topics' keys, the reception, perhaps a gateway, and the way out.
///
/// By reference: each step holds it, and a copy of the relay's fields would cost more than a step.
package final class StatusConversation: Sendable {
    /// What is to be done next.
    package enum Next: Sendable {
        /// The topic's keys are looked up.
        case findKeys(Unopened)
        /// The reception judges it.
        case judge(Question)
        /// The gateway is given pushes.
        case handOver(Handover)
        /// An answer leaves.
        case publish(Publication)
        /// Nothing. A message that was not taken is looked at anew when it comes again: another process
        /// answers it, or the store was out.
        case end(isTaken: Bool)
    }

    package struct Step: Sendable {
        package let next: Next
        /// What is to be counted of the message now; `nil`: nothing.
        package let outcome: StatusOutcome?

        fileprivate init(_ next: Next, counting outcome: StatusOutcome? = nil) {
            (self.next, self.outcome) = (next, outcome)
        }
    }

    private let relay: StatusRelay
    private let own: Set<UInt32>
    private let heardSince: UnixTime
    private let clockSlack: Duration

    /// - Parameters:
    ///   - heardSince: when this process began to hear the network.
    ///   - clockSlack: how far a message's time may be from ours.
    package init(with relay: StatusRelay, heardSince: UnixTime, clockSlack: Duration) {
        self.relay = relay
        own = WakuTopic.own(of: relay.identity.point)
        self.heardSince = heardSince
        self.clockSlack = clockSlack
    }

    /// A message has come.
    ///
    /// - Parameters:
    ///   - topic: the four bytes of its content topic, which is followed (``WakuTopic/id``).
    ///   - isFromStore: it comes from the node's store, which was asked for what was missed.
    ///   - isOurs: this process answers the topic.
    package func begin(
        _ message: WakuMessage, on topic: UInt32, isFromStore: Bool, isOurs: Bool
    ) -> Step {
        guard isOurs else { return Step(.end(isTaken: false), counting: .elsewhere) }
        let sealed = Sealed(
            payload: message.payload,
            sentAt: UnixTime(milliseconds: message.timestamp / 1_000_000),
            isFromStore: isFromStore, isBeforeUs: isBeforeUs(message))
        // Topics are shared: the server's own may be followed for somebody as well.
        guard own.contains(topic) else {
            return Step(.findKeys(Unopened(self, sealed, fault: StatusError(.doesNotOpen))))
        }
        do throws(StatusError) {
            return read(try WakuPayload.openAsymmetric(message.payload, with: relay.identity), sealed)
        } catch {
            return Step(.findKeys(Unopened(self, sealed, fault: error)))
        }
    }

    /// Published before this process heard the network: the node kept it in its cache while nobody listened,
    /// and a relay before this one may have taken it.
    private func isBeforeUs(_ message: WakuMessage) -> Bool {
        message.timestamp
            < heardSince.milliseconds.multipliedReportingOverflow(by: 1_000_000).partialValue
    }

    /// Of a message what is needed until it is judged.
    fileprivate struct Sealed: Sendable {
        let payload: Secret
        let sentAt: UnixTime
        let isFromStore: Bool
        let isBeforeUs: Bool

        /// Whether it may be one that a relay before this one has taken already.
        var isStored: Bool { isFromStore || isBeforeUs }
    }

    // MARK: Opening

    /// A message that the server's own key does not open.
    package struct Unopened: Sendable {
        private let conversation: StatusConversation
        private let sealed: Sealed
        private let fault: StatusError

        fileprivate init(_ conversation: StatusConversation, _ sealed: Sealed, fault: StatusError) {
            (self.conversation, self.sealed, self.fault) = (conversation, sealed, fault)
        }

        /// Tries keys of the topic, as many as ``StatusLimits/triedBytes`` allow. Topics are shared: that a
        /// message does not open is nothing out of the ordinary.
        package func open(with keys: [Secret]) -> Step {
            var fault = fault
            for key in keys.prefix(StatusLimits.triedBytes / max(1, sealed.payload.count)) {
                do throws(StatusError) {
                    return conversation.read(
                        try WakuPayload.openSymmetric(sealed.payload, key: key), sealed)
                } catch {
                    if error != StatusError(.doesNotOpen) { fault = error }
                }
            }
            return Step(.end(isTaken: true), counting: .refused(fault.code))
        }

        /// The store did not tell the keys.
        package func storeFailed() -> Step { Step(.end(isTaken: false), counting: .storeSilent) }
    }

    /// The message inside, if it is for a server.
    private func read(_ opened: WakuPayload.Opened, _ sealed: Sealed) -> Step {
        do throws(StatusError) {
            guard let wrapped = try Wrapping.unwrap(opened.data) else {
                return Step(.end(isTaken: true), counting: .foreign)
            }
            let message = try MetadataMessage(
                reading: wrapped, fallback: relay.policy.isStatusGo ? opened.signer : nil)
            guard let inbound = try StatusInbound(message, isStored: sealed.isStored) else {
                return Step(.end(isTaken: true), counting: .foreign)
            }
            if case .query = inbound.body, isStale(sealed) {
                return Step(.end(isTaken: true), counting: .stale)
            }
            return Step(.judge(Question(self, inbound, payloadBytes: sealed.payload.count)))
        } catch {
            return Step(.end(isTaken: true), counting: .refused(error.code))
        }
    }

    /// Whoever asked so long ago waits for no answer any more: a relay that starts has an hour of such
    /// queries from the store, each of which would be published to nobody. What comes live may have a clock
    /// that is far behind.
    private func isStale(_ sealed: Sealed) -> Bool {
        sealed.isFromStore && relay.world.now().since(sealed.sentAt) > StatusLimits.lateAnswer + clockSlack
    }

    // MARK: Judging

    /// A message for the server.
    package struct Question: Sendable {
        package let inbound: StatusInbound
        /// What it keeps in memory while it waits.
        package let bytes: Int
        private let conversation: StatusConversation

        /// What keeps a message in memory beside its payload.
        private static let messageBytes = 1_024

        fileprivate init(
            _ conversation: StatusConversation, _ inbound: StatusInbound, payloadBytes: Int
        ) {
            self.conversation = conversation
            self.inbound = inbound
            bytes = Self.messageBytes + payloadBytes
        }

        /// Topics may have to be followed from now on, whatever came of it.
        package var isRegistration: Bool {
            if case .registration = inbound.body { true } else { false }
        }

        /// It was taken; its pushes stand in the store.
        package func taken(_ reply: StatusReply?) -> Step {
            guard let reply else { return Step(.end(isTaken: true), counting: .taken) }
            guard let handover = reply.handover else {
                return Step(.publishing(reply, of: conversation), counting: .taken)
            }
            return Step(.handOver(Handover(conversation, reply, handover, bytes: bytes)), counting: .taken)
        }

        /// It was refused, by the role or by the store.
        package func refused(_ error: StatusError) -> Step {
            guard let reply = conversation.relay.reply(to: inbound, refusing: error) else {
                return Step(.end(isTaken: !error.isOverloaded), counting: .refused(error.code))
            }
            return Step(.publishing(reply, of: conversation), counting: .refused(error.code))
        }
    }

    // MARK: Handing over

    /// Pushes that the gateway is given before the answer leaves.
    package struct Handover: Sendable {
        /// What the request keeps in memory meanwhile.
        package let bytes: Int
        private let conversation: StatusConversation
        private let reply: StatusReply
        private let handover: GatewayHandover

        fileprivate init(
            _ conversation: StatusConversation, _ reply: StatusReply, _ handover: GatewayHandover,
            bytes: Int
        ) {
            (self.conversation, self.reply, self.handover) = (conversation, reply, handover)
            self.bytes = bytes
        }

        package var pushes: [GatewayHandover.Push] { handover.pushes }

        /// What the store is told of a gateway's answer. A store that fails at it leaves a registration as it
        /// is, and the next push ends it; or, where it is out for longer than the reply may wait, the request
        /// remembered: a sender then asks with other bytes.
        ///
        /// - Returns: ends of registrations whose tokens are dead, each for itself, since one that was
        ///   renewed meanwhile stays; then what lets the same bytes come again, where nothing was sent.
        package func changes(
            failed: Set<Int>, dead: Set<Int>
        ) -> (ends: [Change], reopening: Change?) {
            let now = conversation.relay.world.now()
            let ends = dead.map { place -> Change in
                .expire(pushes[place].record, at: now, if: pushes[place].isUnchanged)
            }
            let isNothingSent = failed.count == pushes.count && dead.count < pushes.count
            return (ends, isNothingSent ? handover.reopening : nil)
        }

        /// The gateway has answered, and the store was told.
        ///
        /// - Parameters:
        ///   - failed: places of pushes that it did not take.
        ///   - dead: those of them whose token is dead.
        package func settled(failed: Set<Int>, dead: Set<Int>) -> Step {
            Step(.publishing(reply.settled(failed: failed, dead: dead), of: conversation))
        }
    }

    // MARK: Answering

    /// Messages of an answer, of which no two are sealed at one time.
    package struct Publication: Sendable {
        private let conversation: StatusConversation
        private let recipient: PublicPoint
        private let contentTopic: String
        private let messages: ArraySlice<Secret>

        fileprivate init(_ reply: StatusReply, of conversation: StatusConversation) {
            self.conversation = conversation
            recipient = reply.recipient
            contentTopic = reply.topic.contentTopic
            messages = reply.messages(by: conversation.relay.identity)[...]
        }

        private init(after publication: Publication) {
            (conversation, recipient) = (publication.conversation, publication.recipient)
            contentTopic = publication.contentTopic
            messages = publication.messages.dropFirst()
        }

        /// Seals the next message.
        ///
        /// - Returns: `nil` for what no node carries, which is nothing that is made here.
        package func sealed() -> WakuMessage? {
            guard let message = messages.first, message.count <= StatusLimits.carriedData else { return nil }
            // Deployed clients take nothing whose payload is unsigned.
            let (identity, world) = (conversation.relay.identity, conversation.relay.world)
            let payload = WakuPayload.sealAsymmetric(message, to: recipient, signer: identity, world)
            let (nanoseconds, overflow) = world.now().milliseconds
                .multipliedReportingOverflow(by: 1_000_000)
            return WakuMessage(
                payload: payload, contentTopic: contentTopic, timestamp: overflow ? 0 : nanoseconds)
        }

        /// The node has taken the message.
        package func published() -> Step {
            messages.count > 1 ? Step(.publish(Publication(after: self))) : Step(.end(isTaken: true))
        }

        /// There was none, or the node did not take it: the rest of the answer stays here.
        package func failed() -> Step { Step(.end(isTaken: true), counting: .unanswered) }
    }
}

extension StatusConversation.Next {
    fileprivate static func publishing(
        _ reply: StatusReply, of conversation: StatusConversation
    ) -> Self {
        .publish(StatusConversation.Publication(reply, of: conversation))
    }
}

/// What became of a message, of a closed list (docs/metrics.md).
package enum StatusOutcome: Sendable, Hashable {
    /// Another process answers the topic.
    case elsewhere
    /// The store did not tell the topic's keys.
    case storeSilent
    /// For no server.
    case foreign
    /// A query that nobody waits for any more.
    case stale
    case taken
    case refused(StatusError.Code)
    /// What was to answer it did not leave.
    case unanswered

    package var text: String {
        switch self {
        case .elsewhere: "elsewhere"
        case .storeSilent: "store-silent"
        case .foreign: "foreign"
        case .stale: "stale"
        case .taken: "taken"
        case .refused(let code): code.rawValue
        case .unanswered: "unanswered"
        }
    }
}
