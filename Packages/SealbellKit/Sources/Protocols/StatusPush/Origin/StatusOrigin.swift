public import PushModel
public import Secp256k1Keys
public import SealbellKit
import WireFormats

/// The sender of Status: one account that has servers push to the phones of those whom it writes to.
///
/// It is off until ``isSending`` is set, because the user has to ask for it, apart from receiving. Then
/// ``notify(_:to:at:)`` takes messages that were sent. Its calls are `publish`, `history`, and `follow`,
/// which stands; a new one takes its place when there are more topics, and the former one's messages count
/// all the same. What became of each notification is in ``takeSettled()``. Notifications that are under way
/// are not kept over a restart: they are worth less than a minute.
///
/// Do it on a queue of its own: for each person it makes two keys of PBKDF2, 65,356 rounds each, once.
///
/// Spec: "Push notification server", §12.
public struct StatusOrigin: PushOrigin {
    var routine: StatusOriginRoutine
    /// The `follow` that stands, or is on its way, behind those that it has taken the place of.
    private var follows: [UInt64] = []
    /// What the last of them names.
    private var followed: Set<String> = []
    /// Whether ``topics`` may be others than those.
    private var isToFollow = true
    /// Histories that are being read.
    private var histories: [(id: UInt64, topic: String)] = []
    /// What is being published, the oldest first.
    private var underWay: [(id: UInt64, matter: OriginWork.Matter)] = []
    private var settled: [Settled] = []
    private var nextID: UInt64
    /// The node did not do what it was asked; nothing is asked of it before.
    private var restUntil: UnixTime?

    /// The account's sender after ``kept``, or a new one.
    ///
    /// - Parameter key: the account's chat key, 32 bytes of secp256k1. Servers never see it: they are asked
    ///   with keys that are made for one message.
    /// - Parameter kept: at most ``StatusLimits/originRowBytes``; `nil`: new.
    /// - Throws: `.malformedSetup` for a key that is none; `.malformedKept` for what ``kept`` has not
    ///   written, also when it was another account's.
    public init(
        key: Secret, keeping kept: Secret? = nil, using generator: inout some RandomNumberGenerator
    ) throws(DeviceError) {
        // From a place of its own, so that a call of an earlier run is none of this one's.
        nextID = UInt64.random(in: 0...UInt64.max >> 1, using: &generator)
        let pair: Secp256k1KeyPair
        do { pair = try Secp256k1KeyPair(secret: key) } catch {
            throw DeviceError(.malformedSetup, StatusError.Code.malformedKey.rawValue)
        }
        guard let kept else {
            routine = StatusOriginRoutine(key: pair)
            return
        }
        let rows = try KeptForm.read(Self.title, kept, atMost: StatusLimits.originRowBytes)
        guard let head = rows.first, head.count == 1, head[0] == Self.mark(of: pair.point) else {
            throw DeviceError(.malformedKept)
        }
        do throws(StatusError) {
            routine = try StatusOriginRoutine(rows: Array(rows[1...]), key: pair)
        } catch { throw DeviceError(.malformedKept, error.codeText) }
    }

    /// The account's sender after ``kept``, or a new one; ids of calls are of the system's generator.
    ///
    /// - Parameter key: the account's chat key, 32 bytes of secp256k1.
    /// - Parameter kept: at most ``StatusLimits/originRowBytes``; `nil`: new.
    /// - Throws: `.malformedSetup`, `.malformedKept`.
    public init(key: Secret, keeping kept: Secret? = nil) throws(DeviceError) {
        var generator = SystemRandomNumberGenerator()
        try self.init(key: key, keeping: kept, using: &generator)
    }

    // MARK: what the user wants

    /// Whether the user wants pushes sent; off at first, and kept.
    public var isSending: Bool {
        get { routine.isSending }
        set {
            routine.isSending = newValue
            isToFollow = true
        }
    }

    /// Most installations of one person that a message goes to, 3 to 32; 8 at first, and kept.
    public var installationLimit: Int {
        get { routine.installationLimit }
        set { routine.installationLimit = newValue }
    }

    /// The account's public key: what phones learn of who has written.
    public var account: PublicPoint { routine.key.point }

    // MARK: people

