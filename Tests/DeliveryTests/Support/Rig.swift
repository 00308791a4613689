import AtRest
@testable import Delivery
import PushModel
import PushTesting
import ServiceLifecycle
import Synchronization
import Testing

/// One process of a relay: the core over a store, with providers that answer as the test says.
struct Rig: Sendable {
    let depot: Depot
    /// The process's own clock; mostly the store's too.
    let clock: ManualClock
    let store: SealedStore
    let outbox: GatedOutbox
    let registry: GatedRegistry
    let service: DeliveryService
    let journal: LogSpy
    let events: Trace
    /// Every answer that an operator would hear of: as a value, and in words.
    let attempts: HeardAttempts
    var answers: Trace { attempts.words }
    /// What registrations' histories would count: `refused BadTopic`.
    let counts: Trace
    /// Pushes whose custody ended unsent, as an operator counts them.
    let custodyEnded: AwaitedCount
    /// Counts of the store that the lanes have heard of.
    let counted: AwaitedCount
    private let stopping: ServiceGroup

    /// Runs a core until `body` ends; then it is stopped as an operator would,
    /// or killed if its outbox was cut.
    ///
    /// - Parameter holds: calls are held while there is no room or no store; else they are refused at once.
    /// - Parameter own: a clock of this process alone, when it sleeps while the world goes on.
    /// - Parameter services: whose messages the store is read with.
    /// - Parameter takingOver: awaited before each look for what dead processes left: then the sweep may not
    ///   sleep, and `pass` is told so.
    static func run(
        _ depot: Depot, _ setup: DeliveryService.Setup, limits: DeliveryLimits = DeliveryLimits(),
        holds: Bool = false, trace: Trace = Trace(), own: ManualClock? = nil,
        takingOver: (@Sendable (GatedOutbox, Int) async -> Void)? = nil,
        services: PushServices = .standard, _ body: (Rig) async throws -> Void
    ) async throws {
        var limits = limits
        if !holds { limits.hold = .zero }
        let clock = own ?? depot.clock
        let world = clock.world(seed: depot.world.random())
        let store = try await depot.open(world, services)
        let outbox = GatedOutbox(store, trace: trace, takingOver: takingOver)
        let registry = GatedRegistry(store)
        let journal = LogSpy()
        let events = Trace()
        let (custodyEnded, counted) = (AwaitedCount(), AwaitedCount())
        let attempts = HeardAttempts()
        let counts = Trace()
        var observer = DeliveryObserver(
            laneHalted: { lane, cause, _ in events.add("\(lane) halted \(cause)") },
            laneResumed: { lane in events.add("\(lane) resumed") },
            laneUnanswered: { lane, reason in events.add("\(lane) unanswered \(reason.rawValue)") },
            laneAnswered: { lane in events.add("\(lane) answered") },
            custodyEnds: { _, count in custodyEnded.add(count) }, attempted: { attempts.add($0) })
        observer.counted = { _, event, reason, _ in counts.add("\(event.label) \(reason.rawValue)") }
        observer.setAside = { _ in counted.add() }
        observer.laneLoosened = { lane in events.add("\(lane) loosened") }
        let service = DeliveryService(
            outbox: outbox, registry: registry, setup: setup, limits: limits, world: world,
            journal: journal.journal, observer: observer)
        let group = ServiceGroup(
            services: [service], gracefulShutdownSignals: [], logger: silentLogger)
        let rig = Rig(
            depot: depot, clock: clock, store: store, outbox: outbox, registry: registry, service: service,
            journal: journal, events: events, attempts: attempts,
            counts: counts, custodyEnded: custodyEnded, counted: counted, stopping: group)
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await group.run() }
            await clock.sleepers(atLeast: takingOver == nil ? 3 : 2)
            try await body(rig)
            if outbox.isCut.withLock(\.self) {
                tasks.cancelAll()
                // It ends by being cancelled, which is no fault.
                try? await tasks.waitForAll()
            } else {
                await group.triggerGracefulShutdown()
                try await tasks.waitForAll()
            }
        }
        try depot.close()
    }

    func stop() async { await stopping.triggerGracefulShutdown() }

    /// Lets time pass in steps; after each the core has seen its tick.
    ///
    /// - Parameter sleepers: lease, tick and sweep sleep always; a settler that waits for the store sleeps
    ///   too.
    func pass(_ span: Duration, step: Duration = .milliseconds(100), sleepers: Int = 3) async {
        var left = span
        while left > .zero {
            clock.advance(by: min(step, left))
            left -= step
            await clock.sleepers(atLeast: sleepers)
        }
    }

    /// Lets time pass until the count is reached, however long the store takes to get there.
    func pass(
        until watch: AwaitedCount, reaches count: Int, step: Duration = .milliseconds(100),
        at place: SourceLocation = #_sourceLocation
    ) async {
        for _ in 0..<Self.patience where watch.count < count && !Task.isCancelled {
            await pass(step, step: step)
            for _ in 0..<50 where watch.count < count { await Task.yield() }
        }
        if watch.count < count {
            Issue.record("\(watch.count) of \(count) in vain", sourceLocation: place)
        }
    }

    /// Steps in which what a test waits for must come: some hours of the clock, at the least.
    static let patience = 100_000

    /// Lets time pass until that many requests have been sent.
    func pass(untilSent count: Int, by provider: ScriptedProvider) async {
        await pass(until: provider.requests, reaches: count)
    }

    /// Lets time pass until a call is answered.
    ///
    /// - Parameter meanwhile: done while the call is under way, before time passes.
    func passing<Reply: Sendable>(
        until call: @escaping @Sendable () async throws -> Reply, meanwhile: () async throws -> Void = {}
    ) async throws -> Reply {
        let answered = AwaitedCount()
        async let reply = {
            defer { answered.add() }
            return try await call()
        }()
        try await meanwhile()
        await pass(until: answered, reaches: 1)
        return try await reply
    }

    /// Takes pushes in, each in its origin's turn, and answers with their first outcomes.
    func admit(
        _ pushes: [Push], within deadline: Duration = .seconds(3), changes: [Change] = [], perMinute: Int = 0
    ) async throws -> [FirstOutcome] {
        var verdict = Verdict<[FirstOutcome], SampleError>(
            pushes: pushes, changes: changes, reply: .afterFirstAttempt(deadline: deadline) { $0 },
            refusal: { _ in SampleError() })
        verdict.turns = .byOrigin
        return try await service.intake.admit(verdict, instance: Names.instance, perMinute: perMinute)
    }

    /// Takes pushes in, and nobody waits for them.
    func owe(_ pushes: [Push], turns: Turns = .byOrigin, from client: ClientKey? = nil) async throws {
        var verdict = Verdict<Void, SampleError>(pushes: pushes, reply: .now(()))
        verdict.turns = turns
        for start in stride(from: 0, to: pushes.count, by: 500) {
            var part = verdict
            part.pushes = Array(pushes[start..<min(start + 500, pushes.count)])
            try await service.intake.admit(part, instance: Names.instance, from: client)
        }
    }

    /// The store holds a registration; pushes name it by its key.
    func register(_ key: RecordKey = Names.phone, touchedAt: UnixTime) async throws {
        _ = try await store.apply([
            .put(Record(key: key, touchedAt: touchedAt, body: Secret([1])), if: .any)
        ])
    }

    /// Takes pushes in, of which nobody hears: the store's answer is lost.
    func oweUnheard(_ pushes: [Push]) async {
        outbox.set { $0.lostAccepts = 1 }
        await #expect(throws: (any Error).self) { try await owe(pushes) }
    }

    func lane(_ name: LaneName = Names.fcm) throws -> LaneSnapshot {
        try #require(service.snapshot().first { $0.lane == name })
    }

    /// Takes pushes in and judges the outcomes that their reply would name.
    func expect(
        _ outcomes: [FirstOutcome], of pushes: [Push], at place: SourceLocation = #_sourceLocation
    ) async throws {
        let answered = try await admit(pushes)
        #expect(answered == outcomes, sourceLocation: place)
    }

    /// How many pushes the store still owes.
    func expectRows(_ count: Int, at place: SourceLocation = #_sourceLocation) async throws {
        let rows = try await store.load().rows
        #expect(rows == count, sourceLocation: place)
    }
}

