package import PushModel
import Secp256k1Keys
import WireFormats

/// What is due: history, queries, requests and their repetition (§12).
extension StatusOriginRoutine {
    /// What is to be done now.
    ///
    /// Coordinates come from the contact code, whose history is read once; then from servers, asked with an
    /// ephemeral key once a day at most for each person. Each installation is told by one server; after 3 s
    /// of silence by another.
    package mutating func due(
        now: UnixTime, using generator: inout some RandomNumberGenerator
    ) -> OriginWork {
        var work = OriginWork()
        expire(now)
        for id in jobs.keys.sorted() { advance(id, &work, now, &generator) }
        send(&work, now, &generator)
        for id in jobs.keys.sorted() { closeIfOver(id) }
        work.settled = takeSettled()
        return work
    }

    /// The history of a contact code has been read; or could not be, which comes to the same.
    package mutating func readHistory(of topic: String) {
        for person in targets.keys {
            guard let key = targets[person]?.pushKey,
                WakuTopic.contactCode(of: key).contentTopic == topic
            else { continue }
            targets[person]?.hasHistory = true
        }
        for id in jobs.keys {
            if let job = jobs[id], case .history = job.phase, targets[job.person]?.hasHistory ?? true {
                jobs[id]?.phase = .new
            }
        }
    }

    // MARK: time

    /// Silence of 3 s: another server is asked. A late answer still counts for a minute.
    private mutating func expire(_ now: UnixTime) {
        for place in requests.indices where !requests[place].isLate {
            let age = now.since(requests[place].since)
            guard age >= answerWait || age < .zero else { continue }
            requests[place].isLate = true
            let request = requests[place]
            for part in request.parts {
                again(part.job, part.installation, after: request.id, .noAnswer, now)
            }
        }
        requests.removeAll { Self.isOver($0.since, now) }
        queries.removeAll { Self.isOver($0.since, now) }
    }

    private static func isOver(_ since: UnixTime, _ now: UnixTime) -> Bool {
        let age = now.since(since)
        return age >= StatusLimits.lateAnswer || age < .zero
    }

    /// One more attempt for an installation: at another server at once if there is one, else after a pause.
    mutating func again(
        _ job: UInt64, _ installation: Secret, after request: UInt64, _ fault: StatusDispatch.Fault,
        _ now: UnixTime
    ) {
        guard let place = jobs[job]?.parts.firstIndex(where: { $0.installation == installation }),
            var part = jobs[job]?.parts[place], case .underWay(request) = part.state,
            let target = jobs[job].flatMap({ targets[$0.person] })
        else { return }
        part.fault = part.fault ?? fault
        let others = target.servers(of: installation).filter { !part.tried.contains($0.server) }
        if part.attempts >= StatusLimits.requestAttempts {
            part.state = .failed
        } else if fault == .unpublished {
            // It says nothing of the server. A node that has just failed may fail again at once.
            _ = part.tried.popLast()
            part.state = .waiting(until: pause(part, now))
        } else if !others.isEmpty {
            part.state = .ready
        } else {
            part.tried = []
            part.state = .waiting(until: pause(part, now))
        }
        jobs[job]?.parts[place] = part
    }

    private func pause(_ part: Part, _ now: UnixTime) -> UnixTime {
        now + requestPause * (part.attempts << part.attempts)
    }

    // MARK: the node

    /// The node has not published what it was given: nobody was asked, and no server is to blame. It is tried
    /// again, as often as a server that does not answer. An answer that comes all the same counts.
    mutating func unsent(_ matter: OriginWork.Matter, _ now: UnixTime) {
        switch matter {
        case .query(let id):
            guard let place = queries.firstIndex(where: { $0.id == id }) else { return }
            queries[place].isUnsent = true
            let person = queries[place].person
            targets[person]?.lastQuery = nil
            if queries[place].isAgain { targets[person]?.mustQuery = true }
            for (id, job) in jobs where job.person == person {
                guard case .asking = job.phase else { continue }
                jobs[id]?.refusals += 1
                if job.refusals + 1 < StatusLimits.requestAttempts {
                    jobs[id]?.phase = .unasked
                } else {
                    end(id, .noToken)
                }
            }
        case .request(let id):
            guard let place = requests.firstIndex(where: { $0.id == id }), !requests[place].isLate else {
                return
            }
            requests[place].isLate = true
            let parts = requests[place].parts
            for part in parts { again(part.job, part.installation, after: id, .unpublished, now) }
            for job in Set(parts.map(\.job)) { closeIfOver(job) }
        }
    }

    // MARK: one notification