    /// Follows somebody's contact code: of contacts, and members of groups. ``notify(_:to:at:)`` adds whoever
    /// is missing. Of more than ``StatusLimits/originTargets`` the one that was used longest ago makes room.
    ///
    /// - Parameter person: the public key that the person registers with.
    public mutating func follow(_ person: PublicPoint, at now: UnixTime) {
        routine.follow(person, now: now)
        isToFollow = true
    }

    /// Anonymous mode: a contact has told the key that it registers with. Its contact code is followed from
    /// now on, and what was known of the chat key's registrations is forgotten.
    public mutating func learn(pushKey: PublicPoint, of person: PublicPoint, at now: UnixTime) {
        routine.learn(pushKey: pushKey, of: person, now: now)
        isToFollow = true
    }

    /// Forgets a person, and what is under way for them, which is settled.
    public mutating func forget(_ person: PublicPoint) {
        routine.forget(person)
        // Their contact code is not to be followed any more.
        (followed, isToFollow) = ([], true)
        collect()
    }

    /// An installation of a person has done something; those that did so last are notified first.
    ///
    /// - Parameter installation: its id, 36 characters.
    public mutating func saw(_ installation: String, of person: PublicPoint, at time: UnixTime) {
        routine.saw(installation, of: person, at: time)
    }

    /// How many installations of a person can be notified, at most ``StatusLimits/mostInstallations``.
    public func installations(of person: PublicPoint) -> Int { routine.installations(of: person) }

    // MARK: notifying

    /// Takes a notification for some people; a message in a group goes to all its members in one call, so
    /// that those of one server share a request.
    ///
    /// - Returns: a number for each person, in order, under which ``takeSettled()`` tells the end. It is
    ///   unique within one run.
    /// - Throws: `.switchedOff` unless ``isSending``; `.tooMany` beyond ``StatusLimits/originJobs`` that are
    ///   under way, and for a notification without a message id. Nothing is taken then.
    public mutating func notify(
        _ notification: StatusNotification, to people: [PublicPoint], at now: UnixTime
    ) throws(DeviceError) -> [UInt64] {
        do throws(StatusError) {
            let ids = try routine.notify(notification, to: people, now: now)
            isToFollow = true
            return ids
        } catch {
            let isOff = error.code == .sendingIsOff
            throw DeviceError(isOff ? .switchedOff : .tooMany, error.codeText)
        }
    }

    /// What became of notifications since it was asked last, at most the newest ``StatusLimits/originJobs``:
    /// how many installations servers have taken it for, and how many not. Nobody reached and nobody missed:
    /// no server told where the person is.
    ///
    /// Details: `noToken`, `unpublished` (by the node), `noAnswer`, `wrongToken`, `notRegistered`,
    /// `serverFailed`.
    public mutating func takeSettled() -> [Settled] {
        defer { settled = [] }
        return settled
    }

    // MARK: calls

    /// Calls to make now: a `follow` whenever there are topics that the last one does not name, queries of
    /// servers and requests to push, and the `history` of each person's contact code, once a run.
    ///
    /// Servers are asked with an ephemeral key about each person once a day at most. Each installation is
    /// told by one server; after 3 s of silence by another, four times in all. What the node does not publish
    /// is tried again as often, and counts against no server.
    public mutating func due(
        at now: UnixTime, using generator: inout some RandomNumberGenerator
    ) -> [Call] {
        guard !isResting(now) else { return [] }
        restUntil = nil
        let work = routine.due(now: now, using: &generator)
        settle(work.settled)
        // Before what is published: its answers come on these topics.
        var calls = follow(after: work)
        for (message, matter) in work.publishing {
            let call = Call(id: id(), .publish(message))
            underWay.append((call.id, matter))
            calls.append(call)
        }
        for topic in work.histories where !histories.contains(where: { $0.topic == topic }) {
            let call = Call(id: id(), .history(topic: topic))
            histories.append((call.id, topic))
            calls.append(call)
        }
        // Only an app that answers nothing gets there.
        underWay.removeFirst(max(0, underWay.count - StatusLimits.originUnderWay))
        histories.removeFirst(max(0, histories.count - StatusLimits.originJobs))
        return calls
    }

