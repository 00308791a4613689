import AtRest
import Delivery
import PushModel
import Synchronization

/// Origins and devices: they register, notify, hear or hear nothing, and ask again.
final class Peers: Sendable {
    static let space = Space(core: "simulated")

    struct Fault: PushError {
        var codeText: String { "refused" }
        var sentence: String { "A condition was not met." }
    }

    private let scheduler: Scheduler
    private let ledger: PushLedger
    private let service: SimulatedPushService
    private let processes: [SimulatedProcess]
    private let next = Mutex(0)
    private let versions = Mutex<[Int: UInt64]>([:])
    let devices: Int
    /// Whether devices without a registration get nothing. Without it they are pushed to where they have been
    /// from the first.
    private let knowsOwn: Bool

    init(
        _ scheduler: Scheduler, ledger: PushLedger, service: SimulatedPushService,
        processes: [SimulatedProcess],
        devices: Int, knowsOwn: Bool
    ) {
        self.scheduler = scheduler
        self.ledger = ledger
        self.service = service
        self.processes = processes
        self.devices = devices
        self.knowsOwn = knowsOwn
    }

    /// What a push is, and to whom it goes.
    struct Read: Sendable {
        let number: Int
        let device: Int
        /// Which of the device's tokens, from 0.
        let token: Int
    }

    static func read(_ message: ProviderMessage) -> Read? {
        let address = message.address.reveal { String(decoding: $0, as: UTF8.self) }.split(separator: ".")
        guard let body = message.fcm?.data ?? message.apns?.payload,
            let device = address.first.flatMap({ Int($0) }),
            let number = Int(body.reveal { String(decoding: $0, as: UTF8.self) })
        else { return nil }
        return Read(number: number, device: device, token: address.count > 1 ? Int(address[1]) ?? 0 : 0)
    }

    /// The address that a device has with that token.
    static func address(_ device: Int, token: Int) -> Secret {
        Secret((token == 0 ? "\(device)" : "\(device).\(token)").utf8)
    }

    static func key(_ device: Int) -> RecordKey { RecordKey(space, Secret("device-\(device)".utf8)) }

    /// Registrations stay as long as those of a real protocol.
    private static let recordLife = Duration.seconds(60 * 86_400)

    // MARK: One conversation each

    /// A device registers with the token that it has, and asks again until it hears that it did.
    func register(_ device: Int) async {
        let now = scheduler.now
        let version = versions.withLock { versions in
            versions[device, default: 0] += 1
            return versions[device] ?? 1
        }
        let token = service.token(of: device)
        let address = Self.address(device, token: token)
        let record = Record(
            key: Self.key(device), owner: RecordKey(Self.space, Secret("owner-\(device % 3)".utf8)),
            address: RecordKey(Self.space, address), version: version, touchedAt: now,
            expiresAt: now + Self.recordLife, body: address)
        // What is owed to another token goes with it.
        let owed = ledger.leaves(device, for: token)
        for _ in 0..<4 {
            let (applied, place) = await change(.put(record, if: .versionBelow(version)))
            switch applied {
            case .committed?:
                ledger.left(device, owed, by: place)
                return ledger.registered(device, version: version, token: token)
            // A try before this one was made after all.
            case .refused?: return
            case nil: await scheduler.pause(.milliseconds(100) ... .seconds(2))
            }
        }
    }

    /// Has some process change the registry; `nil`: nobody knows what came of it.
    private func change(_ change: Change) async -> (applied: Applied?, place: Int) {
        let place = someProcess
        let applied = await ask(at: place) { process in
            // Out: asked again.
            try? await process.store?.apply([change])
        }
        return (applied.flatMap(\.self), place)
    }

    /// A device's registration is deleted at its own wish: it asks until it hears that it is.
    func unregister(_ device: Int) async {
        for _ in 0..<8 {
            let owed = ledger.leaves(device, for: nil)
            // A process that stood still may come to this request when the device has registered anew.
            let next = versions.withLock { ($0[device] ?? 0) + 1 }
            let (applied, place) = await change(.delete(Self.key(device), if: .versionBelow(next)))
            switch applied {
            case .committed?: return ledger.left(device, owed, by: place, below: next)
            case .refused?: return
            case nil: break
            }
            await scheduler.pause(.milliseconds(100) ... .seconds(2))
        }
    }

