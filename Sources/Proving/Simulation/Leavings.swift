import Delivery
import PushModel
import Synchronization

/// What is owed to devices whose registrations end, or change their address: it may go with them.
struct Leavings {
    /// When pushes have gone with a registration, and whose commit it was. What a sender asks for again has
    /// another name, and is another registration's.
    struct Gone {
        let at: Duration
        let process: Int
        /// The registration goes on with that token, and so does what is addressed to it; `nil`: it ends.
        let kept: Int?
    }

    /// What a device asks for, before it hears that it was done.
    struct Leaving {
        /// What is owed to it.
        let pushes: [PushID]
        let kept: Int?
    }

    /// The end of a registration.
    struct End {
        let process: Int
        /// When its commit stood; `nil`: nobody has heard.
        var at: Duration?
    }

    /// Registrations that a push service's word may have ended, and what was owed to them with them.
    var byWord: [Int: End] = [:]
    /// When a device last heard that its registration has ended, or changed its address.
    var last: [Int: End] = [:]
    /// The tokens under which devices have heard that they are registered.
    var tokens: [Int: Int] = [:]
    /// The tokens with which devices have asked to be registered since then: one that they did not hear of
    /// may stand all the same, and goes when another one does.
    var asked: [Int: Set<Int>] = [:]
    /// Devices whose registrations may have ended or not.
    var adrift: Set<Int> = []
    /// How often each device's registration has ended, or changed its address.
    var counts: [Int: Int] = [:]
    private var gone: [PushID: Gone] = [:]
    /// The token that each push is addressed to. A device may have registered with its new one, and not have
    /// heard so: then what came since is addressed to it before it is heard of.
    var addressed: [PushID: Int] = [:]
    /// The sandbox has refused a credential for long enough to halt a lane: what was sent on to it ends by
    /// production's word, which knows none of its devices (decision 0079).
    var isSandboxRefused = false

    /// What its own process has on its way to a socket by then may arrive there.
    static let underWay = Duration.seconds(1)
    /// Another process hears of it with its next renewal, or has no lease any more.
    static let elsewhere = DeliveryLimits().aliveFor + underWay

    /// When a push has gone with its registration; `nil`: it has not.
    func gone(_ id: PushID) -> Gone? {
        guard let one = gone[id], one.kept == nil || one.kept != addressed[id] else { return nil }
        return one
    }

    mutating func went(_ id: PushID, _ one: Gone) {
        // What has ended is not begun again by a registration with another token.
        if let before = gone[id], before.kept == nil, one.kept != nil { return }
        gone[id] = one
    }
}

extension PushLedger.State {
    /// Whether a push may end with its registration.
    func mayGo(_ page: PushLedger.Page) -> Bool {
        dead.contains(page.device) || leavings.adrift.contains(page.device)
            || page.leaving < leavings.counts[page.device] ?? 0 || isCutOff(page.device)
    }

    /// Calls to a device whose registration ended do not wait any more.
    mutating func letGo(of device: Int) {
        for (id, one) in paces.urgent where pages[one.number]?.device == device { paces.urgent[id] = nil }
    }

    /// Whether nobody can be asked about a device now.
    func isCutOff(_ device: Int) -> Bool {
        leavings.isSandboxRefused && SimulatedPushService.isInSandbox(device)
    }
}

extension PushLedger {
    /// A push service's word is about to end a registration.
    func ends(_ device: Int, by process: Int) {
        state.withLock { $0.leavings.byWord[device] = Leavings.End(process: process) }
    }

    func ended(_ device: Int) {
        tell(device: device, "a word about a push may have ended the registration")
        let at = scheduler.elapsed
        state.withLock { state in
            state.leavings.byWord[device]?.at = at
            state.letGo(of: device)
        }
    }

    /// A push service takes up what the store does not owe any more. What was on its way when a late answer
    /// ended it, or its registration, arrives all the same (decisions 0077 and 0081).
    func takenUnowed(_ push: OwedPush, _ number: Int, by life: Life) {
        state.withLock { state in
            let sent = state.words.sent[Answered(life: life, id: push.id)] ?? Words.Sent()
            // Sent before its lane could act on that answer, as in ``check(_:_:by:at:in:)``.
            if let ended = sent.endedLateAt, sent.at <= ended + Words.digestion { return }
            guard let page = state.pages[number] else { return }
            let leavings = state.leavings
            if leavings.adrift.contains(page.device) { return }
            for end in [leavings.byWord[page.device], leavings.last[page.device]] {
                guard let end else { continue }
                let span = end.process == life.process ? Leavings.underWay : Leavings.elsewhere
                if end.at.map({ sent.at <= $0 + span }) ?? true { return }
            }
            state.broke(.sentByStranger, number)
        }
    }

    /// A registration is about to end, or to have that token.
    ///
    /// - Parameter token: `nil`: it ends.
    /// - Returns: with pushes of it that the store has; `nil`: it stays as it is.
    func leaves(_ device: Int, for token: Int?) -> Leavings.Leaving? {
        state.withLock { state in
            if let token {
                let isOne = state.leavings.asked[device, default: []].union([token]).count == 1
                state.leavings.asked[device, default: []].insert(token)
                if isOne, state.leavings.tokens[device] ?? token == token { return nil }
            }
            state.leavings.adrift.insert(device)
            if token == nil { state.registrations[device] = nil }
            let pushes = state.numbers.compactMap { id, number -> PushID? in
                // A push service may have taken it while its process died: then its row is there all the
                // same.
                guard let page = state.pages[number], page.device == device, page.isWritten else {
                    return nil
                }
                return id
            }
            return Leavings.Leaving(pushes: pushes, kept: token)
        }
    }

    /// It has: those pushes are not sent any more, but for what is addressed to the token that it has now.
    ///
    /// - Parameter version: what it had heard of below this one has ended; `nil`: it goes on.
    func left(
        _ device: Int, _ leaving: Leavings.Leaving?, by process: Int, below version: UInt64? = nil
    ) {
        guard let leaving else { return }
        tell(device: device, "the device hears that its registration has ended, or has another address")
        let at = scheduler.elapsed
        state.withLock { state in
            state.leavings.adrift.remove(device)
            // A version that was put before and heard of meanwhile has ended with it.
            if let version, state.registrations[device] ?? version < version {
                state.registrations[device] = nil
            }
            state.leavings.counts[device, default: 0] += 1
            state.leavings.last[device] = Leavings.End(process: process, at: at)
            state.letGo(of: device)
            for push in leaving.pushes where !state.settled.contains(push) {
                state.leavings.went(push, Leavings.Gone(at: at, process: process, kept: leaving.kept))
            }
        }
    }

    /// The token of a registration is dead: the first push to it ends it, until it is heard of anew.
    func forgoes(_ device: Int) {
        state.withLock { state in
            state.registrations[device] = nil
            state.leavings.adrift.insert(device)
        }
    }
}
