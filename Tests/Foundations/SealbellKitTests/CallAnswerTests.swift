import PushModel
import SealbellKit
import Testing

@Suite("What came back for a call", .timeLimit(.minutes(30)))
struct CallAnswerTests {
    private static let now = UnixTime(seconds: 1_800_000_000)

    @Test("An answer of HTTP has its status, body and pause")
    func http() {
        let answer = CallAnswer(status: 503, retryAfter: "120", body: Secret("busy".utf8))
        #expect(answer.status == 503 && answer.body == Secret("busy".utf8))
        #expect(answer.pause(now: Self.now) == .seconds(120))
        #expect(CallAnswer(status: 503, retryAfter: "99999999999").pause(now: Self.now) == .seconds(86_400))
        #expect(CallAnswer(status: 503, retryAfter: "soon").pause(now: Self.now) == nil)
        #expect(CallAnswer.http(status: 200, body: Secret([])).pause(now: Self.now) == nil)
    }

    @Test("Any other answer has neither")
    func others() {
        let answers: [CallAnswer] = [
            CallAnswer(status: nil, retryAfter: "120", body: Secret("x".utf8)), .taken, .events([]),
            CallAnswer.none
        ]
        for answer in answers {
            #expect(answer.status == nil && answer.body.count == 0)
            #expect(answer.pause(now: Self.now) == nil)
        }
    }
}
