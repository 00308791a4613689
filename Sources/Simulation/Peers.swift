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
        var blame: Blame { .peer }
        var retry: RetryAdvice { .never }
    }

    private let scheduler: Scheduler
    private let book: Book
    private let processes: [SimulatedProcess]
    private let next = Mutex(0)
    let devices: Int

    init(_ scheduler: Scheduler, book: Book, processes: [SimulatedProcess], devices: Int) {
        self.scheduler = scheduler
        self.book = book
        self.processes = processes
        self.devices = devices
    }

    /// Number and device of a push.
    static func read(_ message: ProviderMessage) -> (number: Int, device: Int)? {
        let text = message.address.reveal { String(decoding: $0, as: UTF8.self) }
        let data =
            switch message {
            case .fcm(let message): message.data.reveal { String(decoding: $0, as: UTF8.self) }
            case .apns(let message): message.payload.reveal { String(decoding: $0, as: UTF8.self) }
            }
        guard let device = Int(text), let number = Int(data) else { return nil }
        return (number, device)
    }

    static func key(_ device: Int) -> RecordKey { RecordKey(space, Secret("device-\(device)".utf8)) }

    // MARK: One conversation each

    /// A device registers, and asks again until it hears that it did.
    func register(_ device: Int, version: UInt64) async {
        let now = scheduler.now
        let record = Record(
            key: Self.key(device), owner: RecordKey(Self.space, Secret("owner-\(device % 3)".utf8)),
            address: RecordKey(Self.space, Secret("address-\(device)".utf8)), version: version,
            touchedAt: now, body: Secret("body of \(device)".utf8))
        for _ in 0..<4 {
            let applied = await ask { process in
                // Out: asked again.
                try? await process.store?.apply([.put(record, if: .versionBelow(version))])
            }
            switch applied {
            case .committed??: return book.registered(device, version: version)
            // A try before this one was made after all.
            case .refused??: return
            case nil, .some(nil): await scheduler.pause(.milliseconds(100) ... .seconds(2))
            }
        }
    }

    /// An origin notifies one to three devices in one request, each with a number of its own.
    func notify(_ group: Int, isUrgent: Bool, custody: Duration, waits: Bool) async {
        let first = next.withLock { next in
            defer { next += group }
            return next
        }
        let numbers = Array(first..<first + group)
        let ends = scheduler.now + custody
        let pushes = numbers.map { number in
            push(number, device: scheduler.random(in: 0...devices - 1), isUrgent, ends)
        }
        for number in numbers { book.offered(number, custodyEnds: ends) }
        for _ in 0..<scheduler.random(in: 1...4) {
            let plan: ReplyPlan<[FirstOutcome]> =
                waits ? .afterFirstAttempt(deadline: .seconds(2)) { $0 } : .now([])
            let verdict = Verdict<[FirstOutcome], Fault>(
                pushes: pushes, reply: plan, refusal: { _ in Fault() })
            let outcomes = await ask { process -> [FirstOutcome]? in
                guard let service = process.service else { return nil }
                do {
                    return try await service.intake.admit(verdict, instance: SimulatedProcess.instance)
                } catch {
                    // Overloaded: the origin asks again.
                    return nil
                }
            }
            if let outcomes, let outcomes {
                for number in numbers { book.owes(number, now: scheduler.now) }
                for (number, outcome) in zip(numbers, outcomes) where outcome == .known(.accepted) {
                    book.replied(accepted: number)
                }
                // Sometimes the answer is lost on the way, and the origin asks once more.
                guard scheduler.chance(10) else { return }
            }
            guard scheduler.now < ends else { return }
            await scheduler.pause(.milliseconds(50) ... .seconds(3))
        }
    }

    private func push(_ number: Int, device: Int, _ isUrgent: Bool, _ ends: UnixTime) -> Push {
        let address = Secret("\(device)".utf8)
        let body = Secret("\(number)".utf8)
        let message: ProviderMessage =
            device % 2 == 0
            ? .fcm(FCMMessage(address: address, priority: .high, data: body))
            : .apns(
                APNsMessage(
                    token: address, bundle: SimulatedProcess.bundle, pushType: .alert, priority: 10,
                    payload: body))
        return Push(
            message: message, pushClass: isUrgent ? .urgent : .normal,
            origin: Secret("origin-\(number % 3)".utf8), record: Self.key(device),
            touchedAt: .distantPast, custodyEnds: ends, repeatIdentity: Secret("notification-\(number)".utf8))
    }

    /// Asks some process; `nil` when nothing came back in time, or its machine died.
    func ask<Value: Sendable>(
        _ body: @escaping @Sendable (SimulatedProcess) async -> Value
    ) async -> Value? {
        let process = processes[scheduler.random(in: 0...processes.count - 1)]
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
private final class Reply<Value: Sendable>: Sendable {
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