struct SampleError: PushError {
    var codeText: String { "sample" }
    var sentence: String { "A condition was not met." }
}

enum Names {
    static let instance = ConfiguredName("zulip-main")!
    static let acme = ConfiguredName("acme")!
    static let other = ConfiguredName("other")!
    static let phone = RecordKey(Space(instance, "device"), Secret("phone".utf8))
    static let fcm = LaneName(app: acme, service: .fcm, environment: .production)
    static let apns = LaneName(app: acme, service: .apns, environment: .production)
    static let sandbox = LaneName(app: acme, service: .apns, environment: .sandbox)
    static let otherAPNs = LaneName(app: other, service: .apns, environment: .production)
}

extension DeliveryService.Setup {
    /// Two apps on one instance: `acme` (bundle org.acme, FCM) and `other` (bundle org.other).
    static func of(
        _ providers: [(ScriptedProvider, Credential)], environment: EnvironmentPolicy = .fixed(.production),
        stamp: Int = 0, hasFCM: Bool = true
    ) -> DeliveryService.Setup {
        let apple = APNsOutlet(bundles: .listed(["org.acme"]), environment: environment)
        let apps = [
            AppDirectory.App(
                name: Names.acme, outlets: hasFCM ? [apple, FCMOutlet(isDefault: true)] : [apple]),
            AppDirectory.App(name: Names.other, outlets: [APNsOutlet(bundles: .listed(["org.other"]))])
        ]
        return DeliveryService.Setup(
            apps: AppDirectory([AppDirectory.Instance(name: Names.instance, apps: apps)]),
            lanes: providers.map { DeliveryService.LaneSpec($0.0, credential: $0.1, stamp: stamp) },
            overrides: [:])
    }

    static func of(_ providers: ScriptedProvider..., environment: EnvironmentPolicy = .fixed(.production))
        -> DeliveryService.Setup
    {
        let credential = Credential()
        return of(providers.map { ($0, credential) }, environment: environment)
    }
}

extension DeliveryLimits {
    /// For tests of what a halt does, and not of what halts: one fault of the credential does, and probes are
    /// a minute apart from the first.
    static var haltsAtOnce: DeliveryLimits {
        var limits = DeliveryLimits()
        limits.breakerFaults = 1
        limits.probeFirst = limits.probeEvery
        return limits
    }
}
