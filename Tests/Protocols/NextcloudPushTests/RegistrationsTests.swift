import NextcloudPush
import PushModel
import PushTesting
import Testing
import WireFormats

/// One user at an origin, for tests of the whole of it.
struct StoredEnds {
    let ends: Ends
    let origin = NextcloudOrigin()
    var state = NextcloudRegistrations()
    var passwords: [Int64: AppPasswordState] = [:]
    /// Records of notifications, as a store has them.
    var texts: [Int64: Secret] = [:]

    init() throws { ends = try Ends() }

    static let talk = "Mozilla/5.0 (iOS) Nextcloud-Talk v20.1.0"
    static let files = "Mozilla/5.0 (Android) Nextcloud-android/3.30.0"

    var conditions: PushConditions { PushConditions(appPasswords: passwords) }

    mutating func call(
        _ call: OCSCall, tokenID: Int64 = 41, agent: String = StoredEnds.talk
    ) throws -> NextcloudStep {
        keep(
            try state.receive(
                call,
                from: NextcloudCaller(
                    session: ends.session(tokenID), userID: "alice", displayName: "Alice <A&B>",
                    userAgent: agent),
                texts: state.needed(for: call).compactMap { texts[$0] }
                    .compactMap { StoredNotification(body: $0) },
                conditions: conditions, at: origin, now: Ends.now))
    }

    /// Keeps what a step says is to be kept, and nothing else.
    mutating func keep(_ step: NextcloudStep) -> NextcloudStep {
        for one in step.added { texts[one.id] = one.encoded() }
        for id in step.removed { #expect(texts.removeValue(forKey: id) != nil) }
        #expect(step.hasChanged || step.added.isEmpty && step.removed.isEmpty)
        return step
    }

    mutating func join(_ tokenID: Int64, agent: String = StoredEnds.talk, proxy: String = Ends.proxy) throws {
        passwords[tokenID] = AppPasswordState(lastUsedAt: Ends.now)
        let step = try call(
            .register(try ends.registration(token: "t\(tokenID)", proxy: proxy)), tokenID: tokenID,
            agent: agent)
        #expect(step.answer.status == 201 && step.hasChanged)
    }

    mutating func notify(_ subject: String, app: String = "spreed") throws -> NextcloudStep {
        try notify(.init(app: app, subject: subject, objectType: "chat", objectID: "t0k"))
    }

    mutating func notify(
        _ draft: StoredNotification.Draft, now: UnixTime = Ends.now
    ) throws -> NextcloudStep {
        keep(try state.notify(draft, of: ends.user, conditions: conditions, at: origin, now: now))
    }

    static func answer(_ subject: String) throws -> OCSAnswer {
        var user = try StoredEnds()
        _ = try user.notify(subject)
        return try user.call(.notification(1)).answer
    }

    static func data(_ answer: OCSAnswer) throws -> JSONValue? {
        try answer.body(.v2, .json).reveal { try JSONValue.parse($0) }["ocs"]?["data"]
    }
}

/// A user's calls and notifications as changes, entries and answers.
@Suite("Nextcloud origin's users", .timeLimit(.minutes(30)))
struct RegistrationsTests {
    @Test("A notification is kept, sealed for the right devices, read, found, deleted and withdrawn")
    func conversation() throws {
        var user = try StoredEnds()
        try user.join(41)
        try user.join(42, agent: StoredEnds.files, proxy: "https://other.example.com/")
        let talk = try user.notify("hello")
        #expect(talk.entries.map(\.proxy) == [Ends.proxy] && talk.hasChanged)
        let files = try user.notify("a file", app: "files")
        #expect(files.entries.map(\.proxy) == ["https://other.example.com"])
        let list = try StoredEnds.data(try user.call(.notifications).answer)?.array
        #expect(list?.compactMap { $0["notification_id"]?.int64 } == [2, 1])
        #expect(list?.last?["subject"]?.string == "hello" && list?.last?["user"]?.string == "alice")
        #expect(list?.last?["datetime"]?.string == "2027-01-15T08:00:00+00:00")
        let found = try StoredEnds.data(try user.call(.exists([2, 2, 0, 9])).answer)
        #expect(found?.array?.compactMap(\.int64) == [2])
        #expect(try user.call(.notification(9)).answer.status == 404)
        #expect(try user.call(.deleteNotification(0)).answer.status == 404)
        let nothing = try user.call(.deleteNotification(9))
        #expect(nothing.answer.status == 200 && !nothing.hasChanged && nothing.entries.isEmpty)
        let one = try user.call(.deleteNotification(1))
        #expect(one.hasChanged && one.entries.map(\.proxy) == [Ends.proxy])
        #expect(one.entries.first?.kind == .withdrawal)
        let all = try user.call(.deleteNotifications)
        #expect(all.byProxy.map(\.count) == [1, 1] && user.state.notifications.isEmpty)
        #expect(try user.call(.deleteNotifications).entries.isEmpty)
        _ = try user.notify("later")
        #expect(user.state.notifications.map(\.id) == [3], "no number has two meanings")
    }

