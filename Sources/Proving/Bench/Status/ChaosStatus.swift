import PushModel
import Secp256k1Keys
import Simulators
import StatusPush
import Synchronization

/// Status's part of a chaos trial: a Waku node, phones that register over it, and senders that ask for pushes
/// while the push notification server is killed.
final class ChaosStatus: ChaosCompanion {
    static let discussion = """
        Status's phones register beside it over a Waku node of this process, and senders ask for pushes: \
        what is reported as taken arrives, what is reported as failed is not sent, and a request \
        without an answer is asked again in other bytes, as senders do.
        """

    /// A notification under way.
    private struct Notice: Sendable {
        let entry: PushNotification
        let mark: String
        /// By which a report names it.
        var name: [UInt8] { entry.publicKey.reveal { Array($0) } }
    }

    /// Whose answer it is: a phone's, which registers, or that to the request of a number.
    private enum Waiting: Sendable {
        case phone
        case request(number: Int, [Notice])
    }

    private struct State {
        var ledger = ChaosStatusLedger()
        /// The relay of the life under way has polled.
        var isListening = false
        /// By device token: those whose registration was acknowledged, and all.
        var phones: [String: ChaosStatusPhone] = [:]
        var tokens: Set<String> = []
        /// By the id that they name.
        var registrations: [[UInt8]: PushNotificationRegistrationResponse] = [:]
        var requests = 0
    }

    /// A first registration costs the relay two keys of topics. A relay lives too short for hundreds.
    private static let phones = 8
    private static let senders = 4
    /// Notifications in one request: 1 to this many, each for another phone.
    private static let mostEntries = 3
    /// Requests of the last life: while the push service fails, and when it is well.
    private static let failingRequests = 4
    private static let lastRequests = 12
    /// From a failure that was told, so long for what must not come: two first steps of the back-off.
    private static let silentSpan = Duration.milliseconds(2_500)
    /// How long a relay that was started may take to listen: it reads whom it follows, and polls.
    private static let listenSpan = Duration.seconds(30)

    private let staged: StagedNode<Waiting>
    /// From the start on: the first relay may listen before anybody watches.
    private let notes: AsyncStream<WakuNodeNote>
    private let messages: AsyncStream<SimulatedWakuMessage>
    private let service: ChaosService
    private let bundle: String
    private let world: World
    private let state = Mutex(State())

    init(_ setting: ChaosSetting) async throws {
        (service, bundle, world) = (setting.service, setting.bundle, setting.world)
        staged = try await StagedNode(setting)
        (notes, messages) = (staged.node.notes(), staged.network.messages())
    }

    func stop() async { await staged.node.stop() }

    var ledger: ChaosStatusLedger { state.withLock(\.ledger) }

    var instance: StagedInstance { staged.instance("status-load") }

    func report(to report: inout BenchReport, directory _: String) -> Bool {
        let ledger = ledger
        ledger.write(to: &report)
        return ledger.hasPassed
    }

    // MARK: What is seen

    /// Follows what the relay under trial does at the node, and what it says, until cancelled.
    func watch() async {
        await withDiscardingTaskGroup { tasks in
            tasks.addTask {
                for await note in self.notes {
                    guard case .polled(.some) = note else { continue }
                    self.state.withLock { $0.isListening = true }
                }
            }
            tasks.addTask { for await message in self.messages { self.hear(message) } }
        }
    }

    /// False when the delivery is to none of its phones.
    func delivered(_ delivery: Delivery) -> Bool {
        state.withLock { state in
            guard state.tokens.contains(delivery.token) else { return false }
            let id = delivery.pushType == nil ? "" : delivery.id
            state.ledger.delivered(
                ChaosStatusPhone.mark(in: delivery.body) ?? "", id: id, at: delivery.receivedAt)
            return true
        }
    }

    /// The relay is gone: waits until its connections are, so that a poll that comes later is another's. Not
    /// for long: what the ledger judges has moments of its own.
    func killed(_ trial: ChaosTrial) async throws {
        let until = world.instant() + .milliseconds(100)
        while staged.node.openConnections > 0, world.instant() < until {
            try await trial.pause(milliseconds: 1)
        }
        state.withLock { $0.isListening = false }
    }

