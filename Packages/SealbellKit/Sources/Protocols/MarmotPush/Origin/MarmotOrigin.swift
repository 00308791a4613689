public import PushModel
public import SealbellKit
public import Secp256k1Keys
import WireFormats

/// The sender of Marmot: whoever writes into a group wakes the others' phones. One serves an app for all its
/// groups.
///
/// ``notify(_:)`` takes what ``MarmotDevice/tokensToWake(at:)`` returned. Its calls are `lookUp` of servers'
/// relay lists, `http` for relays' documents (NIP-11), and `event`; what became of each wake is in
/// ``takeSettled()``. `MarmotPublisher` of the product `MarmotPublishing` carries them out, also through Tor.
///
/// Any member of a group can name a relay, and all the others' phones would go there. So whoever carries
/// calls out dials no address of the phone's own network (loopback, private, link-local) and no plain `ws`
/// one but those that the app itself gave, as `MarmotPublisher` does; the answer for such a relay is
/// ``RelayAnswer/forbidden``, and for its document `.none`.
///
/// Best effort: the message comes first, and whatever becomes of a trigger never delays or fails it. Wakes
/// that are under way are not kept over a restart.
public struct MarmotOrigin: PushOrigin {
    private let lookUps: [String]
    private let builtIn: [XOnlyKey: [String]]
    private let seedPath: GiftWrap.Path
    /// What is known of servers and relays.
    package var cache: RelayListCache
    /// ``MarmotLimits/secondTryPause``.
    package var pause = MarmotLimits.secondTryPause

    private var wakes: [OpenWake] = []
    private var ended: [(id: UInt64, reports: [WakeReport])] = []
    /// Look-ups under way, which wakes share.
    private var listing: [XOnlyKey: (call: UInt64, isDoubted: Bool)] = [:]
    /// Relays whose documents are being fetched, by call.
    private var documents: [UInt64: String] = [:]
    /// Calls that were not answered, and since when.
    private var asked: [UInt64: (call: Call, since: UnixTime)] = [:]
    private var nextID: UInt64
    /// Something has happened since ``due(at:using:)``.
    private var isStirred = false

    /// The sender after ``kept``, or a new one.
    ///
    /// - Parameter lookUp: `wss://` URLs of the relays at which servers' lists (kind 10050) are looked up:
    ///   those that the app itself uses.
    /// - Parameter builtIn: `wss://` URLs by server, for servers of which no list is found.
    /// - Parameter seedPath: whether triggers of the seed text are sealed, as its prose says, or signed and
    ///   straight in the wrap, as it draws them.
    /// - Parameter kept: at most ``MarmotLimits/keptListsBytes``, 2 MiB; `nil`: new. What is damaged in it
    ///   is left out, and looked up again.
    /// - Parameter generator: a place for ids of calls; the system's.
    public init(
        lookUp: [String], builtIn: [XOnlyKey: [String]] = [:], seedPath: GiftWrap.Path = .sealed,
        keeping kept: Secret? = nil, using generator: inout some RandomNumberGenerator
    ) {
        (lookUps, self.builtIn, self.seedPath) = (lookUp, builtIn, seedPath)
        cache = kept.map { RelayListCache(keeping: $0) } ?? RelayListCache()
        // From a place of its own, so that a call of an earlier run is none of this one's.
        nextID = UInt64.random(in: 0...UInt64.max >> 1, using: &generator)
    }

    /// The sender after ``kept``, or a new one; ids of calls are of the system's generator.
    ///
    /// - Parameter lookUp: `wss://` URLs of the relays at which servers' lists are looked up.
    /// - Parameter builtIn: `wss://` URLs by server, for servers of which no list is found.
    /// - Parameter kept: at most ``MarmotLimits/keptListsBytes``, 2 MiB; `nil`: new.
    public init(lookUp: [String], builtIn: [XOnlyKey: [String]] = [:], keeping kept: Secret? = nil) {
        var generator = SystemRandomNumberGenerator()
        self.init(lookUp: lookUp, builtIn: builtIn, keeping: kept, using: &generator)
    }

