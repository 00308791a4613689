package import HTTPIngress
package import PushModel

/// A condition that an operator must know about without looking. Each is raised while it holds and cleared
/// when it ends.
package enum Alert: Sendable, Hashable {
    /// The lane sends only probes; the reason is the push service's literal word.
    case laneHalted(LaneName, Reason)
    /// The lane has had something to send for a while without an answer from the push service; the reason is
    /// the result of the last push.
    case laneUnanswered(LaneName, Reason)
    /// For a while no connection to the lane's push service could be made, whether or not there is something
    /// to send.
    case laneUnreachable(LaneName)
    /// Pushes that grew too old before they could be sent, within the last hour.
    case custodyEnded(LaneName, Int)
    /// The push that has been owed longest, and for how many minutes.
    case pushOverdue(minutes: Int)
    /// The instance connects to its peers by itself, and hears none of them.
    case instanceUnheard(ConfiguredName)
    /// A server refuses what the instance publishes there so that senders find it.
    case instanceRefused(ConfiguredName, by: ConfiguredName)
    /// The instance's peers refuse this many of the watches by which they would report what concerns its
    /// users.
    case watchesRefused(ConfiguredName, Int)
    /// How often the instance's node dropped messages before they were read, and no store had them.
    case messagesMissed(ConfiguredName, Int)
    /// The number of answers in a row that the instance's node has not accepted.
    case answersRefused(ConfiguredName, Int)
    /// The number of calls in a row that the gateway for the instance's pushes has not accepted.
    case gatewayFailing(ConfiguredName, Int)
    /// The outbox holds at least that share of its bound.
    case outboxFilling(percent: Int)
    /// The free mebibytes where the store or the state directory is.
    case diskLow(mebibytes: Int)
    /// The store refuses writes; peers get 503.
    case storeFailing(StoreError.Code)
    /// The store refuses the outcomes of this many pushes, even if it accepts other writes. For an operator
    /// it is the same trouble, so it has the subject of ``storeFailing(_:)``.
    case outcomesRefused(StoreError.Code, Int)
    /// Days that are left, rounded up; 0 when it has expired.
    case certificateExpiring(ConfiguredName, days: Int)
    /// The storage keys are where a backup of the database would include them.
    case keyBesideDatabase
    /// Owed pushes that do not open and cannot be sent.
    case pushesSetAside(Int)
    /// Records that cannot be read: their devices are unknown until they register again.
    case recordsSetAside(Int)
    /// Whole hours by which the wall clock is ahead of what the store knows of time.
    case clockDoubted(hours: Int)
    /// The listener refuses calls of any client because it has run out of these, in the order of the list.
    case doorStrained(ConfiguredName, [ListenerStrain])

    /// So many phones of an origin's realm got no answer of the relay for as long as it was asked, the first
    /// of them since then (RFC 3339).
    case registrationExpired(ConfiguredName, realm: String, Int, since: String)
    /// The relay refuses an origin's realm, or the origin itself.
    case registrationRefused(ConfiguredName, realm: String, RelayWord)
    /// The relay does not say which phones of an origin's realm are dead.
    case originStaleList(ConfiguredName, realm: String, RelayWord)
    /// The last reload was refused; the former configuration is in force.
    case reloadRefused(ErrorCode)

    /// How bad it is within its subject: when it grows worse, that is told at once.
    var grade: Int {
        switch self {
        case .certificateExpiring(_, days: 0): 1
        // In a minute it may be full.
        case .diskLow(let mebibytes): mebibytes < Self.leastMebibytes ? 1 : 0
        default: 0
        }
    }

    private static let leastMebibytes = 64

    /// The word that caused it, of a push service or of a closed list of ours; `nil`: the alert is its own.
    var cause: String? {
        switch self {
        case .laneHalted(_, let reason), .laneUnanswered(_, let reason): reason.rawValue
        case .storeFailing(let code), .outcomesRefused(let code, _): code.rawValue
        case .reloadRefused(let code): code.logText
        case .registrationRefused(_, _, let word), .originStaleList(_, _, let word): word.word
        case .doorStrained(_, let strains): strains.map(\.rawValue).joined(separator: " ")
        case .laneUnreachable, .custodyEnded, .pushOverdue, .instanceUnheard, .instanceRefused,
            .watchesRefused, .messagesMissed, .answersRefused, .gatewayFailing, .outboxFilling, .diskLow,
            .certificateExpiring, .keyBesideDatabase, .pushesSetAside, .recordsSetAside, .clockDoubted,
            .registrationExpired:
            nil
        }
    }

    package enum Kind: String, Sendable, Hashable, CaseIterable {
        case laneHalted = "lane_halted"
        case laneUnanswered = "lane_unanswered"
        case laneUnreachable = "lane_unreachable"
        case custodyEnded = "custody_ended"
        case pushOverdue = "push_overdue"
        case instanceUnheard = "instance_unheard"
        case instanceRefused = "instance_refused"
        case watchesRefused = "watches_refused"
        case messagesMissed = "messages_missed"
        case answersRefused = "answers_refused"
        case gatewayFailing = "gateway_failing"
        case outboxFilling = "outbox_filling"
        case diskLow = "disk_low"
        case storeFailing = "store_failing"
        case certificateExpiring = "certificate_expiring"
        case keyBesideDatabase = "key_beside_database"
        case pushesSetAside = "pushes_set_aside"
        case recordsSetAside = "records_set_aside"
        case clockDoubted = "clock_doubted"
        case doorStrained = "door_strained"
        case registrationExpired = "registration_expired"
        case registrationRefused = "registration_refused"
        case originStaleList = "origin_stale_list"
        case reloadRefused = "reload_refused"
        /// Not raised by a condition: the port itself says that it tells no more for a while.
        case muted

        /// How often it is told again while it lasts.
        var reminder: Duration {
            switch self {
            case .laneHalted, .laneUnanswered, .laneUnreachable, .custodyEnded, .pushOverdue,
                .instanceUnheard, .watchesRefused, .messagesMissed, .answersRefused, .gatewayFailing,
                .outboxFilling, .storeFailing, .doorStrained, .registrationExpired, .registrationRefused,
                .muted:
                .seconds(3600)
            // Nothing is lost meanwhile, and people renew certificates by day.
            case .instanceRefused, .certificateExpiring, .keyBesideDatabase, .pushesSetAside,
                .recordsSetAside, .clockDoubted,
                .diskLow, .originStaleList, .reloadRefused:
                .seconds(86_400)
            }
        }
    }

    /// What an alert is about: two alerts of one subject are the same trouble, whatever their figures.
    package struct Subject: Sendable, Hashable {
        package let kind: Kind
        /// A lane, a listener, an instance or one of its relays, of our own configuration; empty where there
        /// is only one.
        package let name: String

        package init(kind: Kind, name: String) {
            self.kind = kind
            self.name = name
        }
    }

    package var subject: Subject {
        switch self {
        case .laneHalted(let lane, _): Subject(kind: .laneHalted, name: lane.description)
        case .laneUnanswered(let lane, _): Subject(kind: .laneUnanswered, name: lane.description)
        case .laneUnreachable(let lane): Subject(kind: .laneUnreachable, name: lane.description)
        case .custodyEnded(let lane, _): Subject(kind: .custodyEnded, name: lane.description)
        case .pushOverdue: Subject(kind: .pushOverdue, name: "")
        case .instanceUnheard(let instance): Subject(kind: .instanceUnheard, name: instance.text)
        case .instanceRefused(let instance, let server):
            Subject(kind: .instanceRefused, name: "\(instance.text)/\(server.text)")
        case .watchesRefused(let instance, _): Subject(kind: .watchesRefused, name: instance.text)
        case .messagesMissed(let instance, _): Subject(kind: .messagesMissed, name: instance.text)
        case .answersRefused(let instance, _): Subject(kind: .answersRefused, name: instance.text)
        case .gatewayFailing(let instance, _): Subject(kind: .gatewayFailing, name: instance.text)
        case .outboxFilling: Subject(kind: .outboxFilling, name: "")
        case .diskLow: Subject(kind: .diskLow, name: "")
        case .storeFailing, .outcomesRefused: Subject(kind: .storeFailing, name: "")
        case .certificateExpiring(let listener, _): Subject(kind: .certificateExpiring, name: listener.text)
        case .keyBesideDatabase: Subject(kind: .keyBesideDatabase, name: "")
        case .pushesSetAside: Subject(kind: .pushesSetAside, name: "")
        case .recordsSetAside: Subject(kind: .recordsSetAside, name: "")
        case .clockDoubted: Subject(kind: .clockDoubted, name: "")
        case .doorStrained(let listener, _): Subject(kind: .doorStrained, name: listener.text)
        case .registrationExpired(let instance, let realm, _, _):
            Subject(kind: .registrationExpired, name: "\(instance.text)/\(realm)")
        case .registrationRefused(let instance, let realm, _):
            Subject(kind: .registrationRefused, name: "\(instance.text)/\(realm)")
        case .originStaleList(let instance, let realm, _):
            Subject(kind: .originStaleList, name: "\(instance.text)/\(realm)")
        case .reloadRefused: Subject(kind: .reloadRefused, name: "")
        }
    }

    /// What has happened and what to do next. Configured names, counts and words of closed lists only.
    package var sentence: String {
        switch self {
        case .laneHalted(let lane, let reason):
            "The lane \(lane) is halted (\(reason.rawValue)): check the app's credential, topic and "
                + "environment."
        case .laneUnanswered(let lane, let reason):
            "The push service of the lane \(lane) does not answer (\(reason.rawValue)): check the network, "
                + "the proxy and, where the push service has one, the way to its token service."
        case .laneUnreachable(let lane):
            "No connection to the push service of the lane \(lane) can be made: check DNS, firewall, "
                + "proxy and the trusted certificate authority."
        case .custodyEnded(let lane, let count):
            counted(count, "push", "pushes")
                + " of the lane \(lane) became too old unsent, the last within the hour: see the lane's "
                + "alerts and its last refusal."
        case .pushOverdue(let minutes):
            "The push that has been owed longest has waited for \(counted(minutes, "minute")): the "
                + "dashboard shows which lane does not drain, sealbell doctor which push it is."
        case .instanceUnheard(let instance):
            "The instance \(instance) hears nobody: no server where it listens has its subscription in "
                + "force. Check the network, the proxy and the servers' word in the log."
        case .instanceRefused(let instance, let server):
            "The server \(server) refuses what the instance \(instance) publishes there, by which senders "
                + "find it: see its word in the log, and choose another server."
        case .watchesRefused(let instance, let count):
            "Peers of the instance \(instance) refuse \(count) of the subscriptions that they are to watch, "
                + "and those users get no push: set the clock of this machine, and see by its metrics what "
                + "the peers say."
        case .messagesMissed(let instance, let count):
            "The node of the instance \(instance) has lost messages \(counted(count, "time")), the last "
                + "within the hour, and no store had them: give it a larger cache, and a store."
        case .answersRefused(let instance, let count):
            "The node of the instance \(instance) has not taken \(counted(count, "answer")) in a row, and "
                + "clients hear nothing: see the node's log, and how many connections and messages it allows."
        case .gatewayFailing(let instance, let count):
            "The gateway of the instance \(instance) has not taken \(counted(count, "call")) in a row, and "
                + "senders are told that pushes fail: look whether it runs, and at its log."
        case .outboxFilling(let percent):
            "The outbox is \(percent) % full: find the lane that does not drain, or raise the limit."
        case .diskLow(let mebibytes):
            "\(mebibytes) MiB are free where the store lies, and once the disk is full no push is accepted: "
                + "make room."
        case .storeFailing(let code):
            "The store refuses writes (\(code.rawValue)): check its disk and its server."
        case .outcomesRefused(let code, let count):
            "The store refuses the outcomes of \(counted(count, "push", "pushes")) "
                + "(\(code.rawValue)), which a restart would send again, and little is sent meanwhile: look "
                + "for a lock, a trigger or a damaged page."
        case .certificateExpiring(let listener, let days):
            "The certificate of the listener \(listener) "
                + (days == 0
                    ? "has expired: clients refuse it. " : "expires within \(counted(days, "day")). ")
                + "Renew it and reload."
        case .keyBesideDatabase:
            "Storage keys and database are in one directory: one backup would contain both. Move the keys."
        case .pushesSetAside(let count):
            counted(count, "owed push does not open and is", "owed pushes do not open and are")
                + " not sent: look at the disk, and run sealbell store check."
        case .recordsSetAside(let count):
            counted(count, "record cannot be read and counts", "records cannot be read and count")
                + " as none until written anew: look at the disk, and run sealbell store check --all."
        case .clockDoubted(let hours):
            "The clock is \(counted(hours, "hour")) ahead of what the store knows, and nothing expires: set "
                + "it, or run sealbell store trust-clock."
        case .doorStrained(let listener, let strains):
            "The listener \(listener) turns calls away for want of "
                + strains.map(\.noun).joined(separator: " and ")
                + ": see who calls, and shut them out at the proxy or the firewall; sealbell doctor "
                + "says what the process may open."
        case .registrationExpired(_, let realm, let count, let since):
            "The push service could not be reached for so long that \(counted(count, "phone")) of the "
                + "realm \(realm) must register anew, the first of them since \(since): check the "
                + "relay's address, and that it runs."
        case .registrationRefused(_, let realm, let word):
            "The relay does not take phones or notifications of the realm \(realm) (\(word.word)). "
                + word.cure
        case .originStaleList(_, let realm, let word):
            "The relay does not say which phones of the realm \(realm) are dead (\(word.word)). "
                + word.cure
        case .reloadRefused(let code):
            "The last reload was refused (\(code.logText)), and the previous configuration is still in "
                + "force: see the log, fix the file, and reload again."
        }
    }
}

