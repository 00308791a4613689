import PushModel

/// How fast a lane sends while its service says nothing but "later" (decisions 0014 and 0080). A value.
///
/// Each push has its own back-off, but a lane that owes thousands would go on asking thousands of times a
/// second: what sleeps makes room for what waits in the store. So the lane learns too: after so many
/// refusals without another word it sends one push a tick, whatever it owes; an acceptance, or a word about
/// one push, doubles that at each tick until nothing is held back. The most urgent push goes first, as ever.
///
/// Refusals of one or two addresses are these addresses' own matter, and slow nobody else.
struct Throttle: Sendable {
    /// Sends in one tick; `nil`: as many as go.
    private(set) var allowance: Int?
    private var left = 0
    private var refusalsInARow = 0
    /// Some of the addresses that these were about: as many as matter.
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
    ///   - open: with so many sends in a tick nothing is held back any more.
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
    /// token, and no silence, which is the connections' business.
    static func isRefusal(_ answer: Answer) -> Bool {
        guard case .retry = answer.outcome, answer.isAnswered else { return false }
        return answer.reason.meaning.contains(.asksForTime)
    }

    /// A service that says of a push that its device is gone has looked at it, as if it had taken it: else a
    /// lane that owes nothing but such pushes would stay slow for as long as it owes them.
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
        // Nearly always empty: acceptances cost a comparison.
        if !refusedAddresses.isEmpty { refusedAddresses.removeAll(keepingCapacity: true) }
    }

    /// True when from this tick on nothing is held back any more.
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
