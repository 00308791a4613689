import CWiping
import NIOCore
import NIOPosix
package import PushModel
import Synchronization

/// Bounds of look-ups, of each process.
package enum LookUpLimits {
    /// Threads for hosts that the operator has named: two that are slow, each with three questions under way.
    static let ownThreads = 6
    /// Look-ups of such hosts that wait for a thread: more than there are lanes, relays and fetches.
    static let ownWaiting = 256
    /// Threads for hosts of peers' choice. Four slow ones leave none, for as long as a look-up takes.
    static let peerThreads = 4
    /// Such look-ups that wait for a thread: as many as fetches from such hosts at one time.
    static let peerWaiting = 16
    /// How long each name server is asked about a peer's host, once: with three of them, about as long as a
    /// fetch may take in all.
    package static let peerSeconds: Int32 = 2
    /// After this time each family is also looked up by itself. Some name servers never answer for one
    /// family, and the system's look-up of both waits for it longer than a connection may take.
    static let patience = Duration.seconds(1)
}

/// The system's resolver, on threads of its own. A cancelled caller does not wait for it, and a look-up that
/// has not begun when its caller leaves never does.
///
/// The system cannot cancel a look-up, so whoever chooses the name decides how long a thread is busy. Hosts
/// of peers' choice therefore have separate threads.
package final class SystemResolver: HostResolver {
    /// What is asked for.
    package enum Family: Sendable, Hashable { case both, v4, v6 }

    /// For hosts that the operator has named: push services, token endpoints, relays, webhooks.
    package static let own = SystemResolver(
        threads: LookUpLimits.ownThreads, waiting: LookUpLimits.ownWaiting, patience: LookUpLimits.patience
    ) { lookUp($0, $1) }
    /// For hosts of peers' choice.
    package static let peers = SystemResolver(
        threads: LookUpLimits.peerThreads, waiting: LookUpLimits.peerWaiting
    ) { lookUpBriefly($0) }

    private struct Job: Sendable {
        let lookUp: LookUp
        let family: Family
    }

    private struct State {
        var waiting: [Job] = []
        var running = 0
    }

    private let threads: Int
    private let limit: Int
    private let patience: Duration?
    private let find: @Sendable (String, Family) -> [IPAddress]?
    private let pool: NIOThreadPool
    private let state = Mutex(State())

    /// - Parameters:
    ///   - threads: look-ups at one time.
    ///   - waiting: look-ups that wait for a thread; one more fails at once.
    ///   - patience: after which each family is asked for by itself too, and the first that is found is the
    ///     answer (RFC 8305 §3); `nil`: never.
    ///   - find: blocks; no address: nobody knows; `nil`: there is no such name.
    package init(
        threads: Int, waiting: Int, patience: Duration?,
        _ find: @escaping @Sendable (String, Family) -> [IPAddress]?
    ) {
        self.threads = threads
        limit = waiting
        self.patience = patience
        self.find = find
        pool = NIOThreadPool(numberOfThreads: threads)
    }

    /// The same for both families alone.
    package convenience init(
        threads: Int, waiting: Int, _ find: @escaping @Sendable (String) -> [IPAddress]?
    ) {
        self.init(threads: threads, waiting: waiting, patience: nil) { host, _ in find(host) }
    }

    /// Look-ups that wait for a thread, and those that have one.
    package var load: (waiting: Int, running: Int) { state.withLock { ($0.waiting.count, $0.running) } }

    package func begin(_ lookUp: LookUp) {
        enter(Job(lookUp: lookUp, family: .both))
        guard let patience, !lookUp.isOver else { return }
        let span = TimeAmount.milliseconds(patience.wholeMilliseconds)
        _ = MultiThreadedEventLoopGroup.singleton.next().scheduleTask(in: span) {
            for family in [Family.v6, .v4] { self.enter(Job(lookUp: lookUp, family: family)) }
        }
    }

    package func leave(_ lookUp: LookUp) {
        state.withLock { $0.waiting.removeAll { $0.lookUp === lookUp } }
    }

    private func enter(_ job: Job) {
        // It was answered, or its caller had left, before it came here.
        if job.lookUp.isOver { return }
        let (starts, isTaken) = state.withLock { state in
            if state.running < threads {
                state.running += 1
                return (true, true)
            }
            guard state.waiting.count < limit else { return (false, false) }
            state.waiting.append(job)
            return (false, true)
        }
        guard isTaken else { return tell(job, []) }
        guard starts else { return }
        // With the first look-up alone: a relay whose hosts are addresses, or whose peers name none, has no
        // threads that wait.
        pool.start()
        pool.submit { state in self.work(job, isActive: state == .active) }
    }

    /// One thread's work: this look-up, and then what waits, first come, first served.
    private func work(_ first: Job, isActive: Bool) {
        var next: Job? = first
        // Ends: each round takes one of those that wait, and there is a bound on them.
        while let job = next {
            let found = isActive && !job.lookUp.isOver ? find(job.lookUp.host, job.family) : []
            // The resolver works on the stack, and a pool's thread may not be called again for long.
            sealbell_wipe_stack()
            tell(job, found)
            next = state.withLock { state in
                if state.waiting.isEmpty {
                    state.running -= 1
                    return nil
                }
                return state.waiting.removeFirst()
            }
        }
    }

    /// If one family has no address, this says nothing about the other.
    private func tell(_ job: Job, _ found: [IPAddress]?) {
        switch found {
        case nil: if job.family == .both { job.lookUp.answerUnknown() }
        case let found?: if job.family == .both || !found.isEmpty { job.lookUp.answer(found) }
        }
    }
}