    /// Expected by Python's `datetime`.
    @Test(
        "The moment of a notification is told by the calendar, leap days too",
        arguments: [
            (0, "1970-01-01T00:00:00"), (951_782_400, "2000-02-29T00:00:00"),
            (1_709_251_199, "2024-02-29T23:59:59"), (1_709_251_200, "2024-03-01T00:00:00"),
            (1_795_777_509, "2026-11-27T11:05:09"), (4_107_542_399, "2100-02-28T23:59:59"),
            (4_107_542_400, "2100-03-01T00:00:00"), (253_402_300_799, "9999-12-31T23:59:59"),
            // Outside of what has four digits.
            (-1, "1970-01-01T00:00:00"), (Int64.max / 1_000, "9999-12-31T23:59:59")
        ] as [(Int64, String)])
    func moments(_ seconds: Int64, _ text: String) throws {
        var user = try StoredEnds()
        _ = try user.notify(.init(app: "a", subject: "a"), now: UnixTime(seconds: seconds))
        let data = try StoredEnds.data(try user.call(.notification(1)).answer)
        #expect(data?["datetime"]?.string == text + "+00:00")
    }

    @Test("Withdrawals of twelve go to Talk in two messages and to others in twelve")
    func withdrawals() throws {
        var user = try StoredEnds()
        try user.join(41)
        try user.join(42, agent: StoredEnds.files)
        for number in 0..<12 { _ = try user.notify("\(number)") }
        let before = user.state
        #expect(
            try user.state.withdraw(
                Array(1...12), of: user.ends.user, conditions: user.conditions, at: user.origin,
                now: Ends.now
            ).entries.count == 2)
        user.state = before
        #expect(try user.call(.unregister).answer.status == 202)
        #expect(try user.call(.unregister).answer.status == 200)
        #expect(
            try user.state.withdraw(
                Array(1...12), of: user.ends.user, conditions: user.conditions, at: user.origin,
                now: Ends.now
            ).entries.count == 12)
    }

    @Test("What is too much for one row of a store goes in several calls, in order and whole")
    func largeWithdrawal() throws {
        var user = try StoredEnds()
        try user.join(41, agent: StoredEnds.files)
        let count = NextcloudLimits.entriesPerRow + 1
        for number in 0..<count { _ = try user.notify("\(number)", app: "files") }
        let step = try user.state.withdraw(
            (1...count).map(Int64.init), of: user.ends.user, conditions: user.conditions, at: user.origin,
            now: Ends.now)
        #expect(step.entries.count == count)
        #expect(step.byProxy.map(\.count) == [NextcloudLimits.entriesPerRow, 1])
        let together = step.byProxy.flatMap { $0 }
        #expect(zip(together, step.entries).allSatisfy { $0.json == $1.json })
        let largest = step.byProxy[0]
        let kept = largest.reduce(0) { $0 + ProxyQueue.Waiting($1, since: Ends.now).encoded().count + 4 }
        #expect(user.origin.call(largest).body.count + kept < 3 << 20)
    }

    @Test("The test reaches the devices of the group that asks, and says its number")
    func selfTest() throws {
        var user = try StoredEnds()
        try user.join(41)
        let step = try user.call(.selfTest)
        let data = try StoredEnds.data(step.answer)
        #expect(step.entries.count == 1 && data?["nid"]?.int64 == 1)
        #expect(data?["message"]?.string == "Sent to 1 device.")
        #expect(step.added.map(\.draft.app) == ["admin_notification_talk"])
        #expect(try user.call(.selfTest, agent: "curl").entries.isEmpty)
    }

    @Test("What is refused changes nothing")
    func refused() throws {
        var user = try StoredEnds()
        try user.join(41)
        let before = user.state.encoded()
        let long = { (count: Int) in String(repeating: "a", count: count) }
        for draft in [
            StoredNotification.Draft(app: "", subject: "a"), .init(app: "a", subject: ""),
            .init(app: long(33), subject: "a"), .init(app: "a", subject: long(1_025)),
            .init(app: "a", subject: "a", message: long(4_001)),
            .init(app: "a", subject: "a", objectID: long(65)),
            // Each may be, but together they are longer than what the padding takes.
            .init(
                app: "spreed", subject: "a", objectType: long(64), objectID: String(repeating: "ä", count: 32)
            )
        ] {
            #expect(throws: NextcloudError.self) {
                try user.state.notify(
                    draft, of: user.ends.user, conditions: user.conditions, at: user.origin, now: Ends.now)
            }
            #expect(user.state.encoded() == before)
        }
        var bad = try user.ends.registration()
        bad.proxyServer = "ftp://x"
        let step = try user.call(.register(bad))
        #expect(step.answer.word == .invalidProxyServer && !step.hasChanged)
        #expect(user.state.encoded() == before)
    }

    @Test("Of more devices, notifications or bytes than there is room for, the oldest go")
    func bounds() throws {
        var user = try StoredEnds()
        for id in 1...101 { try user.join(Int64(id)) }
        #expect(user.state.devices.map(\.tokenID) == (2...101).map { Int64($0) })
        user.passwords[50] = nil
        try user.join(200)
        #expect(user.state.devices.map(\.tokenID).contains(2) && user.state.devices.count == 100)
        var other = try StoredEnds()
        for number in 0..<1_001 { _ = try other.notify("\(number)") }
        #expect(other.state.notifications.count == 1_000 && other.state.notifications.first?.id == 2)
        #expect(other.texts.count == 1_000 && other.texts[1] == nil)
        #expect(other.state.encoded().count < 64 << 10, "no text is in a user's record")
        let message = String(repeating: "\u{1}", count: 4_000)
        for _ in 0..<140 { _ = try other.notify(.init(app: "a", subject: "a", message: message)) }
        let kept = other.texts.values.compactMap { StoredNotification(body: $0) }
        let bytes = kept.reduce(0) { $0 + $1.draft.message.utf8.count }
        #expect(bytes <= NextcloudLimits.keptNotificationBytes && bytes > 500_000)
        #expect(Set(kept.map(\.id)) == Set(other.state.notifications.map(\.id)))
        #expect(NextcloudRegistrations(body: other.state.encoded()) != nil, "its fullest can be read")
    }

    @Test("A notification is over after sixty days: it is not found, and goes when another comes")
    func life() throws {
        var user = try StoredEnds()
        _ = try user.notify("old")
        let end = Ends.now + NextcloudLimits.notificationLife
        #expect(StoredNotification(body: try #require(user.texts[1]))?.endsAt == end)
        let before = end + .seconds(-1)
        for (now, isThere) in [(before, true), (end, false)] {
            let caller = NextcloudCaller(
                session: user.ends.session(41), userID: "alice", displayName: "", userAgent: "")
            let answer = try user.state.receive(
                .exists([1]), from: caller, conditions: user.conditions, at: user.origin, now: now
            ).answer
            #expect(try StoredEnds.data(answer)?.array?.count == (isThere ? 1 : 0))
        }
        let kept = user
        #expect(try user.notify(.init(app: "a", subject: "a"), now: before).removed == [])
        user = kept
        #expect(try user.notify(.init(app: "a", subject: "a"), now: end).removed == [1])
        #expect(user.state.notifications.map(\.id) == [2])
    }

    @Test("What may be about an object is found by its type and id; a lost text is as if it had never been")
    func candidates() throws {
        var user = try StoredEnds()
        for id in ["a", "b", "a"] {
            _ = try user.notify(.init(app: "x", subject: id, objectType: "t", objectID: id))
        }
        #expect(user.state.candidates(objectType: "t", objectIDs: ["a"]) == [1, 3])
        #expect(user.state.candidates(objectType: "t", objectIDs: ["b", "c"]) == [2])
        #expect(user.state.candidates(objectType: "ta", objectIDs: [""]) == [])
        user.texts[2] = nil
        #expect(try user.call(.notification(2)).answer.status == 404)
        let list = try StoredEnds.data(try user.call(.notifications).answer)?.array
        #expect(list?.compactMap { $0["notification_id"]?.int64 } == [3, 1])
    }

    @Test("A record is read as it was written, and no cut or changed one as anything else")
    func records() throws {
        var user = try StoredEnds()
        try user.join(41)
        try user.join(42, agent: "curl")
        _ = try user.notify("q\"\\\u{1}😀")
        let body = user.state.encoded()
        let read = try #require(NextcloudRegistrations(body: body))
        #expect(read.devices == user.state.devices && read.notifications == user.state.notifications)
        #expect(read.nextID == 2 && read.encoded() == body)
        let text = try #require(user.texts[1])
        let stored = try #require(StoredNotification(body: text))
        #expect(stored.draft.subject == "q\"\\\u{1}😀" && stored.encoded() == text)
        #expect(StoredNotification(body: body) == nil && NextcloudRegistrations(body: text) == nil)
        let letters = text.reveal { Array($0) }
        for count in 0..<letters.count {
            #expect(StoredNotification(body: Secret(letters.prefix(count))) == nil)
        }
        for notes in ["", "1:0:0:0", "1:0:0:2:0", "2:0:0:0:0", "0:0:0:0:0", "1:0:-1:0:0", "1:0:524289:0:0"] {
            let text = #"[["nextcloud-user-2","2"],["n","\#(notes)"]]"#
            #expect(NextcloudRegistrations(body: Secret(text.utf8)) == nil)
        }
        let bytes = body.reveal { Array($0) }
        for count in 0..<bytes.count {
            #expect(NextcloudRegistrations(body: Secret(bytes.prefix(count))) == nil)
        }
        for next in ["0", "-1", "9007199254740993", "9223372036854775807", "9223372036854775808", "x", ""] {
            #expect(
                NextcloudRegistrations(body: Secret(#"[["nextcloud-user-2","\#(next)"]]"#.utf8)) == nil)
        }
        let entry = ProxyQueue.Waiting(try #require(try user.notify("b").entries.first), since: Ends.now)
        let kept = try #require(ProxyQueue.Waiting(body: entry.encoded()))
        #expect(kept.entry.json == entry.entry.json && kept.entry.kind == entry.entry.kind)
        #expect(kept.encoded() == entry.encoded() && ProxyQueue.Waiting(body: body) == nil)
    }

    @Test("An unknown device goes by the word of its own proxy, unless it has registered anew")
    func unknown() throws {
        var user = try StoredEnds()
        try user.join(41)
        let entries = try user.notify("a").entries
        let id = try #require(entries.first).deviceIdentifier
        let word = ProxyReading(CallAnswer(200, #"{"unknown":["\#(id)"],"failed":1}"#))
        var renewed = user
        _ = try renewed.call(.register(try user.ends.registration(token: "new")))
        #expect(renewed.state.settle(word, to: entries).isEmpty)
        let out = ProxyReading(CallAnswer(503, #"{"unknown":["\#(id)"],"failed":1}"#))
        #expect(user.state.settle(out, to: entries).isEmpty)
        #expect(user.state.settle(word, to: entries) == [41])
        #expect(user.state.devices.isEmpty && user.state.settle(word, to: entries).isEmpty)
    }

    @Test("Capabilities list devices to whoever is logged in, and to nobody else")
    func capabilities() throws {
        let push = { (isLoggedIn: Bool) in
            try StoredEnds.data(.capabilities(isLoggedIn: isLoggedIn))?["capabilities"]?["notifications"]?[
                "push"]
        }
        #expect(try push(true)?.array?.compactMap(\.string) == ["devices", "object-data", "delete"])
        #expect(try push(false) == nil)
        var user = try StoredEnds()
        let data = try StoredEnds.data(try user.call(.user).answer)
        #expect(data?["id"]?.string == "alice" && data?["display-name"]?.string == "Alice <A&B>")
    }

    // MARK: proxies

    private func judge(
        _ answer: CallAnswer, _ sent: [ProxyQueue.Waiting], failures: Int = 0, now: UnixTime = Ends.now
    ) -> ProxyJudgement {
        var random = SystemRandomNumberGenerator()
        return ProxyJudgement(ProxyReading(answer), to: sent, failures: failures, now: now, using: &random)
    }

    @Test("A call that may pass is tried again, one that is too large is halved, one refused is given up")
    func judgement() throws {
        let ends = try Ends()
        let sent = (0..<5).map { ProxyQueue.Waiting(ends.entry("\($0)"), since: Ends.now) }
        let fine = judge(CallAnswer(200, #"{"unknown":null,"failed":0}"#), sent, failures: 4)
        #expect(fine.again.isEmpty && fine.lost == 0 && fine.failures == 0 && fine.notBefore == nil)
        let busy = judge(CallAnswer(429, retryAfter: "120"), sent, failures: 2)
        #expect(busy.again.map(\.count) == [5] && busy.failures == 3 && busy.isRateLimited)
        #expect(busy.notBefore == Ends.now + .seconds(120))
        for failures in [0, 3, 16, Int.max, -1] {
            let away = judge(.none, sent, failures: failures)
            let pause = try #require(away.notBefore).since(Ends.now)
            #expect(away.again.map(\.count) == [5] && pause >= .milliseconds(500) && pause <= .seconds(300))
        }
        let large = judge(CallAnswer(413), sent)
        #expect(large.again.map(\.count) == [3, 2] && large.lost == 0)
        let one = judge(CallAnswer(413), Array(sent.prefix(1)))
        #expect(one.again.isEmpty && one.lost == 1)
        let refused = judge(CallAnswer(403), sent)
        #expect(refused.again.isEmpty && refused.lost == 5 && refused.notBefore == nil)
        let late = judge(.none, sent, now: Ends.now + .seconds(86_400))
        #expect(late.again.isEmpty && late.lost == 5)
        let call = ProxyQueue.Waiting(ends.entry("c", isCall: true), since: Ends.now)
        #expect(judge(.none, [call] + sent, now: Ends.now + .seconds(60)).again.map(\.count) == [5])
        #expect(ProxyJudgement.live([call] + sent, now: Ends.now + .seconds(60)).count == 5)
    }
}