    /// An origin notifies devices in one request, each with a number of its own.
    ///
    /// - Parameters:
    ///   - isOnce: it does not ask again.
    ///   - place: which process is asked; `nil`: some.
    ///   - origin: `nil`: one of three.
    ///   - device: made of a number at random.
    /// - Returns: the first one's number.
    @discardableResult
    func notify(
        _ group: Int, isUrgent: Bool, custody: Duration, waits: Bool, isOnce: Bool = false,
        at place: Int? = nil, by origin: String? = nil, device: (@Sendable (Int) -> Int)? = nil
    ) async -> Int {
        let first = next.withLock { next in
            defer { next += group }
            return next
        }
        let numbers = Array(first..<first + group)
        let ends = scheduler.now + custody
        let targets = numbers.map { number -> Target in
            let some = scheduler.random(in: 0...devices - 1)
            let target = Target(
                number: number, device: device?(some) ?? some, isUrgent: isUrgent,
                origin: origin ?? "origin-\(number % 3)")
            ledger.offered(number, to: target.device, by: target.origin, custodyEnds: ends)
            return target
        }
        for _ in 0..<(isOnce ? 1 : scheduler.random(in: 1...4)) {
            let outcomes = await ask(at: place) { process -> [Int: FirstOutcome]? in
                // A role promises by its own clock.
                let ends = process.now + custody
                guard let pushes = await self.pushes(to: targets, ends, process) else { return nil }
                for number in numbers { self.ledger.promised(number, custodyEnds: ends) }
                let plan: ReplyTiming<[FirstOutcome]> =
                    waits ? .afterFirstAttempt(deadline: Self.deadline) { $0 } : .now([])
                var verdict = Verdict<[FirstOutcome], Fault>(
                    pushes: pushes.map(\.push), reply: plan, refusal: { _ in Fault() })
                verdict.turns = .byOrigin
                return await self.admit(verdict, by: process, first).map { outcomes in
                    // Without any where the reply waits for none.
                    let all = outcomes.isEmpty ? pushes.map { _ in .pending } : outcomes
                    return Dictionary(uniqueKeysWithValues: zip(pushes.map(\.number), all))
                }
            }
            if let outcomes, let outcomes {
                for number in outcomes.keys.sorted() { ledger.owes(number, now: scheduler.now) }
                for number in numbers where outcomes[number] == .known(.accepted) {
                    ledger.replied(accepted: number)
                }
                // Sometimes the answer is lost on the way, and the origin asks once more.
                guard scheduler.chance(10) else { return first }
            }
            guard scheduler.now < ends else { return first }
            await scheduler.pause(.milliseconds(50) ... .seconds(3))
        }
        return first
    }

    /// What a sender hears of a request.
    private enum Heard: Sendable {
        case outcomes([(number: Int, outcome: FirstOutcome)])
        /// The request was taken before.
        case silence
        case nothing
    }

    /// A sender asks for pushes, and again byte for byte where it hears of a failure: until all are owed, or
    /// it has had enough.
    func request(_ group: Int, custody: Duration) async {
        let first = next.withLock { next in
            defer { next += group }
            return next
        }
        let numbers = Array(first..<first + group)
        let ends = scheduler.now + custody
        let targets = numbers.map { number in
            Target(
                number: number, device: scheduler.random(in: 0...devices - 1), isUrgent: false,
                origin: "origin-\(number % 3)")
        }
        for target in targets {
            ledger.failures.offered(target.number)
            ledger.offered(target.number, to: target.device, by: target.origin, custodyEnds: ends)
        }
        var (hasFailed, isCertain) = (false, true)
        for _ in 0..<scheduler.random(in: 2...6) {
            let heard = await ask { process -> Heard in
                let ends = process.now + custody
                for number in numbers { self.ledger.promised(number, custodyEnds: ends) }
                guard let pushes = await self.pushes(to: targets, ends, process) else { return .nothing }
                return await self.admit(pushes, by: process, first)
            }
            switch heard {
            case .outcomes(let outcomes)?:
                hasFailed = outcomes.contains { $0.outcome.isFailure }
                for (number, outcome) in outcomes { hear(outcome, of: number) }
                guard hasFailed else { return }
            case .silence?:
                // Of two copies at once one is met with silence, whatever becomes of the other.
                if hasFailed, isCertain { ledger.record(.failedAndSilent, first) }
                return
            case .nothing?, nil: isCertain = false
            }
            await scheduler.pause(.milliseconds(50) ... .seconds(3))
        }
    }

    private func hear(_ outcome: FirstOutcome, of number: Int) {
        if outcome.isFailure {
            // A process without the app speaks for itself: another that has it may owe an earlier copy.
            ledger.failed(number, everywhere: outcome != .dropped)
        } else {
            ledger.owes(number, now: scheduler.now)
            if outcome == .known(.accepted) { ledger.replied(accepted: number) }
        }
    }

    /// The request's record is put with its pushes, and goes where something of it fails.
    private func admit(
        _ pushes: [(number: Int, push: Push)], by process: SimulatedProcess, _ number: Int
    ) async -> Heard {
        guard let service = process.service else { return .nothing }
        let key = RecordKey(Self.space, Secret("request-\(number)".utf8))
        let record = Record(
            key: key, touchedAt: process.now, expiresAt: process.now + Self.recordLife, body: Secret([]))
        var verdict = Verdict<[FirstOutcome], Fault>(
            pushes: pushes.map(\.push), changes: [.put(record, if: .absent)],
            reply: .withdrawingAfterFirstAttempt(
                deadline: Self.deadline, undoing: [.delete(key, if: .any)]
            ) { $0 },
            refusal: { _ in Fault() })
        verdict.turns = .byOrigin
        do throws(IntakeRefusal<Fault>) {
            let outcomes = try await service.intake.admit(verdict, instance: SimulatedProcess.instance)
            return .outcomes(zip(pushes, outcomes).map { ($0.number, $1) })
        } catch {
            // Overloaded, or too far ahead: the sender asks again.
            if case .refused = error { return .silence }
            return .nothing
        }
    }

