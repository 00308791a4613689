import PushModel
import StatusPush

/// An external gorush, which has the apps' credentials: deployed servers push through one.
///
/// Nothing is owed for what it was given. What it refuses, and what it does not answer for in time, has
/// failed: the sender hears so, and asks again, here or at another server.
struct GorushGateway: Sendable {
    private let url: String
    private let web: any WebFetch
    private let deadline: Duration

    /// - Parameter url: without a slash at its end.
    init(url: String, web: any WebFetch, deadline: Duration) {
        self.url = url + "/api/push"
        self.web = web
        self.deadline = deadline
    }

    /// Gives pushes to gorush: all at once, in calls of one platform each and of as many as it takes.
    ///
    /// - Returns: what is known of each push, and what became of each call.
    func send(
        _ pushes: [GatewayHandover.Push]
    ) async -> (failures: GorushFailures, outcomes: [GorushCall.Outcome]) {
        await withTaskGroup(of: (GorushFailures, GorushCall.Outcome).self) { group in
            for call in GorushCall.calls(for: pushes) { group.addTask { await self.send(call) } }
            var failures = GorushFailures()
            var outcomes: [GorushCall.Outcome] = []
            for await (some, outcome) in group {
                failures.add(some)
                outcomes.append(outcome)
            }
            return (failures, outcomes)
        }
    }

    private func send(_ call: GorushCall) async -> (GorushFailures, GorushCall.Outcome) {
        do throws(WebError) {
            var request = WebRequest(
                .post, url: url, headers: [("Content-Type", "application/json")], body: call.body(),
                answerLimitBytes: GorushCall.answerBytes, deadline: deadline, publicAddressesOnly: false)
            request.keepsConnection = true
            let answer = try await web.fetch(request)
            return call.answered(status: answer.status, answer.body)
        } catch {
            return call.unanswered()
        }
    }
}
