/// A push that may leave now: its lane has checked that the process still owns it.
///
/// Only a lane grants one. `sendBefore` is the moment after which the bytes must not reach a socket, because
/// another process may by then have taken the push over (docs/architecture.md, Leases).
///
/// A class, because it goes through several tasks and the compiler does not know the size of an instant.
package final class LeasedPush: Sendable {
    package let push: OwedPush
    package let sendBefore: ContinuousClock.Instant
    /// When the caller stops waiting; `nil`: when the service's deadline ends.
    package let answerBy: ContinuousClock.Instant?

    /// Grants a lease on a push of the store. For lanes and for tests of providers.
    package init(
        granting push: OwedPush, sendBefore: ContinuousClock.Instant,
        answerBy: ContinuousClock.Instant? = nil
    ) {
        precondition(push.custody == .durable, "a volatile push goes to a direct provider only")
        self.push = push
        self.sendBefore = sendBefore
        self.answerBy = answerBy
    }

    /// Grants a lease on a push of either custody, which a direct provider alone can be given.
    package init(granting push: OwedPush, to _: DirectLeave, sendBefore: ContinuousClock.Instant) {
        self.push = push
        self.sendBefore = sendBefore
        answerBy = nil
    }
}

/// The right to send one request: a stream that is free on a connection that stands.
package protocol SendSlot: Sendable {
    /// Gives the stream back unused.
    func release()
}

/// Where the right to send one request comes from.
package protocol SlotSource: Sendable {
    associatedtype Slot: SendSlot
    /// Waits until a request could leave at once. A lane picks its most urgent push only after this.
    func reserve() async throws(CancellationError) -> Slot
    /// The same without a wait, which costs several of the task's blocks; `nil`: only ``reserve()`` can tell.
    func reserveAtOnce() -> Slot?
}

/// A way to one push service for one lane.
package protocol Provider: SlotSource {
    var lane: LaneName { get }
    /// The executor on which tasks that send through this provider run best: that of its sockets. `nil`: any.
    var executor: (any TaskExecutor)? { get }
    /// Keeps connections until cancelled.
    func run() async throws
    /// Sends once. Every fault comes back as an answer; the request's deadline bounds the wait. Cancelling
    /// the task does not end a request under way: its answer is still owed to the push.
    ///
    /// An urgent push of unknown fate is not sent again, so it leaves only on a connection that was just
    /// heard from. The answer of a request that was given up may have a ``LateAnswer``.
    func send(_ leased: LeasedPush, on slot: Slot) async -> Answer
    /// What the provider has counted so far, for the operator. Nothing is decided by it.
    func figures() -> [ProviderFigure]
    /// Stops with the process: from now on answers are waited for no longer than this span.
    func windDown(within span: Duration)
}

extension SlotSource {
    /// By default nothing: for providers whose reservations are cheap.
    package func reserveAtOnce() -> Slot? { nil }
}

extension Provider {
    package var executor: (any TaskExecutor)? { nil }
    /// By default nothing: for providers whose requests end soon enough by themselves.
    package func windDown(within span: Duration) {}
    /// By default none: counting is optional.
    package func figures() -> [ProviderFigure] { [] }
}

/// A provider that speaks to Apple or Google itself, so that nobody between sees an address, as a protocol
/// asks for ("direct integrations … no intermediary services"). One that hands pushes to another relay must
/// not conform, and can then lease no volatile push.
package protocol DirectProvider: Provider {}

/// What a lane needs to lease volatile pushes. Only a direct provider can be asked for it.
package struct DirectLeave: Sendable {
    package init(of _: some DirectProvider) {}
}

/// One figure of a provider.
package struct ProviderFigure: Sendable {
    /// Letters, digits and underscores; a total ends in `_total`. Unique among the provider's figures.
    package let name: StaticString
    package let value: Int
    /// Whether it only grows; otherwise it is the state of the moment.
    package let isTotal: Bool

    package static func total(_ name: StaticString, _ value: Int) -> ProviderFigure {
        ProviderFigure(name: name, value: value, isTotal: true)
    }
    package static func gauge(_ name: StaticString, _ value: Int) -> ProviderFigure {
        ProviderFigure(name: name, value: value, isTotal: false)
    }
}
