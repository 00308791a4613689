import PushModel

/// Every bound of the delivery core, with its reason.
///
/// With several relays on one store each has these for itself, unless a line says otherwise; `docs/limits.md`
/// says what that makes of all of them together.
package struct DeliveryLimits: Sendable {
    /// Pushes of one lane in memory. At about 2 KiB each that is 8 MiB; more would only be a longer queue,
    /// since the store keeps the rest and hands it back by class and origin (docs/architecture.md).
    package var lanePushes = 4_096
    /// Pushes that one claim brings: the store writes nothing else meanwhile, and a call that comes must not
    /// wait for four thousand rows.
    package var claimRows = 1_000
    /// No request to a push service takes longer, whatever its provider has learned: the longest deadline of
    /// `HTTP2Client`.
    package var requestDeadline: Duration = .seconds(60)
    /// A process is alive for this long after a renewal began.
    package var aliveFor: Duration = .seconds(20)
    /// In the last part of that span nothing is sent any more: bytes may stand in a socket's buffers, or the
    /// process may stand still right before it hands them over. A lease covers the sending, and not the time
    /// until the answer (decision 0077).
    package var leaseMargin: Duration = .seconds(10)
    /// Between renewals: three may fail before the lease ends.
    package var renewEvery: Duration = .seconds(5)
    /// Between looks for what dead processes left, give or take a quarter, so that those who live do not all
    /// look at once. One look is one short read where nobody has died.
    package var lookEvery: Duration = .seconds(10)
    /// Between sweeps of ended custody and of records that may go.
    package var sweepEvery: Duration = .seconds(60)
    /// The core's tick: deadlines of replies and due retries are seen within this span.
    package var tick: Duration = .milliseconds(100)
    /// The same while no lane owes anything and no reply waits. It bounds how long a wake-up could be missed,
    /// and how late a suspension of this process is noticed: a tenth of what ends its share (``aliveFor``).
    package var restTick: Duration = .seconds(1)
    /// The lanes' counts of parked pushes are set right once in so many ticks' time.
    package var recountTicks = 50
    /// First step of the back-off of one push (docs/push-services.md §6), which stands in its row: anyone who
    /// sends it next keeps to it.
    package var backoffBase: Duration = .seconds(1)
    /// Its cap while single pushes fail.
    package var backoffCap: Duration = .seconds(60)
    /// A service's own `Retry-After` is honoured up to here; what asks for more is asked again after it.
    package var retryAfterCap: Duration = .seconds(15 * 60)
    /// The same for an origin's calls, whose waits are the protocol's own: a registration is tried once an
    /// hour in the end, and a relay may ask for as long.
    package var callRetryCap: Duration = .seconds(60 * 60)
    /// A retry due within this span stays in memory; a later one waits in the store.
    package var keepRetryWithin: Duration = .seconds(5)
    /// Answers in a row by which a service asks for time, before the lane itself is slowed: as many as the
    /// breaker looks back over.
    package var throttleRefusals = 100
    /// Distinct addresses that these must be about, else the addresses wait instead of the lane: a refusal
    /// that concerns one or two strangers' phones says nothing about the service.
    package var throttleAddresses = 3
    /// Addresses that wait because the service has refused them for themselves, in each lane: about 100 bytes
    /// each. When there are as many, a further one is not remembered, and its pushes back off one by one.
    package var waitingAddresses = 4_096
    /// Requests to one address that may be under way before any was accepted; each acceptance allows one
    /// more. A backlog for one phone must not find out a thousand times at once that it was too much.
    package var addressWindow = 16
    /// The longest that a call waits for its address by our own rule: a phone whose quota is full should ring
    /// when there is room again, and twelve requests a minute are no burden.
    package var addressCallWait: Duration = .seconds(5)
    /// Settlements joined into one commit: beyond a thousand rows a commit gains nothing.
    package var settleBatch = 1_024
    /// Settlements waiting for the store. Lanes stop sending beyond it, so that a store that fails cannot let
    /// answers pile up.
    package var settleBacklog = 16_384
    /// The same while the store refuses some: one commit's worth, because each of them would be sent again
    /// after a restart.
    package var refusedBacklog = 1_024
    /// Replies that wait for first attempts. Beyond it a reply goes out at once, with its pushes as pending.
    package var waitingReplies = 50_000
    /// How long a removed row's last outcome stays known for a repeat that comes in the same moment.
    package var recentOutcomes = 8_192
    /// Before the first probe of a halted lane (decision 0048), of each relay that has the lane; twice as
    /// long before each further one,
    package var probeFirst: Duration = .seconds(1)
    /// up to this.
    package var probeEvery: Duration = .seconds(60)
    /// Faults of a credential in a row that halt a lane, where it has not proved good between them: one or
    /// two may be strays, and a push that is alone meets three within seconds.
    package var breakerFaults = 3
    /// The same where it proves good in other lanes and never in this one.
    package var breakerFaultsBesideProof = 20
    /// Answers that the breaker looks back over, and the distinct addresses with target faults that halt. Not
    /// divided by relays: each sees a part of the answers, and fewer addresses would halt quiet lanes.
    package var breakerAnswers = 100
    package var breakerAddresses = 20
    /// Origins that these addresses must belong to, if the app has as many, so that no single origin can halt
    /// a lane that others use.
    package var breakerWitnesses = 3
    /// How long an origin that was heard of in a lane counts as one that the app has. Longer, and an app
    /// whose other origins are silent at night would lose registrations that a halt should spare.
    package var originsRemembered: Duration = .seconds(3_600)
    /// Answers in a row that no push service gave, before a lane tries one push at a time: more than a few
    /// requests of one connection, and a fraction of what a minute may cost.
    package var silentAnswers = 20
    /// The wait between such tries: its first ceiling, of the order of a new connection,
    package var silentBase: Duration = .milliseconds(100)
    /// and its last. A service does not notice a dozen requests a minute, and a call that comes when it is
    /// back waits no longer than this.
    package var silentCap: Duration = .seconds(5)
    /// If there is something to send and the service has not answered for this long, an operator is told.
    package var unansweredAfter: Duration = .seconds(60)
    /// Destinations that a lane remembers, where pushes name them: ten kilobytes each at most. Anyone who may
    /// name hosts can push others out of this memory, which costs those a few tries.
    package var destinations = 1_024
    /// Origins that a destination remembers as accepted, beside the last sixteen: a lane's 4,096 for each
    /// would be hundreds of megabytes.
    package var destinationOrigins = 64
    /// Requests that may be under way to a destination that has not answered yet; each answer allows one
    /// more.
    package var destinationWindow = 8
    /// Requests that may be under way at once to destinations whose last answer was none, to all of them
    /// together: each holds one of the lane's requests for as long as a deadline lasts, and anyone may name a
    /// server that never answers.
    package var doubtfulRequests = 8
    /// Pushes that a destination or an address puts off come back this far behind each other, `retryAfterCap`
    /// at most: a destination that does not answer costs the store twenty rows a second.
    package var destinationReturns: Duration = .milliseconds(50)
    /// Sends of a push whose fate stays unknown, once the service speaks to others: each may have arrived,
    /// and after four notifications the user has seen it. A call is sent once.
    package var unknownSends = 4
    /// The wait behind the first of them when no answer can come any more, because its connection ended,
    package var unknownBase: Duration = .seconds(2)
    /// and while its answer may come yet. Either is a ceiling, of which half is certain.
    package var lateBase: Duration = .seconds(15)
    /// Both grow by this factor with each further one, up to ``retryAfterCap``.
    package var unknownGrowth = 4
    /// Attempts at a push whose answers cannot be read: enough to survive a front end that is out for a
    /// minute or two, and an end for a request that it will never pass on.
    package var unreadableAttempts = 6
    /// Pushes that a late answer has ended and that are not met again: some half a megabyte for a lane.
    package var lateEnds = 8_192
    /// Attempts at a push whose 410 is older than its registration: about half a minute by their back-off.
    package var renewedAttempts = 5
    /// Rows moved by one take-over or one end of custody: short commits let urgent ones pass between.
    package var sweepRows = 1_000
    /// Volatile pushes of all lanes together, which have no store to wait in: as many as the deployed server
    /// queues (docs/conformance/marmot.md), some 10 MiB. What comes beyond is dropped and counted.
    package var volatilePushes = 10_000
    /// How long a stopping lane goes on sending volatile pushes, because no other process has them.
    package var volatileDrain: Duration = .seconds(10)
    /// Addresses of volatile pushes whose environment is remembered, in memory only.
    package var volatileEnvironments = 10_000
    /// How long a stop waits for requests under way: nearly all are answered by then, and service managers
    /// wait 30 s. The fate of a request without an answer is unknown, and its row says so.
    package var drain: Duration = .seconds(12)
    /// How long an operator's test push waits for a connection, and then for its answer: together below the
    /// admin listener's deadline, for two environments behind each other too.
    package var trialWait: Duration = .seconds(4)
    package var trialAnswer: Duration = .seconds(10)

    /// How long a call is held that finds no room, or no store, its reply's wait included: an origin gives
    /// a call up after 15 s (docs/conformance/zulip.md), and the way there and back takes some of them.
    package var hold: Duration = .seconds(12)
    /// How long before the listener would answer in its place a call's stay ends, so that the call answers
    /// itself: some ticks.
    package var holdMargin: Duration = .milliseconds(500)
    /// Calls that are held at the same time: an eighth of what a listener lets be under way, so that calls
    /// that wait for the store never keep out other calls.
    package var heldCalls = 1_000
    /// What they keep in memory, all together: four of the largest calls, thousands of usual ones.
    package var heldBytes = 16 << 20
    /// The time between looks on behalf of held calls when nothing has happened.
    package var holdPoll: Duration = .seconds(1)
    /// How far ahead of its pace an origin may be: a push that is put off arrives at most this much late. It
    /// is less than the longest back-off, because a push that waits longer was put off by a clock that was
    /// since set back.
    package var paceAhead: Duration = .seconds(10 * 60)
    /// Pushes of one origin that its pace may put off: a twentieth of the outbox's bound by default, so that
    /// no single origin fills it.
    package var pacedPushes = 100_000
    /// Origins whose pace is kept: about 60 bytes each.
    package var pacedOrigins = 100_000

    /// What a peer is told when the outbox is full or the store is out.
    package var overloadedRetryAfter: Duration = .seconds(5)

    package init() {}

    /// How long what a service asks for is honoured.
    ///
    /// - Parameter service: `nil`: any push service.
    func retryCap(of service: PushService?) -> Duration {
        service == .uplink ? callRetryCap : retryAfterCap
    }
}
