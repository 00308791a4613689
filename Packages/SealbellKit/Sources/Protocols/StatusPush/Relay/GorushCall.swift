package import PushModel
import WireFormats

/// One call of gorush's `POST /api/push`: pushes of one platform, as many as it takes.
package struct GorushCall: Sendable {
    /// What became of a call (docs/metrics.md).
    package enum Outcome: String, Sendable, Hashable, CaseIterable {
        case taken
        /// It named some, or all, in its `logs`.
        case refused
        /// Another status than 2xx, or an answer that is none of gorush's.
        case failed
        case unreachable
    }

    /// More than a thousand entries of `logs`, each with a token and an error's text.
    package static let answerBytes = 8 << 20

    /// By their places in the handover.
    package let pushes: ArraySlice<GatewayHandover.Push>

    /// Runs of pushes of one platform, which a handover has one behind the other.
    package static func calls(for pushes: [GatewayHandover.Push]) -> [GorushCall] {
        var calls: [GorushCall] = []
        var start = 0
        for end in 1..<max(1, pushes.count + 1) {
            let isOver =
                end == pushes.count || pushes[end].isApple != pushes[start].isApple
                || end - start == StatusLimits.gatewayPushes
            guard isOver else { continue }
            calls.append(GorushCall(pushes: pushes[start..<end]))
            start = end
        }
        return calls
    }

    /// JSON: `notifications`, and nothing else.
    package func body() -> Secret {
        var writer = JSONWriter(reserving: 64 + pushes.reduce(0) { $0 + 1 + $1.notification.count })
        writer.beginObject()
        writer.beginArray("notifications")
        for push in pushes { push.notification.reveal { writer.raw($0) } }
        writer.endArray()
        writer.endObject()
        return writer.takeSecret()
    }

    /// What an answer says.
    ///
    /// - Parameter body: JSON of at most ``answerBytes``.
    package func answered(status: Int, _ body: Secret) -> (failures: GorushFailures, outcome: Outcome) {
        guard (200...299).contains(status), let failures = GorushAnswer(body)?.failures(of: pushes) else {
            return (GorushFailures(all: pushes), .failed)
        }
        return (failures, failures.failed.isEmpty ? .taken : .refused)
    }

    /// No answer came in time, or no connection.
    package func unanswered() -> (failures: GorushFailures, outcome: Outcome) {
        (GorushFailures(all: pushes), .unreachable)
    }
}
