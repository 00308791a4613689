import PushModel

/// How fast a lane sends while its service says nothing but "later" (decisions 0014 and 0080). A value.
///
/// Each push has its own back-off, but a lane that owes thousands would go on asking thousands of times a
/// second: retries that sleep make room for pushes that wait in the store. So the lane slows down too: after
/// a number of refusals with no other answer it sends one push a tick, whatever it owes; an acceptance, or an
/// answer about one push, doubles that at each tick until nothing is held back. The most urgent push always
/// goes first.
///
/// Refusals that concern one or two addresses slow only these.
struct Throttle: Sendable {
    /// Sends in one tick; `nil`: no limit.
    private(set) var allowance: Int?
    private var left = 0
    private var refusalsInARow = 0
    /// Some of the addresses that these refusals were about: as many as matter.
    private var refusedAddresses: Set<Int> = []
    private var dealtWith = 0
    private var refused = 0
    private let refusals: Int
    private let addresses: Int
    private let open: Int

    /// What an answer begins.
    enum Change: Sendable, Hashable {
        case none, slowed
        /// As many refusals as begin it were about these addresses alone.
        case few(Set<Int>)
    }

    /// - Parameters:
    ///   - refusals: answers in a row that begin it,
    ///   - addresses: if they were about so many addresses.
    ///   - open: with this many sends in a tick, nothing is held back.
    init(refusals: Int, addresses: Int = 1, open: Int) {
        self.refusals = refusals
        self.addresses = addresses
        self.open = open
    }

    init(limits: DeliveryLimits) {
        self.init(
            refusals: limits.throttleRefusals, addresses: limits.throttleAddresses, open: limits.lanePushes)
    }

    /// Answers by which the service itself asks for time: not those about one device, one connection or one
    /// token, and not silence, which the connections handle.
    static func isRefusal(_ answer: Answer) -> Bool {
        guard case .retry = answer.outcome, answer.isAnswered else { return false }
        return answer.reason.meaning.contains(.asksForTime)
    }

    /// A service that says that a push's device is gone has processed the push, as with an acceptance.
    /// Otherwise a lane that owes only such pushes would stay slow as long as it owes them.
    private static func isDealtWith(_ answer: Answer) -> Bool {
        switch answer.outcome {
        case .accepted: true
        case .rejected, .unregistered, .misconfigured(.target): answer.isAnswered
        case .retry, .misconfigured(.credential): false
        }
    }

    var maySend: Bool { allowance == nil || left > 0 }

    mutating func sent() { if allowance != nil { left -= 1 } }

    /// - Parameter address: a number that is the same for the same address and differs for others.
    mutating func note(_ answer: Answer, address: Int) -> Change {
        if Self.isDealtWith(answer) {
            forget()
            dealtWith += 1
            return .none
        }
        guard Self.isRefusal(answer) else { return .none }
        refusalsInARow += 1
        if refusedAddresses.count < addresses { refusedAddresses.insert(address) }
        refused += 1
        guard allowance == nil, refusalsInARow >= refusals else { return .none }
        guard refusedAddresses.count >= addresses else {
            defer { forget() }
            return .few(refusedAddresses)
        }
        (allowance, left) = (1, 0)
        return .slowed
    }

    private mutating func forget() {
        refusalsInARow = 0
        // Nearly always empty, so that acceptances cost only a comparison.
        if !refusedAddresses.isEmpty { refusedAddresses.removeAll(keepingCapacity: true) }
    }

    /// True when nothing is held back from this tick on.
    mutating func tick() -> Bool {
        defer { (dealtWith, refused) = (0, 0) }
        guard let current = allowance else { return false }
        var next = current
        if dealtWith > refused { next *= 2 } else if dealtWith == 0, refused > 0 { next = max(1, next / 2) }
        allowance = next < open ? next : nil
        left = next
        return allowance == nil
    }
}