    /// Takes what came of a call: `.taken`; of a `follow` or a `history` also each message that arrives
    /// (`.waku`), of the latter before its `.taken`. Anything else is `.none`: of a `follow` it says that
    /// nothing arrives any more, of a `history` that there is none.
    public mutating func answered(
        _ answer: CallAnswer, to call: Call, at now: UnixTime,
        using generator: inout some RandomNumberGenerator
    ) {
        if follows.contains(call.id) {
            heard(answer, follow: call.id, now)
        } else if let place = histories.firstIndex(where: { $0.id == call.id }) {
            if case .waku(let message) = answer { return heard(message, at: now) }
            routine.readHistory(of: histories.remove(at: place).topic)
        } else if let place = underWay.firstIndex(where: { $0.id == call.id }) {
            let matter = underWay.remove(at: place).matter
            if case .taken = answer { return }
            routine.unsent(matter, now)
            rest(now)
            collect()
        }
    }

    /// When to call ``due(at:using:)`` without anything having happened.
    public var nextDue: UnixTime? {
        guard let next = wantsToFollow ? .distantPast : routine.nextDeadline else { return nil }
        return restUntil.map { max($0, next) } ?? next
    }

    // MARK: keeping

    private static let title: StaticString = "status-origin"

    /// What to keep over a restart, at most ``StatusLimits/originRowBytes``: whom it knows, and how they are
    /// reached, access tokens included. Those who were notified longest ago are left out where there is no
    /// room.
    public var kept: Secret {
        KeptForm.write(Self.title, [[Self.mark(of: account)]] + routine.rows)
    }

    /// Whose it is.
    private static func mark(of account: PublicPoint) -> Secret { StatusHash.person(account).hexDigits }

    // MARK: for tools

    /// Content topics of contact codes, and of answers to what was asked.
    package var topics: [String] { routine.topics }

    /// Takes a message of one of ``topics``.
    package mutating func heard(_ message: WakuMessage, at now: UnixTime) {
        routine.receive(message, now: now)
        collect()
    }

    /// ``StatusOriginRoutine/answerWait``.
    package var answerWait: Duration {
        get { routine.answerWait }
        set { routine.answerWait = newValue }
    }

    /// ``StatusOriginRoutine/requestPause``, and how long a node is left alone that did not do what it was
    /// asked.
    package var requestPause: Duration {
        get { routine.requestPause }
        set { routine.requestPause = newValue }
    }

    // MARK: parts

    private var wantsToFollow: Bool {
        isToFollow && (routine.isSending || routine.isBusy) && routine.hasTopics
    }

    private mutating func follow(after work: OriginWork) -> [Call] {
        guard wantsToFollow || !work.publishing.isEmpty else { return [] }
        isToFollow = false
        let topics = routine.topics
        guard !followed.isSuperset(of: topics) || follows.isEmpty else { return [] }
        let call = Call(id: id(), .follow(topics: topics), isStanding: true)
        follows.append(call.id)
        follows.removeFirst(max(0, follows.count - 1 - StatusLimits.formerFollows))
        followed = Set(topics)
        return [call]
    }

    private mutating func heard(_ answer: CallAnswer, follow id: UInt64, _ now: UnixTime) {
        switch answer {
        case .taken: break
        case .waku(let message): heard(message, at: now)
        case .http, .group, .events, .relays, .none:
            // A former one has ended, as it should.
            guard id == follows.last else { return }
            (follows, followed, isToFollow) = ([], [], true)
            rest(now)
        }
    }

    private mutating func collect() { settle(routine.takeSettled()) }

    /// Of an app that never asks the oldest are forgotten.
    private mutating func settle(_ more: [StatusDispatch]) {
        settled += more.map(\.settled)
        settled.removeFirst(max(0, settled.count - StatusLimits.originJobs))
    }

    private mutating func id() -> UInt64 {
        nextID &+= 1
        return nextID
    }

    private mutating func rest(_ now: UnixTime) { restUntil = now + requestPause }

    /// A clock that was set back must not put it off.
    private func isResting(_ now: UnixTime) -> Bool {
        guard let restUntil else { return false }
        return restUntil > now && restUntil.since(now) <= requestPause
    }
}
