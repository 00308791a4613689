import AtRest
@testable import Delivery
import PushModel
import PushTesting
import SealbellKit
import Testing
import Uplink

/// An office that knows one record for each call, and counts what came.
private struct ScriptedOffice: UplinkOffice {
    let registry: any Registry
    let verdict: @Sendable (CallAnswer) -> UplinkVerdict
    var mayLeave = UplinkLeave.granted([(name: "Authorization", value: "Basic b3g6a2V5")])
    let taken = AwaitedCount()

    static func key(_ subject: Secret) -> RecordKey {
        RecordKey(Space(Names.instance, "call"), subject)
    }

    func leave(of message: UplinkMessage) async -> UplinkLeave { mayLeave }

    func take(_ answer: CallAnswer, to message: UplinkMessage, of call: PushID) async -> UplinkVerdict {
        let verdict = verdict(answer)
        if verdict == .done || verdict == .refused {
            do throws(StoreError) {
                _ = try await registry.apply([.delete(Self.key(message.subject), if: .any)])
            } catch {
                return .uncommitted
            }
        }
        taken.add()
        return verdict
    }
}

@Suite("Calls of an origin", .timeLimit(.minutes(30)))
struct UplinkTests {
    private static let lane = LaneName(app: Names.acme, service: .uplink, environment: .production)

    private static func call(_ number: Int, custodyEnds: Int64 = 1_801_000_000) -> Push {
        let subject = Secret("call \(number)".utf8)
        return Push(
            message: .uplink(
                UplinkMessage(
                    kind: .registration, method: .post, server: "https://relay.example",
                    path: Secret("/register?\(number)".utf8), contentType: "application/json",
                    body: Secret("{}".utf8), subject: subject)),
            pushClass: .normal, origin: Secret("user".utf8), record: ScriptedOffice.key(subject),
            touchedAt: .distantPast, custodyEnds: UnixTime(seconds: custodyEnds),
            repeatIdentity: subject)
    }

    private static func record(_ number: Int) -> Record {
        Record(
            key: ScriptedOffice.key(Secret("call \(number)".utf8)), touchedAt: .distantPast,
            body: Secret("b".utf8))
    }

    /// A lane that reaches the web of the test, and an office on the rig's own store.
    private func run(
        on kind: EngineKind = .memory, limits: DeliveryLimits = DeliveryLimits(), _ web: ScriptedWeb,
        _ verdict: @escaping @Sendable (CallAnswer) -> UplinkVerdict, leave: UplinkLeave? = nil,
        _ body: (Rig, ScriptedOffice) async throws -> Void
    ) async throws {
        let depot = Depot(kind)
        let app = AppDirectory.App(name: Names.acme, outlets: [UplinkOutlet(.registration)])
        let directory = AppDirectory([AppDirectory.Instance(name: Names.instance, apps: [app])])
        let empty = DeliveryService.Setup(apps: directory, lanes: [], overrides: [:])
        try await Rig.run(depot, empty, limits: limits) { rig in
            var office = ScriptedOffice(registry: rig.store, verdict: verdict)
            if let leave { office.mayLeave = leave }
            let provider = UplinkProvider(
                lane: Self.lane, web: web, office: office, world: rig.clock.world(seed: 1))
            rig.service.adopt(
                DeliveryService.Setup(
                    apps: directory,
                    lanes: [DeliveryService.LaneSpec(provider, credential: Credential())],
                    overrides: [:]))
            try await body(rig, office)
        }
    }

    @Test("Answer and end of a call are one commit", arguments: EngineKind.allCases)
    func done(_ kind: EngineKind) async throws {
        let web = ScriptedWeb { (_) async throws(WebError) -> WebAnswer in WebAnswer(200, "yes") }
        let verdict: @Sendable (CallAnswer) -> UplinkVerdict = { answer in
            guard case .http(200, nil, let body) = answer else { return .refused }
            return body == Secret("yes".utf8) ? .done : .refused
        }
        try await run(on: kind, web, verdict) { rig, office in
            _ = try await rig.store.apply((1...20).map { .put(Self.record($0), if: .any) })
            try await rig.owe((1...20).map { Self.call($0) })
            await rig.pass(until: office.taken, reaches: 20)
            // The row went with the record: nothing waits for the settlement.
            try await rig.expectRows(0)
            #expect(web.requests.value.count == 20)
            let first = try #require(web.requests.value.first)
            #expect(first.url.hasPrefix("https://relay.example/register?"))
            #expect(first.headers.map(\.name) == ["Authorization", "Content-Type"])
        }
    }

    @Test("What is over makes no call")
    func void() async throws {
        let web = ScriptedWeb()
        try await run(web, { _ in .done }, leave: .void) { rig, _ in
            _ = try await rig.store.apply([.put(Self.record(1), if: .any)])
            try await rig.owe([Self.call(1)])
            await rig.outbox.ended.wait(for: 1)
            try await rig.expectRows(0)
            #expect(web.requests.value.isEmpty)
        }
    }

    @Test("A server that is out is tried for as long as the call is owed, and no longer")
    func silence() async throws {
        let limits = DeliveryLimits()
        let web = ScriptedWeb { (_) async throws(WebError) -> WebAnswer in
            throw WebError(.deadlineExceeded)
        }
        let verdict: @Sendable (CallAnswer) -> UplinkVerdict = { _ in
            .again(after: .seconds(1), blames: true)
        }
        try await run(limits: limits, web, verdict) { rig, office in
            let ends = rig.clock.now.seconds + 3_600
            _ = try await rig.store.apply([.put(Self.record(1), if: .any)])
            try await rig.owe([Self.call(1, custodyEnds: ends)])
            // A push of unknown fate is given up after fewer.
            await rig.pass(until: office.taken, reaches: limits.unknownSends * 2, step: .seconds(1))
            try await rig.expectRows(1)
            await rig.pass(until: rig.custodyEnded, reaches: 1, step: .seconds(10))
            try await rig.expectRows(0)
        }
    }

    @Test("A refused key halts what goes to that server, and nobody's call is lost by it")
    func refusedKey() async throws {
        let isCured = Noted(false)
        let web = ScriptedWeb { (_) async throws(WebError) -> WebAnswer in WebAnswer(401) }
        let verdict: @Sendable (CallAnswer) -> UplinkVerdict = { _ in
            isCured.value ? .done : .callerRefused
        }
        try await run(limits: .haltsAtOnce, web, verdict) { rig, office in
            _ = try await rig.store.apply((1...3).map { .put(Self.record($0), if: .any) })
            try await rig.owe((1...3).map { Self.call($0) })
            await rig.pass(until: office.taken, reaches: 1)
            await rig.pass(.seconds(2))
            #expect(try rig.lane(Self.lane).heldDestinations == 1)
            try await rig.expectRows(3)
            isCured.change { $0 = true }
            let asked = office.taken.count
            await rig.pass(until: office.taken, reaches: asked + 3, step: .seconds(1))
            try await rig.expectRows(0)
        }
    }
}