/// What a relay answers to an origin, as a word and a sentence of ours.
package struct RelayWord: Sendable, Hashable {
    package let word: String
    /// What to look at.
    package let cure: String

    package init(word: String, cure: String) {
        self.word = word
        self.cure = cure
    }
}

/// A trouble as it was last told, in the form that outlives the process.
package struct StandingAlert: Sendable, Hashable {
    package let subject: Alert.Subject
    package var sentence: String
    package var cause: String?
    /// The worst degree that the operator has been told.
    package var grade: Int
    /// When the operator was last told that it holds.
    package var toldAt: UnixTime
    /// An earlier process met it, and nobody has met it since.
    package var isInherited = false

    package init(
        _ subject: Alert.Subject, sentence: String, cause: String? = nil, grade: Int = 0, toldAt: UnixTime
    ) {
        self.subject = subject
        self.sentence = sentence
        self.cause = cause
        self.grade = grade
        self.toldAt = toldAt
    }

    package init(_ alert: Alert, toldAt: UnixTime) {
        self.init(
            alert.subject, sentence: alert.sentence, cause: alert.cause, grade: alert.grade, toldAt: toldAt)
    }
}

/// One thing to tell an operator.
package struct AlertNotice: Sendable, Hashable {
    package enum Phase: String, Sendable, Hashable, CaseIterable { case raised, reminded, cleared }

    package let phase: Phase
    package let subject: Alert.Subject
    package let sentence: String
    /// As of the alert.
    package let cause: String?
    package let at: UnixTime

    package init(
        _ phase: Phase, _ subject: Alert.Subject, _ sentence: String, cause: String? = nil, at: UnixTime
    ) {
        self.phase = phase
        self.subject = subject
        self.sentence = sentence
        self.cause = cause
        self.at = at
    }
}