    /// Takes a wake of phones; ask ``due(at:using:)`` behind it.
    ///
    /// - Parameter tokens: what ``MarmotDevice/tokensToWake(at:)`` returned, of one group; none wakes nobody.
    /// - Returns: a number under which ``takeSettled()`` tells the end, unique within one run.
    /// - Throws: `.tooMany` beyond ``MarmotLimits/openWakes``, or ``MarmotLimits/openWakesBytes``, that are
    ///   under way; with the detail `tooMuchContent` for more than ``MarmotLimits/tokensOfWake`` or
    ///   ``MarmotLimits/tokenBytesOfWake``, which no group's tokens are. Nothing is taken then.
    @discardableResult
    public mutating func notify(_ tokens: [GossipToken]) throws(DeviceError) -> UInt64 {
        guard wakes.count < MarmotLimits.openWakes else { throw DeviceError(.tooMany) }
        guard tokens.fitting() == tokens.count else {
            throw DeviceError(.tooMany, MarmotErrorCode.tooMuchContent.rawValue)
        }
        let bytes = tokens.reduce(0) { $0 + $1.wakeBytes }
        guard wakes.reduce(bytes, { $0 + $1.bytes }) <= MarmotLimits.openWakesBytes else {
            throw DeviceError(.tooMany)
        }
        let groups = Dictionary(grouping: tokens, by: \.server)
        let order = groups.sorted { left, right in
            let isBuiltIn = (builtIn[left.key] != nil, builtIn[right.key] != nil)
            if isBuiltIn.0 != isBuiltIn.1 { return isBuiltIn.0 }
            if left.value.count != right.value.count { return left.value.count > right.value.count }
            return left.key.bytes.lexicographicallyPrecedes(right.key.bytes)
        }
        let wake = OpenWake(
            id: id(), bytes: bytes,
            servers: order.prefix(MarmotLimits.serversOfWake).map { ServerWake($0.key, $0.value) },
            left: order.dropFirst(MarmotLimits.serversOfWake).map {
                WakeReport(server: $0.key, tokens: $0.value.count)
            })
        wakes.append(wake)
        isStirred = true
        return wake.id
    }

    /// What became of wakes since it was asked last, at most the newest ``MarmotLimits/openWakes``: how many
    /// tokens' servers have each of their triggers at one of their relays, and how many tokens' have not.
    ///
    /// Details: `noList` (kind 10050 was not found), `noRelay` (it names none that can be used), `noTor`,
    /// `notTaken`.
    public mutating func takeSettled() -> [Settled] {
        takeReports().map { id, reports in
            let missed = reports.filter { !$0.isReached }
            let reached = reports.filter(\.isReached)
            return Settled(
                id: id, reached: reached.reduce(0) { $0 + $1.tokens },
                missed: missed.reduce(0) { $0 + $1.tokens }, detail: missed.first?.fault)
        }
    }

    /// The same, by server.
    package mutating func takeReports() -> [(id: UInt64, reports: [WakeReport])] {
        defer { ended = [] }
        return ended
    }

    /// Gives a wake up: it is settled with what has come of it.
    package mutating func end(_ id: UInt64) {
        guard let place = wakes.firstIndex(where: { $0.id == id }) else { return }
        settle(wakes.remove(at: place))
    }

    /// The server whose list a call looks up, and whether the known one has led nowhere.
    package func lookUp(of call: Call) -> (server: XOnlyKey, isDoubted: Bool)? {
        listing.first { $0.value.call == call.id }.map { ($0.key, $0.value.isDoubted) }
    }

    // MARK: calls

    /// Calls to make now. A list is looked up once for all that wait for it, and again after a day; a
    /// document is fetched once a day. A trigger that no relay takes is published once more, after a pause of
    /// 2 s to 4 s. A call that was not answered within ``MarmotLimits/callLife`` counts as answered with
    /// `.none`.
    public mutating func due(at now: UnixTime, using generator: inout some RandomNumberGenerator) -> [Call] {
        // In the order in which they were asked, so that one generator makes one course of events.
        for (_, (call, since)) in asked.sorted(by: { $0.key < $1.key }) where Self.isLost(since, now) {
            answered(.none, to: call, at: now, using: &generator)
        }
        isStirred = false
        var calls: [Call] = []
        for place in wakes.indices {
            var wake = wakes[place]
            var atOnce = wake.servers.count(where: \.isUnderWay)
            for at in wake.servers.indices {
                if case .over = wake.servers[at].stage { continue }
                if case .waiting = wake.servers[at].stage {
                    guard atOnce < MarmotLimits.serversAtOnce else { continue }
                    atOnce += 1
                }
                advance(&wake.servers[at], now, &generator, &calls)
                if case .over = wake.servers[at].stage { atOnce -= 1 }
            }
            wakes[place] = wake
        }
        let over = wakes.filter { $0.servers.allSatisfy { if case .over = $0.stage { true } else { false } } }
        wakes.removeAll { wake in over.contains { $0.id == wake.id } }
        for wake in over { settle(wake) }
        for call in calls { asked[call.id] = (call, now) }
        return calls
    }

    /// A clock that was set back must not put it off.
    private static func isLost(_ since: UnixTime, _ now: UnixTime) -> Bool {
        let age = now.since(since)
        return age >= MarmotLimits.callLife || age <= .zero - MarmotLimits.callLife
    }

