import CoreMetrics
import Delivery
import PushModel
import SessionPush
import SwarmIngress
import Synchronization

/// What storage nodes tell, on its way into the relay. Nobody hears back, so what is wrong is counted and no
/// more.
final class SessionPost: Sendable {
    let name: ConfiguredName
    let reception: Reception<SessionRelay>
    private let metrics: any MetricsFactory
    /// What becomes of nearly all. Made once: to name a series costs as much as to seal a notice.
    private let taken: Counter

    init(_ reception: Reception<SessionRelay>, _ metrics: any MetricsFactory) {
        name = reception.instance
        self.reception = reception
        self.metrics = metrics
        taken = Self.counter("taken", name, metrics)
    }

    /// What keeps a notice in memory beside its data.
    private static let noticeBytes = 512

    /// Takes one notice in. When this returns, its pushes stand in the store, or it may be taken again.
    var take: SwarmIngress.Take { { push in await self.receive(push) } }

    private func receive(_ push: StoragePush) async -> SwarmIngress.Taken {
        var rest: UInt64? = 0
        do throws(SessionError) {
            // Ends: each round is of later rows than the one before. A store that goes out in between is
            // asked for all of them again: what stands is known by its marks.
            while let after = rest {
                // No toll: every node of a swarm tells of each message, as fast as people write, and what was
                // refused would be lost. A node that floods fills its own share of the queue and delays
                // others by one notice each (`PushQueue`). It speaks for accounts of its swarm alone. What
                // another has said is passed over (`SeenNotices`), and each account has its pushes a minute.
                let reply = try await reception.receive(
                    .notified(push, after: after), from: ClientKey(0),
                    bytes: Self.noticeBytes + push.dataCount)
                if case .taken(let restAfter) = reply { rest = restAfter } else { rest = nil }
            }
            taken.increment()
            return .taken
        } catch {
            // Until it is in custody, another node's report of it is no repeat.
            reception.role.release(push)
            Self.counter(error.codeText, name, metrics).increment()
            return error.isOverloaded ? .later : .taken
        }
    }

    private static func counter(
        _ outcome: String, _ name: ConfiguredName, _ metrics: any MetricsFactory
    ) -> Counter {
        Counter(
            label: "sealbell_session_notices_total",
            dimensions: [("instance", name.text), ("outcome", outcome)], factory: metrics)
    }
}
