import NextcloudPush
import PushModel
import PushTesting
import Testing
import WireFormats

/// An account that leaves a phone is taken back at the server, then at the proxy, however long it takes
/// (§3.4).
@Suite("Nextcloud unregistration", .timeLimit(.minutes(30)))
struct UnregistrationTests {
    private let ends: Ends
    private var random = SeededRandom(seed: 8)

    init() throws { ends = try Ends() }

    private func queue(_ count: Int = 1) throws -> Unregistrations {
        var queue = Unregistrations()
        for _ in 0..<count {
            var device = try ends.device()
            let work = device.unregister(now: Ends.now)
            queue.add(try #require(work))
            #expect(device.registration == nil)
            let again = device.unregister(now: Ends.now)
            #expect(again == nil)
        }
        return queue
    }

    @Test(
        "The server is asked first, then the proxy, whatever the server says",
        arguments: [200, 202, 400, 401, 404])
    mutating func bothSides(_ status: Int) throws {
        var queue = try queue()
        let server = try #require(queue.next(now: Ends.now).first)
        #expect(server.request.method == "DELETE")
        #expect(
            server.request.url
                == "https://cloud.example.org/ocs/v2.php/apps/notifications/api/v2/push?format=json")
        #expect(server.request.header("Authorization")?.hasPrefix("Basic ") == true)
        #expect(server.request.body.count == 0)
        #expect(queue.next(now: Ends.now).isEmpty)
        queue.settle(server.id, NextcloudAnswer(status), now: Ends.now, using: &random)
        let proxy = try #require(queue.next(now: Ends.now).first)
        #expect(proxy.request.method == "DELETE" && proxy.request.url == "https://push.example.com/devices")
        let fields = try proxy.request.form
        #expect(
            fields.fields.map(\.name) == [
                "deviceIdentifier", "deviceIdentifierSignature", "userPublicKey"
            ])
        #expect(fields.text("userPublicKey") == ends.user.key.publicKey.pem)
        queue.settle(proxy.id, NextcloudAnswer(403), now: Ends.now, using: &random)
        #expect(queue.count == 0 && queue.nextDeadline == nil)
    }

    @Test("However many failures a kept row tells of, one more is counted")
    mutating func manyFailures() throws {
        let kept = try queue().encoded().reveal { String(decoding: $0, as: UTF8.self) }
        let row = kept.replacing(#""atServer","0""#, with: #""atServer","\#(Int.max)""#)
        #expect(row != kept)
        var queue = try Unregistrations(decoding: Secret(row.utf8))
        let call = try #require(queue.next(now: Ends.now).first)
        queue.settle(call.id, .none, now: Ends.now, using: &random)
        let next = try #require(queue.nextDeadline)
        #expect(next > Ends.now && next <= Ends.now + NextcloudLimits.backoffMost)
    }

    @Test("A phone without network tries again, less and less often, for a month")
    mutating func offline() throws {
        var queue = try queue()
        var now = Ends.now
        var tries = 0
        while queue.count > 0 {
            for call in queue.next(now: now) {
                queue.settle(call.id, .none, now: now, using: &random)
                tries += 1
            }
            guard let next = queue.nextDeadline else { break }
            #expect(next.since(now) <= .seconds(300))
            // The phone is looked at once in six hours.
            now = max(next, now + .seconds(6 * 3_600))
        }
        #expect(tries == 120)
        #expect(now.since(Ends.now) >= .seconds(30 * 86_400))
    }

    @Test("It goes on after a restart where it stood, and what is cut is no queue")
    mutating func restart() throws {
        var queue = try queue()
        let server = try #require(queue.next(now: Ends.now).first)
        // A call that was under way is made again.
        var again = try Unregistrations(decoding: queue.encoded())
        let repeated = try #require(again.next(now: Ends.now).first)
        #expect(repeated.request.url == server.request.url)
        #expect(repeated.request.header("Authorization") == server.request.header("Authorization"))
        again.settle(repeated.id, NextcloudAnswer(202), now: Ends.now, using: &random)
        let proxy = try #require(again.next(now: Ends.now).first)
        again.settle(proxy.id, NextcloudAnswer(503, "", retryAfter: "60"), now: Ends.now, using: &random)
        let kept = again.encoded()
        var third = try Unregistrations(decoding: kept)
        #expect(third.nextDeadline == Ends.now + .seconds(60))
        #expect(third.next(now: Ends.now + .seconds(59)).isEmpty)
        let last = try #require(third.next(now: Ends.now + .seconds(60)).first)
        #expect(last.request.url == "https://push.example.com/devices")
        third.settle(last.id, NextcloudAnswer(200), now: Ends.now, using: &random)
        #expect(third.count == 0)
        #expect(try Unregistrations(decoding: third.encoded()).count == 0)
        for length in 0..<kept.count {
            #expect(throws: NextcloudError(.malformedRow), "length \(length)") {
                try Unregistrations(decoding: kept.reveal { Secret($0[..<length]) })
            }
        }
    }

    @Test("An account that comes back keeps its registration")
    mutating func cancelled() throws {
        var queue = try queue()
        queue.cancel(try ends.registered(by: ends.user.key, completedAt: nil))
        #expect(queue.count == 0)
    }

    @Test("Beyond 32 accounts the oldest is given up; an answer to no call changes nothing")
    mutating func bounds() throws {
        var queue = try queue(NextcloudLimits.unregistrations + 3)
        #expect(queue.count == NextcloudLimits.unregistrations)
        queue.settle(99_999, NextcloudAnswer(200), now: Ends.now, using: &random)
        queue.settle(10, NextcloudAnswer(200), now: Ends.now, using: &random)
        #expect(queue.count == NextcloudLimits.unregistrations)
        #expect(queue.next(now: Ends.now).count == NextcloudLimits.unregistrations)
        #expect(queue.encoded().count <= NextcloudLimits.keptBytes)
        #expect(
            try Unregistrations(decoding: queue.encoded()).count == NextcloudLimits.unregistrations)
    }
}
