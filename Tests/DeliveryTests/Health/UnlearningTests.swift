import AtRest
@testable import Delivery
import PushModel
import PushTesting
import Testing

@Suite("What was learned of an address is forgotten with it", .timeLimit(.minutes(30)))
struct UnlearningTests {
    private static let owner = RecordKey(Space(core: "realm"), Secret("realm".utf8))
    private static let registration = RecordKey(Space(core: "device"), Secret("device".utf8))
    private static let learned = Environments.key(app: Names.acme, address: Secret("phone".utf8))

    private func put(_ rig: Rig) async throws {
        let record = Record(
            key: Self.registration, owner: Self.owner, touchedAt: rig.clock.now, body: Secret("phone".utf8))
        _ = try await rig.store.apply([.put(record, if: .any)])
    }

    private func pushed(_ number: Int, _ rig: Rig) -> Push {
        push(
            number, bundle: "org.acme", address: "phone", record: Self.registration,
            touchedAt: rig.clock.now, custodyEnds: rig.clock.now + .seconds(86_400))
    }

    private func isKnown(_ rig: Rig) async throws -> Bool {
        try await rig.store.find([Self.learned])[0] != nil
    }

    private func run(
        _ kind: EngineKind, _ answer: @escaping @Sendable (OwedPush) -> Answer = { _ in .accepted },
        _ body: (Rig, Depot) async throws -> Void
    ) async throws {
        let depot = Depot(kind)
        let production = ScriptedProvider(Names.apns) { answer($0) }
        let sandbox = ScriptedProvider(Names.sandbox) { _ in .accepted }
        try await Rig.run(depot, .of(production, sandbox, environment: .learn)) { rig in
            try await put(rig)
            try await rig.expect([.accepted], of: [pushed(1, rig)])
            await rig.outbox.ended.wait(for: 1)
            #expect(try await isKnown(rig))
            try await body(rig, depot)
        }
    }

    @Test("With its registration: deleted, expired, replaced by a tombstone", arguments: EngineKind.allCases)
    func withRegistration(_ kind: EngineKind) async throws {
        try await run(kind) { rig, _ in
            var (number, ended) = (2, 1)
            let gone = Record(
                key: Self.registration, state: .tombstone, touchedAt: rig.clock.now, body: Secret([]))
            for change in [
                Change.delete(Self.registration, if: .any),
                .expire(Self.registration, at: rig.clock.now, if: .any), .put(gone, if: .any)
            ] {
                _ = try await rig.store.apply([change])
                #expect(try await isKnown(rig) == false)
                // A push that comes late is not taken, and so does not bring it back.
                try await rig.expect([.known(.rejected)], of: [pushed(number, rig)])
                #expect(try await isKnown(rig) == false)
                number += 1
                try await put(rig)
                try await rig.expect([.accepted], of: [pushed(number, rig)])
                ended += 1
                await rig.outbox.ended.wait(for: ended)
                #expect(try await isKnown(rig))
                number += 1
            }
            // A change that is refused takes nothing along.
            let refused = Change.delete(Self.registration, if: .absent)
            #expect(try await rig.store.apply([refused]) == .refused(index: 0))
            #expect(try await isKnown(rig))
        }
    }

    @Test("With its origin, however many registrations that has", arguments: EngineKind.allCases)
    func withOrigin(_ kind: EngineKind) async throws {
        try await run(kind) { rig, _ in
            for number in 0..<25 {
                let key = RecordKey(Space(core: "device"), Secret("other \(number)".utf8))
                let record = Record(key: key, owner: Self.owner, touchedAt: rig.clock.now, body: Secret([1]))
                _ = try await rig.store.apply([.put(record, if: .any)])
            }
            var gone = 0
            while true {
                let count = try await rig.store.forget(owner: Self.owner, limit: 10)
                gone += count
                if count < 10 { break }
            }
            #expect(gone == 26)
            #expect(try await isKnown(rig) == false)
        }
    }

    @Test("With a 410 for its address", arguments: EngineKind.allCases)
    func gone(_ kind: EngineKind) async throws {
        try await run(kind, { $0.pushClass == .urgent ? .gone(at: Answer.sent + .seconds(90)) : .accepted }) {
            rig, _ in
            var dead = pushed(2, rig)
            dead.pushClass = .urgent
            try await rig.expect([.known(.unregistered)], of: [dead])
            await rig.outbox.ended.wait(for: 2)
            #expect(try await isKnown(rig) == false)
        }
    }

    @Test("By itself three months after the last acceptance; before that each month is enough")
    func ages() async throws {
        try await run(.memory) { rig, depot in
            func touched() async throws -> UnixTime? {
                try await rig.store.find([Self.learned])[0]?.touchedAt
            }
            let first = try await touched()
            await rig.pass(.seconds(29 * 86_400), step: .seconds(3_600))
            // The lease is of the last seconds.
            await rig.pass(.seconds(6), step: .seconds(1))
            try await rig.expect([.accepted], of: [pushed(2, rig)])
            await rig.outbox.ended.wait(for: 2)
            #expect(try await touched() == first, "no push but one a month writes it")
            await rig.pass(.seconds(2 * 86_400), step: .seconds(3_600))
            // The lease is of the last seconds.
            await rig.pass(.seconds(6), step: .seconds(1))
            try await rig.expect([.accepted], of: [pushed(3, rig)])
            await rig.outbox.ended.wait(for: 3)
            #expect(try await touched() != first)
            await rig.pass(.seconds(91 * 86_400), step: .seconds(3_600))
            #expect(try await isKnown(rig) == false)
        }
    }
}