    /// Waits until the relay under trial polls the node.
    func untilListening(_ trial: ChaosTrial) async throws {
        let until = world.instant() + Self.listenSpan
        while !state.withLock(\.isListening), world.instant() < until {
            try await trial.pause(milliseconds: 5)
        }
        state.withLock { $0.ledger.waited(isListening: $0.isListening) }
    }

    private func hear(_ message: SimulatedWakuMessage) {
        if let (answer, waiting) = staged.heard(message) {
            // Sealed by the relay's clock, which is this machine's.
            let moment = UnixTime(milliseconds: message.timestamp / 1_000_000)
            return take(answer, for: waiting, at: moment)
        }
        // (What was said to the relay is heard, too.)
        let own = WakuTopic.partitioned(of: staged.pair.point).contentTopic
        guard message.contentTopic != own else { return }
        state.withLock { $0.ledger.couldNotRead() }
    }

    private func take(_ answer: MetadataMessage, for waiting: Waiting, at moment: UnixTime) {
        state.withLock { state in
            switch (answer.type, waiting) {
            case (.registrationResponse, .phone):
                // What does not parse is a fault, and told as one.
                guard let response = try? PushNotificationRegistrationResponse(reading: answer.payload) else {
                    return state.ledger.couldNotRead()
                }
                state.registrations[response.requestID.reveal { Array($0) }] = response
            case (.response, .request(let number, let notices)):
                // The same.
                guard let response = try? PushNotificationResponse(reading: answer.payload),
                    response.reports.count == notices.count
                else { return state.ledger.couldNotRead() }
                for (report, notice) in zip(response.reports, notices) {
                    let isItsOwn = report.publicKey.reveal { Array($0) } == notice.name
                    state.ledger.answered(
                        notice.mark, number: number, isItsOwn ? Self.outcome(report) : .wrong,
                        at: moment)
                }
            default: state.ledger.couldNotRead()
            }
        }
    }

    private static func outcome(_ report: PushNotificationReport) -> ChaosStatusLedger.Outcome {
        if report.success { return .taken }
        return report.error == .internalError ? .failed : .wrong
    }

    // MARK: What happens

