/// Why a push service answered as it did: its own literal word.
///
/// Made of static text alone, so that no foreign text can reach a log or a metric label: a word that we do
/// not know becomes `.unknown`. The words of a service are in its file, with what they mean for delivery; the
/// words here are ours.
package struct Reason: Sendable, Hashable, CustomStringConvertible {
    /// What delivery wants to know of a word, whatever service it comes from.
    package struct Meaning: OptionSet, Sendable, Hashable {
        package let rawValue: UInt8
        package init(rawValue: UInt8) { self.rawValue = rawValue }

        /// It blames what a client chose: the address, its topic, its project. It counts as a target fault
        /// before any protocol's override (decision 0048).
        package static let blamesTarget = Meaning(rawValue: 1)
        /// It is about an address that the service knows, so the service has accepted our credential.
        package static let provesCredential = Meaning(rawValue: 2)
        /// The service itself asks for time: it is not about one device, one connection or one credential.
        package static let asksForTime = Meaning(rawValue: 4)
        /// The address may belong to the service's other environment.
        package static let mayBeElsewhere = Meaning(rawValue: 8)
        /// It is about how much one address was sent: the wait is that address's (decision 0080).
        package static let limitsAddress = Meaning(rawValue: 16)
        /// It refuses our credential for a while, and another connection or time may cure it. Several in a
        /// row halt a lane as a misconfigured credential does (decision 0079).
        package static let doubtsCredential = Meaning(rawValue: 32)
        /// The credential is for the service's other environment alone: in this one no address can be judged
        /// (decision 0079).
        package static let isForOtherEnvironment = Meaning(rawValue: 64)
        /// It cannot be read and may or may not be final: a few such answers to one push end it (decision
        /// 0078).
        package static let endsAfterSome = Meaning(rawValue: 128)
    }

    private let word: StaticString
    package let meaning: Meaning

    package init(_ word: StaticString, _ meaning: Meaning = []) {
        precondition(word.hasPointerRepresentation, "a word has letters")
        self.word = word
        self.meaning = meaning
    }

    /// The literal word.
    package var rawValue: String { word.description }
    package var description: String { rawValue }

    package static func == (left: Reason, right: Reason) -> Bool {
        guard left.word.utf8CodeUnitCount == right.word.utf8CodeUnitCount, left.meaning == right.meaning
        else { return false }
        if left.word.utf8Start == right.word.utf8Start { return true }
        return left.word.withUTF8Buffer { left in right.word.withUTF8Buffer { left.elementsEqual($0) } }
    }

    package func hash(into hasher: inout Hasher) {
        word.withUTF8Buffer { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }

    package static let ok = Reason("Ok")
    package static let unknown = Reason("Unknown", .asksForTime)
    /// A refusal whose body is not in the service's own form.
    package static let unreadable = Reason("Unreadable", [.asksForTime, .endsAfterSome])
    package static let connectionLost = Reason("ConnectionLost")
    package static let deadlineExceeded = Reason("DeadlineExceeded")
    package static let notReached = Reason("NotReached")
    package static let leaseRanOut = Reason("LeaseRanOut")
    package static let tooLargeToSend = Reason("TooLargeToSend")
    package static let credentialUnavailable = Reason("CredentialUnavailable")
    /// An answer in another form than the service's own: of a proxy, or of a front end.
    package static let foreignAnswer = Reason("ForeignAnswer")
    package static let custodyEnded = Reason("CustodyEnded")

    /// Words of no service.
    package static let ours = [
        ok, unknown, unreadable, connectionLost, deadlineExceeded, notReached, leaseRanOut, tooLargeToSend,
        credentialUnavailable, foreignAnswer, custodyEnded
    ]
}

/// What one push service's answer means for one push (docs/push-services.md §1).
package enum Outcome: Sendable, Hashable {
    /// The service took custody.
    case accepted
    /// A passing fault, or the service asks for time. `after` is what the service asked for, the least wait.
    case retry(after: Duration?)
    /// The address is dead since that moment; `nil`: since the request was sent.
    case unregistered(since: UnixTime?)
    /// The request is wrong and will never succeed.
    case rejected
    /// Our credential, topic, project or environment is wrong. Never blames the address.
    case misconfigured(Scope)

    /// How far a misconfiguration reaches (decision 0048).
    package enum Scope: Sendable, Hashable {
        /// The key, JWT or OAuth grant: several in a row halt the lane whose answers they are. One that comes
        /// with ``Answer/Fate/unprocessed`` is our own finding, after several answers, and is enough.
        case credential
        /// The topic or target that a client chose: drops this push.
        case target
    }
}

/// The five words for counting, for marks and for metric labels.
package enum OutcomeKind: UInt8, Sendable, Hashable, CaseIterable {
    case accepted = 1, retry = 2, unregistered = 3, rejected = 4, misconfigured = 5

    package init(_ outcome: Outcome) {
        switch outcome {
        case .accepted: self = .accepted
        case .retry: self = .retry
        case .unregistered: self = .unregistered
        case .rejected: self = .rejected
        case .misconfigured: self = .misconfigured
        }
    }

    package var label: String {
        switch self {
        case .accepted: "accepted"
        case .retry: "retry"
        case .unregistered: "unregistered"
        case .rejected: "rejected"
        case .misconfigured: "misconfigured"
        }
    }
}

/// One answer of a push service, judged.
package struct Answer: Sendable {
    package var outcome: Outcome
    package var reason: Reason
    /// When the request left, by the wall clock: an answer without a time counts as of then.
    package var sentAt: UnixTime
    /// Whether the service answered and, if not, whether it may still have processed the request.
    package var fate: Fate
    /// Of a request that was given up: the service may answer it yet.
    package var late: LateAnswer?

    package enum Fate: Sendable, Hashable {
        /// These are the service's own words.
        case answered
        /// No service has looked at the request.
        case unprocessed
        /// It may have been processed, or not.
        case unknown
        /// Refused by us, without asking the service: it says something about the push and nothing about the
        /// service.
        case local
    }

    package init(_ outcome: Outcome, _ reason: Reason, sentAt: UnixTime, fate: Fate = .answered) {
        self.outcome = outcome
        self.reason = reason
        self.sentAt = sentAt
        self.fate = fate
    }
}

/// What may yet become of a request that was given up with its fate unknown.
package struct LateAnswer: Sendable {
    private let wait: @Sendable () async -> Answer?

    /// - Parameter wait: ends by cancellation too, with `nil`.
    package init(_ wait: @escaping @Sendable () async -> Answer?) { self.wait = wait }

    /// The service's own answer; `nil` if none has come while we listened. To be asked once.
    package func answer() async -> Answer? { await wait() }
}
