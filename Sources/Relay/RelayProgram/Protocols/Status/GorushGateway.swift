import Delivery
import PushModel
import StatusPush
import Synchronization
import WakuIngress

/// An external gorush, which has the apps' credentials: deployed servers push through one.
///
/// Nothing is owed for what it was given. What it refuses, and what it does not answer for in time, has
/// failed: the sender hears so, and asks again, here or at another server.
final class GorushGateway: Sendable {
    private let url: String
    private let web: any WebFetch
    private let deadline: Duration
    private let world: World
    private let calls: WordMeter
    private let faults: Mutex<FaultRun>
    private let took = Atomic<Bool>(false)
    private let badTokens = Mutex(BadTokenTrust())

    /// - Parameter url: without a slash at its end.
    init(_ url: String, web: any WebFetch, of name: ConfiguredName, on context: HostingContext) {
        self.url = url + "/api/push"
        self.web = web
        deadline = context.spans.statusHost.gateway
        world = context.world
        calls = WordMeter("sealbell_status_gateway_calls_total", by: "outcome", of: name, context.metrics)
        faults = Mutex(FaultRun(context.spans.statusHost.gatewayFaults))
    }

    /// It has taken a call since this was made.
    var hasTaken: Bool { took.load(ordering: .relaxed) }
    /// Calls in a row that it did not take; 0: too few to tell of.
    var failures: Int { faults.withLock { $0.told(at: world.instant()) } }

    /// Gives pushes to gorush: all at once, in calls of one platform each and of as many as it takes.
    ///
    /// - Returns: places of pushes that it did not take, and those of them whose token is dead.
    func send(_ pushes: [GatewayHandover.Push]) async -> (failed: Set<Int>, dead: Set<Int>) {
        let failures = await withTaskGroup(of: GorushFailures.self) { group in
            for call in GorushCall.calls(for: pushes) { group.addTask { await self.send(call) } }
            return await group.reduce(into: GorushFailures()) { $0.add($1) }
        }
        return (failures.failed, badTokens.withLock { $0.dead(failures, among: pushes) })
    }

    private func send(_ call: GorushCall) async -> GorushFailures {
        let (failures, outcome) = await answer(to: call)
        let now = world.instant()
        faults.withLock { faults in
            switch outcome {
            // What it refuses are tokens, dead ones for the most part: it works.
            case .taken, .refused:
                faults.succeeded()
                took.store(true, ordering: .relaxed)
            case .failed, .unreachable: faults.failed(at: now)
            }
        }
        calls.count(outcome.rawValue)
        return failures
    }

    private func answer(to call: GorushCall) async -> (GorushFailures, GorushCall.Outcome) {
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