    /// Takes what came of a call: of an `event` `.relays` with each relay's own answer, or `.taken`; of a
    /// `lookUp` `.events`; of a document's `http` whatever came. Anything else is `.none`.
    public mutating func answered(
        _ answer: CallAnswer, to call: Call, at now: UnixTime,
        using generator: inout some RandomNumberGenerator
    ) {
        asked[call.id] = nil
        if let (server, _) = lookUp(of: call) {
            listing[server] = nil
            note(answer, of: server, now)
        } else if let relay = documents.removeValue(forKey: call.id) {
            // A relay whose document cannot be read is none the worse.
            let found = answer.status == 200 ? try? RelayInformation(reading: answer.body) : nil
            cache.note(found, ofRelay: relay, at: now)
        } else {
            note(answer, toEvent: call, now, &generator)
        }
        isStirred = true
    }

    /// When to call ``due(at:using:)`` without anything having happened.
    public var nextDue: UnixTime? {
        if isStirred { return .distantPast }
        let pauses = wakes.lazy.flatMap(\.servers).flatMap(\.sendings).compactMap {
            if case .pausing(let until) = $0.step { until } else { nil }
        }
        let lost = asked.values.lazy.map { $0.since + MarmotLimits.callLife }
        return [pauses.min(), lost.min()].compactMap(\.self).min()
    }

    /// What to keep over a restart, at most ``MarmotLimits/keptListsBytes``: servers' relay lists, which are
    /// public.
    public var kept: Secret { cache.encoded() }

    // MARK: one server

    private mutating func advance(
        _ one: inout ServerWake, _ now: UnixTime, _ generator: inout some RandomNumberGenerator,
        _ calls: inout [Call]
    ) {
        if case .waiting = one.stage {
            let waits = one.needsList && isListing(one, isDoubted: false, now, &calls)
            if waits { one.stage = .listing(isDoubted: false) } else { fetch(&one, false, now, &calls) }
        }
        if case .listing(let isDoubted) = one.stage, listing[one.server] == nil {
            fetch(&one, isDoubted, now, &calls)
        }
        if case .documents(let isDoubted) = one.stage, one.documents.allSatisfy({ documents[$0] == nil }) {
            make(&one, now, &generator)
            // A list from the last run may name nobody who still listens.
            if !one.isWhole, !isDoubted, isListing(one, isDoubted: true, now, &calls) {
                one.sendings = []
                one.stage = .listing(isDoubted: true)
            } else {
                one.stage = .sending
            }
        }
        if case .sending = one.stage { send(&one, now, &calls) }
    }

    /// Has a server's list looked up, unless one is known that is fresh.
    ///
    /// - Returns: whether to wait for it.
    private mutating func isListing(
        _ one: ServerWake, isDoubted: Bool, _ now: UnixTime, _ calls: inout [Call]
    ) -> Bool {
        guard cache.isDue(one.server, isDoubted: isDoubted, at: now) else { return false }
        guard listing[one.server] == nil else { return true }
        var filter = JSONWriter()
        NostrFilter.relayList(of: one.server).write(to: &filter)
        let places = (lookUps + relays(of: one.server) + one.hints).unique
        let call = Call(id: id(), .lookUp(filter: filter.takeSecret(), relays: places))
        listing[one.server] = (call.id, isDoubted)
        calls.append(call)
        return true
    }

    /// Where a server listens as far as it, or the app, says itself.
    private func relays(of server: XOnlyKey) -> [String] {
        cache.list(of: server)?.relays ?? builtIn[server] ?? []
    }

    private mutating func fetch(
        _ one: inout ServerWake, _ isDoubted: Bool, _ now: UnixTime, _ calls: inout [Call]
    ) {
        one.documents = []
        one.stage = .documents(isDoubted: isDoubted)
        for relay in (one.hints + relays(of: one.server)).unique.prefix(MarmotLimits.documentsOfServer)
        where cache.document(of: relay, at: now) == nil {
            if let asked = documents.first(where: { $0.value == relay })?.key {
                one.documents.insert(asked)
            } else if let url = RelayInformation.url(ofRelay: relay) {
                let http = HTTPCall(
                    method: "GET", url: url,
                    headers: [("accept", Secret("application/nostr+json".utf8))],
                    answerLimitBytes: MarmotLimits.informationBytes)
                let call = Call(id: id(), .http(http), patience: MarmotLimits.documentPatience)
                documents[call.id] = relay
                one.documents.insert(call.id)
                calls.append(call)
            }
        }
    }

