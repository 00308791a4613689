import CoreMetrics
import Delivery
import PushModel
import SessionPush
import SwarmIngress

/// What storage nodes tell, on its way into the relay.
final class SessionPost: Sendable {
    private let reception: Reception<SessionRelay>
    private let conversation: NoticeConversation
    private let outcomes: WordMeter

    init(
        _ conversation: NoticeConversation, _ reception: Reception<SessionRelay>,
        _ metrics: any MetricsFactory
    ) {
        self.conversation = conversation
        self.reception = reception
        outcomes = WordMeter(
            "sealbell_session_notices_total", by: "outcome", of: reception.instance, from: ["taken"], metrics)
    }

    /// Takes one notice in. When this returns, its pushes stand in the store, or it may be taken again.
    var take: SwarmIngress.Take { { notice in await self.receive(notice) } }

    private func receive(_ notice: StorageNotice) async -> SwarmIngress.Taken {
        var rest: UInt64? = 0
        do throws(SessionError) {
            // Ends: each round is of later rows than the one before.
            while let after = rest {
                // No toll: every node of a swarm tells of each message, as fast as people write, and what was
                // refused would be lost. A node that floods fills its own share of the queue and delays
                // others by one notice each (`ShareQueue`). It speaks for accounts of its swarm alone. What
                // another has said is passed over (`SeenNotices`), and each account has its pushes a minute.
                rest = conversation.rest(
                    after: try await reception.receive(
                        .notified(notice, after: after), from: ClientKey(0),
                        bytes: conversation.bytes(of: notice)))
            }
            outcomes.count("taken")
            return .taken
        } catch {
            outcomes.count(error.codeText)
            return conversation.refused(notice, error) ? .later : .taken
        }
    }
}
