package import PushModel

/// Whether a lane may send (DESIGN §2.5). A value: answers in, state out.
///
/// Two things halt a lane: a fault of its credential, at once and for every lane of that credential; and
/// target faults, only when its last answers hold enough *distinct* addresses with them and no acceptance,
/// since a topic or a token that a client chose must never stop an app.
package struct Breaker: Sendable {
    package enum State: Sendable, Hashable { case open, halted(Cause) }
    package enum Cause: Sendable, Hashable { case credential, targets }

    package enum Change: Sendable, Hashable { case none, halted(Cause), resumed }

    package private(set) var state: State = .open
    /// From the halt until the next acceptance no registration is expired for target reasons.
    package private(set) var sparesRegistrations = false
    private var recent: [Int?] = []
    private var next = 0
    private let answers: Int
    private let addresses: Int

    package init(answers: Int, addresses: Int) {
        self.answers = answers
        self.addresses = addresses
    }

    /// Reasons that blame the target. They count before a protocol's override.
    package static func isTargetFault(_ answer: Answer) -> Bool {
        switch answer.reason {
        case .badDeviceToken, .deviceTokenNotForTopic, .senderIdMismatch, .topicDisallowed, .missingTopic,
            .badTopic:
            true
        default: answer.outcome == .misconfigured(.target)
        }
    }

    /// - Parameter address: any number that is the same for the same address and differs for others.
    package mutating func note(_ answer: Answer, address: Int) -> Change {
        if answer.outcome == .misconfigured(.credential) {
            defer { state = .halted(.credential) }
            return state == .halted(.credential) ? .none : .halted(.credential)
        }
        if answer.outcome == .accepted {
            recent.removeAll(keepingCapacity: true)
            next = 0
            sparesRegistrations = false
            defer { state = .open }
            return state == .open ? .none : .resumed
        }
        guard answer.fate == .answered else { return .none }
        let isFault = Self.isTargetFault(answer)
        remember(isFault ? address : nil)
        guard isFault, state == .open, Set(recent.compactMap(\.self)).count >= addresses else { return .none }
        state = .halted(.targets)
        sparesRegistrations = true
        return .halted(.targets)
    }

    /// Another lane of the same credential met its fault.
    package mutating func haltForCredential() { if state == .open { state = .halted(.credential) } }
    /// Another lane of the same credential was accepted again.
    package mutating func resumeFromCredential() { if state == .halted(.credential) { state = .open } }

    /// The answers since the last acceptance, at most as many as the breaker looks back over.
    private mutating func remember(_ address: Int?) {
        if recent.count < answers {
            recent.append(address)
        } else {
            recent[next] = address
            next = (next + 1) % answers
        }
    }
}