    private func make(
        _ one: inout ServerWake, _ now: UnixTime, _ generator: inout some RandomNumberGenerator
    ) {
        var directory = MarmotOriginRoutine.Directory()
        directory.lists[one.server] = cache.list(of: one.server)
        directory.fallbacks[one.server] = builtIn[one.server]
        for relay in (one.hints + relays(of: one.server)).unique {
            if case .some(let known?) = cache.document(of: relay, at: now) {
                directory.information[relay] = known
            }
        }
        // Fails only where a frame outgrew what was reckoned: then nothing was made.
        let made = try? MarmotOriginRoutine(directory, seedPath: seedPath)
            .notify(one.tokens, now: now, using: &generator)
        one.sendings = (made?.triggers ?? []).map { Sending(trigger: $0) }
        one.isWhole = made?.unreachable.isEmpty ?? false
    }

    private mutating func send(_ one: inout ServerWake, _ now: UnixTime, _ calls: inout [Call]) {
        var atOnce = one.sendings.count(where: \.isUnderWay)
        for at in one.sendings.indices {
            switch one.sendings[at].step {
            case .queued:
                guard atOnce < MarmotLimits.triggersAtOnce else { continue }
                atOnce += 1
                let relays = one.sendings[at].trigger.relays
                publish(&one.sendings[at], relays, isAgain: false, &calls)
            case .pausing(let until):
                // A clock that was set back must not put it off.
                guard until <= now || until.since(now) > pause * 2 else { continue }
                guard !isListing(one, isDoubted: true, now, &calls) else {
                    one.sendings[at].step = .listing
                    continue
                }
                again(&one.sendings[at], &calls)
            case .listing: if listing[one.server] == nil { again(&one.sendings[at], &calls) }
            case .under, .over: continue
            }
            if one.sendings[at].isOver { atOnce -= 1 }
        }
        if one.sendings.allSatisfy(\.isOver) { one.stage = .over }
    }

    private mutating func again(_ sending: inout Sending, _ calls: inout [Call]) {
        let relays = sending.again(relays(of: sending.trigger.server))
        guard !relays.isEmpty else { return sending.step = .over }
        publish(&sending, relays, isAgain: true, &calls)
    }

    private mutating func publish(
        _ sending: inout Sending, _ relays: [String], isAgain: Bool, _ calls: inout [Call]
    ) {
        let call = Call(id: id(), .event(sending.trigger.wrap.serialized(), relays: relays))
        sending.step = .under(call: call.id, isAgain: isAgain)
        calls.append(call)
    }

    // MARK: answers

    private mutating func note(_ answer: CallAnswer, of server: XOnlyKey, _ now: UnixTime) {
        switch answer {
        // Whoever carries calls out has noted it.
        case .taken: break
        case .events(let texts):
            // A relay may say what it likes; what is no event of the server's is no list.
            let events = texts.prefix(MarmotLimits.listsRead).compactMap { try? NostrEvent.parse($0) }
            cache.note(RelayList.newest(of: events, author: server), isAnswered: true, of: server, at: now)
        default: cache.note(nil, isAnswered: false, of: server, at: now)
        }
    }

    private mutating func note(
        _ answer: CallAnswer, toEvent call: Call, _ now: UnixTime,
        _ generator: inout some RandomNumberGenerator
    ) {
        guard case .event(_, let relays) = call.way else { return }
        for place in wakes.indices {
            for at in wakes[place].servers.indices {
                let sendings = wakes[place].servers[at].sendings
                guard
                    let one = sendings.firstIndex(where: {
                        if case .under(call.id, _) = $0.step { true } else { false }
                    }), case .under(_, let isAgain) = sendings[one].step
                else { continue }
                var sending = sendings[one]
                switch answer {
                case .relays(let answers): sending.note(Array(answers.prefix(relays.count)))
                // One of them, whichever it is.
                case .taken: sending.note(relays.prefix(1).map { ($0, .accepted) })
                default: sending.note(relays.map { ($0, .unanswered) })
                }
                if isAgain || sending.isAccepted {
                    sending.step = .over
                } else {
                    sending.step = .pausing(until: now + pause + generator.span(upTo: pause))
                }
                wakes[place].servers[at].sendings[one] = sending
                return
            }
        }
    }

    // MARK: parts

    private mutating func settle(_ wake: OpenWake) {
        let reports = wake.servers.map { $0.report(hasList: cache.list(of: $0.server) != nil) }
        ended.append((wake.id, reports + wake.left))
        // Of an app that never asks the oldest are forgotten.
        ended.removeFirst(max(0, ended.count - MarmotLimits.openWakes))
    }

    private mutating func id() -> UInt64 {
        nextID &+= 1
        return nextID
    }
}