    private mutating func advance(
        _ id: UInt64, _ work: inout OriginWork, _ now: UnixTime,
        _ generator: inout some RandomNumberGenerator
    ) {
        guard let job = jobs[id], let target = targets[job.person] else {
            end(id, .noToken)
            return
        }
        switch job.phase {
        case .new, .unasked:
            if !wanted(job, target).isEmpty {
                choose(id)
            } else if !target.hasHistory {
                let topic = WakuTopic.contactCode(of: target.pushKey).contentTopic
                if !work.histories.contains(topic) { work.histories.append(topic) }
                jobs[id]?.phase = .history(until: now + StatusLimits.historyWait)
            } else {
                guard ask(job.person, &work, now, &generator) else {
                    jobs[id]?.phase = .unasked
                    return
                }
                let since = queries.last { $0.person == job.person }?.since
                let until = since.map { $0 + answerWait } ?? now
                let enough = since.map { $0 + min(answerWait, StatusLimits.answerWait) } ?? now
                jobs[id]?.phase = .asking(enough: enough, until: until)
                if until <= now { choose(id) }
            }
        case .history(let until) where until <= now:
            targets[job.person]?.hasHistory = true
            jobs[id]?.phase = .new
            advance(id, &work, now, &generator)
        case .asking(let enough, let until) where until <= now || enough <= now && knows(job):
            choose(id)
        case .history, .asking: break
        case .sending:
            if target.mustQuery { _ = ask(job.person, &work, now, &generator) }
            for place in job.parts.indices {
                if case .waiting(let until) = job.parts[place].state, until <= now {
                    jobs[id]?.parts[place].state = .ready
                }
            }
        }
    }

    private func wanted(_ job: Job, _ target: StatusTarget) -> [Secret] {
        target.installations(
            job.notification.installations?.map { Secret($0.utf8) }, atMost: installationLimit)
    }

    /// Whether it is known where the person is reached.
    func knows(_ job: Job) -> Bool { targets[job.person].map { !wanted(job, $0).isEmpty } ?? false }

    private mutating func choose(_ id: UInt64) {
        guard let job = jobs[id], let target = targets[job.person] else { return }
        let chosen = wanted(job, target)
        guard !chosen.isEmpty else {
            end(id, .noToken)
            return
        }
        jobs[id]?.parts = chosen.map { Part(installation: $0) }
        jobs[id]?.phase = .sending
    }

    private func outcome(of id: UInt64) -> StatusDispatch.Outcome? {
        guard let job = jobs[id], case .sending = job.phase, job.parts.allSatisfy(\.isOver) else {
            return nil
        }
        let taken = job.parts.count { if case .taken = $0.state { true } else { false } }
        return .taken(installations: taken, failed: job.parts.count - taken)
    }

    mutating func closeIfOver(_ id: UInt64) {
        if let outcome = outcome(of: id) { end(id, outcome) }
    }

    // MARK: messages

    /// Asks servers for one person, if it is time.
    ///
    /// - Returns: `false`: it is time, and there is no room for one more query.
    private mutating func ask(
        _ person: PublicPoint, _ work: inout OriginWork, _ now: UnixTime,
        _ generator: inout some RandomNumberGenerator
    ) -> Bool {
        guard var target = targets[person] else { return true }
        let isUnderWay = queries.contains {
            $0.person == person && !$0.isUnsent && now.since($0.since) < answerWait
        }
        let age = target.lastQuery.map { now.since($0) }
        let isTime = age.map { $0 >= StatusLimits.queryPeriod || $0 < .zero } ?? true
        guard !isUnderWay, isTime || target.mustQuery else { return true }
        guard makeRoomForQuery(now) else { return false }
        let topic = WakuTopic.query(of: StatusHash.person(target.pushKey))
        let topicKey = target.queryTopicKey ?? TopicKey.derive(from: topic)
        target.queryTopicKey = topicKey
        let isAgain = target.mustQuery
        target.lastQuery = now
        target.mustQuery = false
        targets[person] = target
        let query = PushNotificationQuery(publicKeys: [StatusHash.person(target.pushKey)])
        let key = Draw.keyPair(&generator)
        let sealed = EndMessages.seal(
            .query, query.encoded(), signedBy: key, on: topic, topicKey: topicKey, now,
            &generator)
        let id = nextID
        nextID += 1
        queries.append(
            Query(
                id: id, key: key, messageID: sealed.id, person: person, since: now, isAgain: isAgain))
        work.publishing.append((sealed.message, .query(id)))
        return true
    }

    /// A query whose answer is late makes way for one that is to be asked now.
    private mutating func makeRoomForQuery(_ now: UnixTime) -> Bool {
        if queries.count < StatusLimits.originCalls { return true }
        let place = queries.firstIndex { $0.isUnsent || now.since($0.since) >= answerWait }
        guard let place else { return false }
        queries.remove(at: place)
        return true
    }