    /// How long a reply waits for first attempts.
    private static let deadline = Duration.seconds(2)

    private func admit(
        _ verdict: Verdict<[FirstOutcome], Fault>, by process: SimulatedProcess, _ number: Int
    ) async -> [FirstOutcome]? {
        guard let service = process.service else { return nil }
        let call = Call()
        let holds = process.holds
        let outcomes = await Call.$current.withValue(call) { () -> [FirstOutcome]? in
            // Overloaded: the origin asks again.
            try? await service.intake.admit(verdict, instance: SimulatedProcess.instance)
        }
        // Deadlines are seen at a tick.
        if let since = call.committedAt, process.holds == holds,
            scheduler.elapsed - since > Self.deadline + process.tick * 2 + .milliseconds(200)
        {
            ledger.record(.lateReply, number)
        }
        return outcomes
    }

    /// Whom a push is for.
    private struct Target: Sendable {
        let number: Int
        let device: Int
        let isUrgent: Bool
        let origin: String
    }

    /// What a role makes of a request; `nil`: the store was out.
    private func pushes(
        to targets: [Target], _ ends: UnixTime, _ process: SimulatedProcess
    ) async -> [(number: Int, push: Push)]? {
        // Out: the origin asks again.
        guard let found = try? await process.store?.find(targets.map { Self.key($0.device) }) else {
            return nil
        }
        return zip(targets, found).compactMap { target, record in
            let record = record?.state == .live ? record : nil
            guard record != nil || !knowsOwn || target.device >= devices else { return nil }
            let push = Push(
                message: Self.message(target.number, device: target.device, at: record?.body),
                pushClass: target.isUrgent ? .urgent : .normal, origin: Secret(target.origin.utf8),
                // A device that nobody registered has no registration that could be gone.
                record: record.map { _ in Self.key(target.device) },
                touchedAt: record?.touchedAt ?? .distantPast,
                registeredAddress: record?.addressDigest, custodyEnds: ends,
                repeatIdentity: Secret("notification-\(target.number)".utf8))
            return (target.number, push)
        }
    }

    /// - Parameter address: `nil`: the one that the device has from the first.
    private static func message(_ number: Int, device: Int, at address: Secret? = nil) -> ProviderMessage {
        let address = address ?? Self.address(device, token: 0)
        let body = Secret("\(number)".utf8)
        return device % 2 == 0
            ? .fcm(FCMMessage(address: address, priority: .high, data: body))
            : .apns(
                APNsMessage(
                    token: address, bundle: SimulatedProcess.bundle, pushType: .alert, priority: 10,
                    payload: body))
    }

    /// Numbers from here on are of pushes that nobody owes when a process ends.
    private static let volatileNumber = 1 << 40

    /// Volatile pushes that overlap each other, to the first process.
    func volatileStream(until isOver: @escaping @Sendable () -> Bool) async {
        while !isOver() {
            let message = Self.message(Self.volatileNumber, device: scheduler.random(in: 0...devices - 1))
            let ends = scheduler.now + .seconds(600)
            _ = await ask(at: 0) { process in
                process.service?.volatileIntake.admit(
                    VolatileVerdict<Void>(pushes: [
                        VolatilePush(message: message, pushClass: .normal, custodyEnds: ends)
                    ]), instance: SimulatedProcess.instance)
            }
            await scheduler.pause(.milliseconds(150) ... .milliseconds(450))
        }
    }

    var someProcess: Int { scheduler.random(in: 0...processes.count - 1) }

    /// Asks some process; `nil` when nothing came back in time, or its machine died.
    ///
    /// - Parameter place: which; `nil`: whichever it comes to.
    func ask<Value: Sendable>(
        at place: Int? = nil, _ body: @escaping @Sendable (SimulatedProcess) async -> Value
    ) async -> Value? {
        let process = processes[place ?? someProcess]
        guard let machine = process.machine else { return nil }
        let reply = Reply<Value>()
        return await withUnsafeContinuation { (continuation: UnsafeContinuation<Value?, Never>) in
            reply.begin(continuation)
            let timeout = scheduler.at(scheduler.instant + .seconds(10)) { reply.end(nil) }
            machine.begin {
                let value = await body(process)
                self.scheduler.callOff(timeout)
                reply.end(value)
            }
        }
    }
}

/// One answer, once.
final class Reply<Value: Sendable>: Sendable {
    private let continuation = Mutex<UnsafeContinuation<Value?, Never>?>(nil)

    func begin(_ continuation: UnsafeContinuation<Value?, Never>) {
        self.continuation.withLock { $0 = continuation }
    }

    func end(_ value: Value?) {
        let waiting = continuation.withLock { continuation in
            defer { continuation = nil }
            return continuation
        }
        waiting?.resume(returning: value)
    }
}