    /// Registers phone after phone, and has senders ask, until the trial is ending.
    func publish(_ trial: ChaosTrial) async throws {
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask {
                repeat {
                    try await self.registerOne(trial)
                } while !trial.shared.isEnding && self.state.withLock(\.tokens.count) < Self.phones
            }
            for _ in 0..<Self.senders {
                tasks.addTask {
                    while !trial.shared.isEnding {
                        try await self.sendOne(trial)
                        try await trial.pause(milliseconds: 20 + trial.random.below(80))
                    }
                }
            }
            try await tasks.waitForAll()
        }
    }

    /// Has the last relay told of what fails and of what does not, and waits until all of it has come.
    func finish(_ trial: ChaosTrial) async throws {
        let kills = trial.shared.ledger { $0.kills }
        state.withLock { state in for kill in kills { state.ledger.killed(kill) } }
        try await untilListening(trial)
        service.fail()
        try await sendMany(Self.failingRequests, insists: false, trial)
        service.answerWell()
        let silence = world.instant() + Self.silentSpan
        try await sendMany(Self.lastRequests, insists: true, trial)
        let until = world.instant() + ChaosPlan.drainSpan
        while ledger.missing > 0, world.instant() < until { try await trial.pause(milliseconds: 20) }
        // What was reported as failed, and a double that is still under way, would be seen now.
        try await world.sleep(max(silence, world.instant() + .milliseconds(500)))
    }

    private func sendMany(_ count: Int, insists: Bool, _ trial: ChaosTrial) async throws {
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            for _ in 0..<count {
                let notices = makeNotices(trial)
                tasks.addTask { try await self.carry(notices, insists: insists, trial) }
            }
            try await tasks.waitForAll()
        }
    }

    /// Senders of one kind ask until it is taken, those of the other believe what they hear first.
    private func sendOne(_ trial: ChaosTrial) async throws {
        let notices = makeNotices(trial)
        if !notices.isEmpty { try await carry(notices, insists: trial.random.below(2) == 0, trial) }
    }

    private func makeNotices(_ trial: ChaosTrial) -> [Notice] {
        var phones = state.withLock { Array($0.phones.values) }
        var notices: [Notice] = []
        while notices.count <= trial.random.below(Self.mostEntries), !phones.isEmpty {
            let (entry, mark) = phones.remove(at: trial.random.below(phones.count)).entry(world)
            notices.append(Notice(entry: entry, mark: mark))
        }
        return notices
    }

    /// Asks, and asks again in other bytes where no answer comes in a sender's time, or where one says that
    /// something failed and the sender insists.
    private func carry(_ notices: [Notice], insists: Bool, _ trial: ChaosTrial) async throws {
        // The message's id stays: it is the chat's.
        let id = Secret(world.randomBytes(32))
        var (left, patience) = (notices, Patience(trial))
        while !left.isEmpty {
            guard !patience.isOver() else { return state.withLock { $0.ledger.wasNeverAnswered() } }
            let number = ask(left, id)
            let marks = left.map(\.mark)
            let isAnswered = try await within(StatusLimits.answerWait, trial) { state in
                marks.allSatisfy { state.ledger.outcome(of: $0, number: number) != nil }
            }
            guard isAnswered else {
                state.withLock { $0.ledger.wasUnanswered() }
                continue
            }
            let ledger = ledger
            left = left.filter { insists && ledger.outcome(of: $0.mark, number: number) == .failed }
            if !left.isEmpty { try await trial.pause(milliseconds: 100) }
        }
    }

    /// - Returns: the request's number.
    private func ask(_ notices: [Notice], _ id: Secret) -> Int {
        let key = Secp256k1KeyPair.generate(world)
        let request = PushNotificationRequest(requests: notices.map(\.entry), messageID: id)
        let message = staged.message(.request, request.encoded(), by: key, world)
        let now = world.now()
        let number = state.withLock { state in
            state.requests += 1
            state.ledger.asked(notices.map(\.mark), number: state.requests, at: now)
            return state.requests
        }
        staged.wait(key, .request(number: number, notices))
        staged.node.inject(message)
        return number
    }

    /// One more phone: registers until it is answered, each time with a higher version.
    private func registerOne(_ trial: ChaosTrial) async throws {
        let target = LoadDevice.make(trial.random.below(2) == 0 ? .apns : .fcm, world)
        service.register(target, bundle: bundle)
        var phone = ChaosStatusPhone(target, bundle: bundle, at: staged.pair.point, world)
        state.withLock { _ = $0.tokens.insert(target.token) }
        staged.wait(phone.key, .phone)
        var patience = Patience(trial)
        while !patience.isOver() {
            let (box, id) = phone.registration(world)
            staged.node.inject(staged.message(.registration, box, by: phone.key, world))
            guard try await within(StatusLimits.answerWait, trial, { $0.registrations[id] != nil }) else {
                continue
            }
            let answer = state.withLock { $0.registrations[id] }
            // It was taken, a kill took the answer, and the next relay has it from the node's store.
            if answer?.error == .versionMismatch { continue }
            state.withLock { [phone] state in
                guard answer?.success == true else { return state.ledger.wasRefused() }
                state.phones[phone.token] = phone
                state.ledger.didRegister()
            }
            return
        }
        state.withLock { $0.ledger.wasNeverAnswered() }
    }

    /// Waits until something holds; false when it does not after so long.
    private func within(
        _ span: Duration, _ trial: ChaosTrial, _ holds: (State) -> Bool
    ) async throws -> Bool {
        let until = world.instant() + span
        while !state.withLock({ holds($0) }) {
            guard world.instant() < until else { return false }
            try await trial.pause(milliseconds: 10)
        }
        return true
    }
}

/// How long somebody asks on: until the trial is ending, and then for as long as a last answer may take.
private struct Patience {
    private let trial: ChaosTrial
    private var until: ContinuousClock.Instant?

    init(_ trial: ChaosTrial) { self.trial = trial }

    mutating func isOver() -> Bool {
        guard trial.shared.isEnding else { return false }
        let now = trial.world.instant()
        let end = until ?? now + ChaosPlan.lastAnswerSpan
        until = end
        return now >= end
    }
}