    /// A request whose answer is late, and which another has taken the place of, makes way as well.
    private mutating func makeRoomForRequest() -> Bool {
        if requests.count < StatusLimits.originCalls { return true }
        guard let place = requests.firstIndex(where: \.isLate) else { return false }
        requests.remove(at: place)
        return true
    }

    /// When there is room for one more query.
    func roomForQuery() -> UnixTime {
        guard queries.count >= StatusLimits.originCalls else { return .distantPast }
        return queries.map { $0.isUnsent ? .distantPast : $0.since + answerWait }.min() ?? .distantPast
    }

    /// Requests for all that is ready: one for each message and server.
    private mutating func send(
        _ work: inout OriginWork, _ now: UnixTime, _ generator: inout some RandomNumberGenerator
    ) {
        var groups: [Group] = []
        for id in jobs.keys.sorted() {
            guard let job = jobs[id], case .sending = job.phase, let target = targets[job.person] else {
                continue
            }
            for place in job.parts.indices {
                guard case .ready = job.parts[place].state else { continue }
                let part = job.parts[place]
                let known = target.servers(of: part.installation)
                let fresh = known.filter { !part.tried.contains($0.server) }
                guard let chosen = (fresh.isEmpty ? known : fresh).randomElement(using: &generator) else {
                    // Forgotten by its server, and nobody else has it.
                    jobs[id]?.parts[place].state = .failed
                    continue
                }
                let item = Item(job: id, place: place, coordinates: chosen)
                if let at = groups.firstIndex(where: { $0.takes(item, job.notification.messageID) }) {
                    groups[at].items.append(item)
                } else {
                    groups.append(
                        Group(server: chosen.server, messageID: job.notification.messageID, items: [item]))
                }
            }
        }
        for group in groups where makeRoomForRequest() {
            let (message, id) = request(group, now, &generator)
            work.publishing.append((message, .request(id)))
        }
    }

    private struct Item {
        let job: UInt64
        let place: Int
        let coordinates: Coordinates
    }

    private struct Group {
        let server: PublicPoint
        let messageID: Secret
        var items: [Item]

        func takes(_ item: Item, _ messageID: Secret) -> Bool {
            server == item.coordinates.server && self.messageID == messageID
                && items.count < StatusLimits.notificationsAtOnce
        }
    }

    /// Each request has a key of its own, so that no two have the same bytes: a server does nothing for a
    /// repeat, and cannot tell that two are of one sender.
    private mutating func request(
        _ group: Group, _ now: UnixTime, _ generator: inout some RandomNumberGenerator
    ) -> (message: WakuMessage, id: UInt64) {
        var message = PushNotificationRequest(requests: [], messageID: group.messageID)
        var parts: [(job: UInt64, installation: Secret, token: Secret, hash: Secret)] = []
        let id = nextID
        nextID += 1
        for item in group.items {
            guard let job = jobs[item.job], let target = targets[job.person] else { continue }
            let hash = StatusHash.person(target.pushKey)
            message.requests.append(
                entry(item.coordinates, job.notification, target, hash, &generator))
            parts.append((item.job, item.coordinates.installationID, item.coordinates.token, hash))
            jobs[item.job]?.parts[item.place].state = .underWay(id)
            jobs[item.job]?.parts[item.place].attempts += 1
            jobs[item.job]?.parts[item.place].tried.append(group.server)
        }
        let key = Draw.keyPair(&generator)
        requests.append(
            Request(
                id: id, key: key, server: group.server, messageID: group.messageID, since: now, parts: parts))
        let sealed = EndMessages.seal(
            .request, message.encoded(), signedBy: key, to: group.server,
            on: WakuTopic.partitioned(of: group.server), now, &generator)
        return (sealed, id)
    }

    private func entry(
        _ coordinates: Coordinates, _ notification: StatusNotification, _ target: StatusTarget,
        _ hash: Secret, _ generator: inout some RandomNumberGenerator
    ) -> PushNotification {
        var entry = PushNotification()
        entry.accessToken = coordinates.token
        entry.installationID = coordinates.installationID
        entry.publicKey = hash
        entry.author = StatusHash.author(key.point)
        switch notification.occasion {
        case .direct:
            // On the other side the chat bears the sender's name.
            entry.chatID = StatusHash.chat(StatusHash.contactID(key.point))
            entry.type = .message
        case .group(let chat):
            entry.chatID = StatusHash.chat(chat)
            entry.type = .message
        case .mention(let chat):
            entry.chatID = StatusHash.chat(chat)
            entry.type = .mention
        case .joinRequest(let community):
            entry.chatID = StatusHash.chat(community)
            entry.type = .requestToJoinCommunity
        }
        if let content = notification.content,
            let note = MessagePreview.seal(
                content, messageID: notification.messageID, author: key, to: target.pushKey,
                using: &generator)
        {
            entry.message = note
        }
        return entry
    }
}
