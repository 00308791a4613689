import PushModel
import StatusPush
import WireFormats

/// An external gorush, which has the apps' credentials: deployed servers push through one.
///
/// Nothing is owed for what it was given. What it refuses, and what it does not answer for in time, has
/// failed: the sender hears so, and asks again, here or at another server.
struct GorushGateway: Sendable {
    private let url: String
    private let web: any WebFetch
    private let deadline: Duration

    /// What became of one handover.
    enum Outcome: String, Sendable, Hashable, CaseIterable {
        case taken
        /// It named some, or all, in its `logs`.
        case refused
        /// Another status than 2xx, or an answer that is none of gorush's.
        case failed
        case unreachable
    }

    /// More than a thousand entries of `logs`, each with a token and an error's text.
    private static let answerBytes = 8 << 20

    /// - Parameter url: without a slash at its end.
    init(url: String, web: any WebFetch, deadline: Duration) {
        self.url = url + "/api/push"
        self.web = web
        self.deadline = deadline
    }

    /// Gives pushes to gorush: all at once, in calls of one platform each and of as many as it takes.
    ///
    /// - Returns: what is known of each push, and what became of each call.
    func send(_ pushes: [GatewayHandover.Push]) async -> (failures: GorushFailures, outcomes: [Outcome]) {
        let calls = Self.calls(pushes)
        return await withTaskGroup(of: (GorushFailures, Outcome).self) { group in
            for call in calls { group.addTask { await self.call(pushes[call]) } }
            var failures = GorushFailures()
            var outcomes: [Outcome] = []
            for await (some, outcome) in group {
                failures.add(some)
                outcomes.append(outcome)
            }
            return (failures, outcomes)
        }
    }

    /// Runs of pushes of one platform, which a handover has one behind the other.
    static func calls(_ pushes: [GatewayHandover.Push]) -> [Range<Int>] {
        var calls: [Range<Int>] = []
        var start = 0
        for end in 1..<max(1, pushes.count + 1) {
            let isOver =
                end == pushes.count || pushes[end].isApple != pushes[start].isApple
                || end - start == StatusLimits.gatewayPushes
            guard isOver else { continue }
            calls.append(start..<end)
            start = end
        }
        return calls
    }

    private func call(_ pushes: ArraySlice<GatewayHandover.Push>) async -> (GorushFailures, Outcome) {
        let all = GorushFailures(all: pushes)
        let answer: WebAnswer
        do throws(WebError) {
            var request = WebRequest(
                .post, url: url, headers: [("Content-Type", "application/json")], body: Self.body(pushes),
                answerLimitBytes: Self.answerBytes, deadline: deadline, publicAddressesOnly: false)
            request.keepsConnection = true
            answer = try await web.fetch(request)
        } catch {
            return (all, .unreachable)
        }
        guard (200...299).contains(answer.status),
            let failures = GorushAnswer(answer.body)?.failures(of: pushes)
        else { return (all, .failed) }
        return (failures, failures.failed.isEmpty ? .taken : .refused)
    }

    private static func body(_ pushes: ArraySlice<GatewayHandover.Push>) -> Secret {
        var writer = JSONWriter(reserving: 64 + pushes.reduce(0) { $0 + 1 + $1.notification.count })
        writer.beginObject()
        writer.key("notifications")
        writer.beginArray()
        for push in pushes { push.notification.reveal { writer.raw($0) } }
        writer.endArray()
        writer.endObject()
        return writer.takeSecret()
    }
}
