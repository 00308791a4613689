import Primitives
package import PushModel
package import Secp256k1Keys
import WireFormats

/// What is below a ``StatusOrigin``: one account that tells servers of its messages (§12).
///
/// It is off until ``isSending`` is set. Then ``notify(_:to:now:)`` takes messages, ``due(now:using:)``
/// returns what is to be done, each message on ``topics`` goes to ``receive(_:now:)``, and it is asked again
/// at ``nextDeadline``. Notifications that are under way are not kept over a restart: they are worth less
/// than a minute.
package struct StatusOriginRoutine: Sendable {
    /// The account's chat key. Servers never see it: queries and requests are made with keys of their own.
    package let key: Secp256k1KeyPair
    /// Whether the user wants pushes sent.
    package var isSending = false
    /// Most installations of one person that a message goes to, three at least.
    package var installationLimit = 8
    /// How long servers' answers are waited for: a report before another server is asked, and coordinates
    /// before nobody is known to have any; less than ``StatusLimits/lateAnswer``. Whoever would rather wait
    /// than ask twice, as on a slow machine, lengthens it; once one server has told coordinates, others are
    /// waited for no longer than ``StatusLimits/answerWait`` all the same.
    package var answerWait = StatusLimits.answerWait
    /// The pause after the nth attempt is n · 2^n times this. Where nobody has to be spared it is shorter.
    package var requestPause = StatusLimits.requestPause

    var targets: [PublicPoint: StatusTarget] = [:]
    var jobs: [UInt64: Job] = [:]
    var queries: [Query] = []
    var requests: [Request] = []
    var settled: [StatusDispatch] = []
    var nextID: UInt64 = 1

    /// A notification for one person.
    struct Job: Sendable {
        enum Phase: Sendable {
            case new
            /// Servers are to be asked as soon as there is room for one more query.
            case unasked
            /// The contact code's history is being read.
            case history(until: UnixTime)
            /// Servers have been asked. From the first moment on one answer is enough: before it another
            /// server may tell of more installations. At the second moment nothing more is waited for.
            case asking(enough: UnixTime, until: UnixTime)
            case sending
        }

        let notification: StatusNotification
        let person: PublicPoint
        var phase = Phase.new
        var parts: [Part] = []
        /// How often the node has not published what asks for the person.
        var refusals = 0
    }

    /// The notification for one installation.
    struct Part: Sendable {
        enum State: Sendable {
            case ready
            /// Sent; the request's number.
            case underWay(UInt64)
            case waiting(until: UnixTime)
            case taken, failed
        }

        let installation: Secret
        var state = State.ready
        var attempts = 0
        var tried: [PublicPoint] = []
        /// What went wrong first.
        var fault: StatusDispatch.Fault?

        var isOver: Bool {
            switch state {
            case .taken, .failed: true
            case .ready, .underWay, .waiting: false
            }
        }

        var isFailed: Bool { if case .failed = state { true } else { false } }
    }

    struct Query: Sendable {
        let id: UInt64
        let key: Secp256k1KeyPair
        let messageID: Secret
        let person: PublicPoint
        let since: UnixTime
        /// Whether a server had said that a token is wrong.
        let isAgain: Bool
        /// Whether the node says that it has not published it. An answer counts all the same.
        var isUnsent = false
    }

    struct Request: Sendable {
        let id: UInt64
        let key: Secp256k1KeyPair
        let server: PublicPoint
        let messageID: Secret
        let since: UnixTime
        /// Jobs, and the installation and token that each was sent with.
        let parts: [(job: UInt64, installation: Secret, token: Secret, hash: Secret)]
        /// Whether another server has been asked in the meantime.
        var isLate = false
    }

    package init(key: Secp256k1KeyPair) { self.key = key }

    // MARK: people

    /// People whose contact codes are followed: contacts, and members of groups. ``notify(_:to:now:)`` adds
    /// whoever is missing; the one that was used longest ago makes room.
    package mutating func follow(_ person: PublicPoint, now: UnixTime) {
        if targets[person] == nil { makeRoom() }
        targets[person, default: StatusTarget(person, now: now)].usedAt = now
    }

    /// Anonymous mode: a contact has told the key that it registers with. Its contact code is followed from
    /// now on, and what was known of the chat key's registrations is forgotten.
    package mutating func learn(pushKey: PublicPoint, of person: PublicPoint, now: UnixTime) {
        follow(person, now: now)
        guard targets[person]?.pushKey != pushKey else { return }
        targets[person] = StatusTarget(pushKey, now: now)
    }

    package mutating func forget(_ person: PublicPoint) {
        targets[person] = nil
        for (id, job) in jobs where job.person == person { end(id, .noToken) }
    }

    /// An installation of a person has done something; those that did so last are notified first.
    package mutating func saw(_ installation: String, of person: PublicPoint, at time: UnixTime) {
        targets[person]?.saw(Secret(installation.utf8), at: time)
    }

    /// How many installations of a person can be notified.
    package func installations(of person: PublicPoint) -> Int {
        targets[person]?.installations(nil, atMost: StatusLimits.mostInstallations).count ?? 0
    }

    // MARK: notifying

    /// Takes a notification for some people; a message in a group goes to all its members in one call, so
    /// that those of one server share a request.
    ///
    /// - Returns: a number for each person, in order, under which ``OriginWork/settled`` tells the end.
    /// - Throws: `.sendingIsOff`; `.tooManyNotifications` when there is no room; nothing is taken then.
    package mutating func notify(
        _ notification: StatusNotification, to people: [PublicPoint], now: UnixTime
    ) throws(StatusError) -> [UInt64] {
        guard isSending else { throw StatusError(.sendingIsOff) }
        guard notification.messageID.count > 0, jobs.count + people.count <= StatusLimits.originJobs else {
            throw StatusError(.tooManyNotifications)
        }
        return people.map { person in
            follow(person, now: now)
            let id = nextID
            nextID += 1
            jobs[id] = Job(notification: notification, person: person)
            return id
        }
    }

    /// Whether a notification is under way.
    var isBusy: Bool { !jobs.isEmpty }

    /// Whether ``topics`` has some.
    var hasTopics: Bool { !targets.isEmpty || !queries.isEmpty || !requests.isEmpty }

    /// Topics to follow: contact codes of the people who are known, and answers to what was asked.
    package var topics: [String] {
        let codes = targets.values.map { WakuTopic.contactCode(of: $0.pushKey).contentTopic }
        let keys = queries.map(\.key) + requests.map(\.key)
        return Array(Set(codes + keys.map { WakuTopic.partitioned(of: $0.point).contentTopic })).sorted()
    }

    /// When ``due(now:using:)`` has something; `nil` when nothing waits for time.
    package var nextDeadline: UnixTime? {
        if !settled.isEmpty { return .distantPast }
        var times = requests.filter { !$0.isLate }.map { $0.since + answerWait }
        for job in jobs.values {
            switch job.phase {
            case .new: return .distantPast
            case .unasked: times.append(knows(job) ? .distantPast : roomForQuery())
            case .history(let until): times.append(until)
            case .asking(let enough, let until): times.append(knows(job) ? enough : until)
            case .sending:
                for part in job.parts {
                    switch part.state {
                    case .ready:
                        if requests.count < StatusLimits.originCalls || requests.contains(where: \.isLate) {
                            return .distantPast
                        }
                    case .waiting(let until): times.append(until)
                    case .underWay, .taken, .failed: break
                    }
                }
            }
        }
        return times.min()
    }

    // MARK: parts

    mutating func end(_ id: UInt64, _ outcome: StatusDispatch.Outcome) {
        guard let job = jobs.removeValue(forKey: id) else { return }
        var fault: StatusDispatch.Fault?
        switch outcome {
        case .noToken: fault = job.refusals > 0 ? .unpublished : .noToken
        case .taken: fault = job.parts.lazy.filter(\.isFailed).compactMap(\.fault).first
        }
        settled.append(StatusDispatch(id: id, outcome: outcome, fault: fault))
    }

    /// What ``due(now:using:)`` would tell of notifications that have ended.
    mutating func takeSettled() -> [StatusDispatch] {
        defer { settled = [] }
        return settled
    }

    private mutating func makeRoom() {
        guard targets.count >= StatusLimits.originTargets else { return }
        let busy = Set(jobs.values.map(\.person))
        let idle = targets.filter { !busy.contains($0.key) }
        if let oldest = idle.min(by: { $0.value.usedAt < $1.value.usedAt })?.key { targets[oldest] = nil }
    }

    // MARK: keeping

    /// The same client after a restart.
    ///
    /// - Throws: `.malformedRow` for what ``rows`` has not written.
    package init(rows: [[Secret]], key: Secp256k1KeyPair) throws(StatusError) {
        guard let head = rows.first, head.count == 2, let limit = Int(head[1].word), limit >= 0 else {
            throw StatusError(.malformedRow)
        }
        self.key = key
        isSending = head[0].word == "on"
        installationLimit = limit
        var person: PublicPoint?
        for row in rows.dropFirst() {
            if row.first?.word == "person" {
                guard row.count == 7, let point = EndRows.point(row[1]), let target = StatusTarget(row: row),
                    targets[point] == nil, targets.count < StatusLimits.originTargets
                else { throw StatusError(.malformedRow) }
                targets[point] = target
                person = point
            } else {
                guard let person, targets[person]?.add(row: row) == true else {
                    throw StatusError(.malformedRow)
                }
            }
        }
    }

    /// What to keep over a restart: it holds people's access tokens.
    package var rows: [[Secret]] { rows(atMost: StatusLimits.originPeopleBytes) }

    /// The same, bounded, because servers and people say how much there is to keep of them.
    ///
    /// - Parameter bytes: of people's rows as JSON. Those who were notified longest ago are left out where
    ///   there is no room.
    package func rows(atMost bytes: Int) -> [[Secret]] {
        let head = [
            Secret((isSending ? "on" : "off").utf8), Secret(String(max(installationLimit, 0)).utf8)
        ]
        let latest = targets.sorted { left, right in
            if left.value.usedAt != right.value.usedAt { return left.value.usedAt > right.value.usedAt }
            return left.key.compressed.lexicographicallyPrecedes(right.key.compressed)
        }
        let asked = Set(jobs.values.filter(\.isAsking).map(\.person))
        var people: [(key: PublicPoint, rows: [[Secret]])] = []
        var room = bytes
        for (person, var target) in latest {
            // What is waited for is lost with this run, and the next has to ask again.
            if asked.contains(person) { target.lastQuery = nil }
            let rows = target.rows(person)
            room -= KeptRows.write(rows).count
            guard room >= 0 else { break }
            people.append((person, rows))
        }
        people.sort { $0.key.compressed.lexicographicallyPrecedes($1.key.compressed) }
        return [head] + people.flatMap(\.rows)
    }
}

extension StatusOriginRoutine.Job {
    /// Whether servers' answers about the person are waited for, or a place to ask them.
    fileprivate var isAsking: Bool {
        switch phase {
        case .unasked, .asking: true
        case .new, .history, .sending: false
        }
    }
}
