import PushModel
import PushTesting
import StatusPush
import Testing

@Suite("What a gorush answers")
struct GorushAnswerTests {
    private static let apple = String(repeating: "0123456789abcdef", count: 4)
    private static let google = "cAbCdEfGh:APA91b" + String(repeating: "Zyx_", count: 30)

    private static func push(_ token: String, isApple: Bool = true) -> GatewayHandover.Push {
        GatewayHandover.Push(
            notification: Secret([]), token: Secret(token.utf8), isApple: isApple, hasTopic: isApple,
            record: RecordKey(Space(core: "test"), Secret(token.utf8)), isUnchanged: .any)
    }

    private static func failures(
        _ logs: String, counts: Int? = nil, of pushes: [GatewayHandover.Push]
    ) -> GorushFailures? {
        let counts = counts ?? pushes.count
        return GorushAnswer(Secret(#"{"counts":\#(counts),"logs":[\#(logs)]}"#.utf8))?
            .failures(of: pushes[...])
    }

    private static func hidden(_ token: String) -> String {
        let stars = String(repeating: "*", count: 10)
        return stars + token.dropFirst(10).dropLast(10) + stars
    }

    @Test("A token is known by its letters, or by those that are left of it")
    func tokens() throws {
        let pushes = [Self.push(Self.apple), Self.push(Self.google, isApple: false)]
        for token in [Self.apple, Self.hidden(Self.apple)] {
            let found = Self.failures(#"{"token":"\#(token)","error":"Unregistered"}"#, of: pushes)
            #expect(found?.failed == [0] && found?.words == [0: .dead], "\(token)")
        }
        let invalid = "The registration token is not a valid FCM registration token"
        let found = Self.failures(
            #"{"error":"\#(invalid)","token":"\#(Self.hidden(Self.google))"},"#
                + #"{"token":"\#(Self.apple)","error":"Shutdown"}"#, of: pushes)
        #expect(found?.failed == [0, 1] && found?.words == [1: .dead])
    }

    @Test("Where it is not certain whose word it is, all may have failed, and nobody is dead")
    func doubts() throws {
        let other = "9999999999" + Self.apple.dropFirst(10)
        let pushes = [Self.push(Self.apple), Self.push(other)]
        let stars = String(repeating: "*", count: 64)
        let strangers = [
            stars, String(repeating: "*", count: 33) + Self.apple.dropFirst(33), Self.apple + "0",
            String(Self.apple.dropLast()), Self.hidden(Self.apple).replacing("b", with: "c"), ""
        ]
        for token in strangers {
            let found = Self.failures(#"{"token":"\#(token)","error":"Unregistered"}"#, of: pushes)
            #expect(found?.failed == [0, 1] && found?.words == [:], "\(token)")
        }
        // Both are left the same by what gorush hides.
        let twins = Self.failures(
            #"{"token":"\#(Self.hidden(other))","error":"Unregistered"}"#, of: pushes)
        #expect(twins?.failed == [0, 1] && twins?.words == [:])
        // Two notifications for one token are one token.
        let same = Self.failures(
            #"{"token":"\#(Self.hidden(other))","error":"Unregistered"}"#,
            of: [Self.push(other), Self.push(other)])
        #expect(same?.words == [0: .dead, 1: .dead])
        // The number of one with the token of another, or with none.
        for token in [Self.apple, ""] {
            let found = Self.failures(
                #"{"notif_id":"1","token":"\#(token)","error":"Unregistered"}"#, of: pushes)
            #expect(found?.failed == [1] && found?.words == [:])
        }
        let numbered = Self.failures(
            #"{"notif_id":"1","token":"\#(Self.hidden(other))","error":"Unregistered"}"#, of: pushes)
        #expect(numbered?.failed == [1] && numbered?.words == [1: .dead])
        // Too few were counted: something was dropped, and what is said of the others counts no more.
        let few = Self.failures(
            #"{"token":"\#(other)","error":"Unregistered"}"#, counts: 1, of: pushes)
        #expect(few?.failed == [0, 1] && few?.words == [:])
    }

    @Test("Only the exact count says that nothing was dropped, by either way of counting")
    func counts() {
        let apple = [Self.push(Self.apple), Self.push("9" + Self.apple.dropFirst())]
        for counts in 0...6 {
            let isAll = counts == 2 || counts == 4
            #expect(Self.failures("", counts: counts, of: apple)?.failed == (isAll ? [] : [0, 1]))
            let google = [Self.push(Self.google, isApple: false)]
            #expect(Self.failures("", counts: counts, of: google)?.failed == (counts == 1 ? [] : [0]))
        }
    }

    @Test("A call has pushes of one platform alone, as many as gorush takes")
    func calls() {
        let apple = (0..<201).map { Self.push("\($0)") }
        let google = (0..<3).map { Self.push("\($0)", isApple: false) }
        func places(_ pushes: [GatewayHandover.Push]) -> [Range<Int>] {
            GorushCall.calls(for: pushes).map(\.pushes.indices)
        }
        #expect(places(apple + google) == [0..<100, 100..<200, 200..<201, 201..<204])
        #expect(places(google) == [0..<3] && places([]) == [])
        #expect(places([apple[0]]) == [0..<1])
    }

    @Test("Words are those of the token's own service, whole, and texts")
    func words() throws {
        let pushes = [Self.push(Self.apple), Self.push(Self.google, isApple: false)]
        let rows: [(error: String, apple: GorushAnswer.Word?, google: GorushAnswer.Word?)] = [
            (#""Unregistered""#, .dead, nil), (#""ExpiredToken""#, .dead, nil),
            (#""BadDeviceToken""#, .bad, nil), (#""unregistered device""#, nil, .dead),
            (#""invalid registration token""#, nil, .dead), (#""Unregistered ""#, nil, nil),
            (#""fcm service send message error: unregistered device""#, nil, nil),
            (#""TopicDisallowed""#, nil, nil), (#""""#, nil, nil), ("null", nil, nil),
            (#"["Unregistered"]"#, nil, nil), (#"{"error":"Unregistered"}"#, nil, nil)
        ]
        for row in rows {
            for (place, word) in [(0, row.apple), (1, row.google)] {
                let token = place == 0 ? Self.apple : Self.google
                let found = Self.failures(#"{"token":"\#(token)","error":\#(row.error)}"#, of: pushes)
                #expect(found?.failed == [place] && found?.words[place] == word, "\(row.error)")
            }
        }
        // A word that is certain stands beside one that is not.
        let both = Self.failures(
            #"{"token":"\#(Self.apple)","error":"Unregistered"},"#
                + #"{"token":"\#(Self.apple)","error":"BadDeviceToken"}"#, of: pushes)
        #expect(both?.words == [0: .dead])
    }

    @Test(
        "What is no answer of gorush's is none", arguments: ["", "{}", "[]", "{\"logs\":[{\"token\":", "null"]
    )
    func broken(_ text: String) { #expect(GorushAnswer(Secret(text.utf8)) == nil) }

    @Test("A token that Apple does not know is believed dead after a push was taken, twenty in a row at most")
    func trust() {
        var trust = BadTokenTrust()
        func believed(_ times: Int) -> Int {
            var count = 0
            for _ in 0..<times where trust.isBelieved() { count += 1 }
            return count
        }
        #expect(believed(3) == 0)
        for _ in 0..<2 {
            trust.accepted()
            #expect(believed(25) == 20)
        }
    }

    @Test("A token that Apple does not know is dead where another one was taken, a dead one always")
    func dead() {
        let unknown = #"{"token":"\#(Self.apple)","error":"BadDeviceToken"}"#
        let gone = #"{"token":"\#(Self.google)","error":"unregistered device"}"#
        let pushes = [
            Self.push(Self.apple), Self.push("9" + Self.apple.dropFirst()),
            Self.push(Self.google, isApple: false)
        ]
        let rows: [(pushes: [GatewayHandover.Push], logs: String, dead: Set<Int>)] = [
            // Nothing was taken: gorush may ask where our tokens are not known.
            ([pushes[0], pushes[2]], unknown + "," + gone, [1]), (pushes, unknown + "," + gone, [0, 2]),
            (pushes, "", [])
        ]
        for row in rows {
            var trust = BadTokenTrust()
            let failures = Self.failures(row.logs, of: row.pushes) ?? GorushFailures()
            let dead = trust.dead(failures, among: row.pushes)
            #expect(dead == row.dead, "\(row.logs)")
        }
    }

    @Test("A call was taken where nothing failed, and failed where the answer is none")
    func outcomes() throws {
        let call = try #require(GorushCall.calls(for: [Self.push(Self.apple)]).first)
        let refusal = #"{"counts":1,"logs":[{"token":"\#(Self.apple)","error":"Unregistered"}]}"#
        let rows: [(status: Int, body: String, failed: Set<Int>, outcome: GorushCall.Outcome)] = [
            (200, #"{"counts":1,"logs":[]}"#, [], .taken), (299, refusal, [0], .refused),
            (300, #"{"counts":1,"logs":[]}"#, [0], .failed), (503, "", [0], .failed), (200, "", [0], .failed)
        ]
        for row in rows {
            let found = call.answered(status: row.status, Secret(row.body.utf8))
            #expect(found.failures.failed == row.failed && found.outcome == row.outcome, "\(row.body)")
        }
        let silence = call.unanswered()
        #expect(silence.failures.failed == [0] && silence.outcome == .unreachable)
        #expect(call.body() == Secret(#"{"notifications":[]}"#.utf8))
    }
}
