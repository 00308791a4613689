import Delivery
import PushModel
import PushTesting
import Simulators
import Testing
import ZulipPush

@testable import RelayProgram

/// A push service in trouble, and what may then arrive twice.
struct Trouble: Sendable, CustomTestStringConvertible {
    let testDescription: String
    /// Deliveries under an id that was accepted before: only where an answer was lost on its way.
    let doubles: ClosedRange<Int>
    let begin: @Sendable (APNsSimulator) -> Void

    init(
        _ name: String, doubles: ClosedRange<Int> = 0...0,
        _ begin: @escaping @Sendable (APNsSimulator) -> Void
    ) {
        testDescription = name
        self.doubles = doubles
        self.begin = begin
    }
}

private let troubles = [
    Trouble("one stream, and never more") { apns in
        apns.turnConnections {
            $0.streams = 1
            $0.excess = .refuse
        }
    },
    Trouble("503 for half a second") { apns in
        apns.turn { $0.shutdownUntil = World.live.now() + .milliseconds(500) }
    },
    Trouble("500 to every second request") { apns in apns.turn { $0.errorShare = 0.5 } },
    Trouble("429: two pushes to a device in a second") { apns in
        apns.turn {
            $0.deviceLimit = 2
            $0.deviceSpan = .seconds(1)
        }
    },
    Trouble("GOAWAY after every seventh request, two of them unprocessed") { apns in
        apns.turnConnections { $0.goAway = GoAwayKnob(afterRequests: 7, lastStream: .below(count: 2)) }
    },
    Trouble("every fifth stream refused") { apns in
        apns.turnConnections { $0.faults = [RequestFault(.reset(code: 7), on: .every(5), isJudged: false)] }
    },
    Trouble("an answer behind which the stream is reset") { apns in
        apns.turnConnections { $0.faults = [RequestFault(.resetAfterAnswer, on: .every(2), isJudged: true)] }
    },
    Trouble("connections that break in the middle of an answer", doubles: 0...60) { apns in
        apns.turnConnections { $0.faults = [RequestFault(.killedMidFrame, on: .number(9), isJudged: true)] }
    },
    Trouble("a long way there and back, and a small window") { apns in
        apns.turnConnections {
            $0.roundTrip = .milliseconds(40)
            $0.initialWindowBytes = 2048
        }
    }
]

@Suite("A push service in trouble", .timeLimit(.minutes(30)))
struct FaultTests {
    private static let phones = 10
    private static let messages: Int64 = 6

    /// For a service that does not answer: the server's answer does not wait for it.
    private static func answersSoon(_ around: inout Surroundings) {
        around.spans.zulipReply = .milliseconds(200)
    }

    @Test("Each push arrives, and twice only where an answer was lost", arguments: troubles)
    func everyPushArrives(_ trouble: Trouble) async throws {
        try await RelayStage.with { stage in
            // With each connection that breaks ends what is under way on it, and the slower the machine the
            // more that is. That a push of unknown fate is sent four times and no more is asked elsewhere.
            try await stage.run(spans: { $0.limits.unknownSends = 100 }) { relay in
                let server = try await relay.server()
                var phones: [DemoApp] = []
                for _ in 0..<Self.phones { phones.append(try await relay.phone(.apns, of: server)) }
                let arrivals = stage.apns.subscribe(token: "")
                trouble.begin(stage.apns)
                let all = phones
                try await withThrowingTaskGroup(of: Void.self) { calls in
                    for id in 1...Self.messages {
                        calls.addTask {
                            let answer = try await server.notify(DemoApp.message(id, "m"), all, relay)
                            #expect(answer.status == 200 && answer.dead.isEmpty)
                        }
                    }
                    try await calls.waitForAll()
                }
                var found: [String: [Int64: String]] = [:]
                var distinct = 0
                while distinct < Self.phones * Int(Self.messages) {
                    let delivery = try await arrivals.next("a delivery")
                    let phone = try #require(phones.first { $0.token == delivery.token })
                    guard case .message(let message) = try phone.open(delivery).body else {
                        Issue.record("a message was sent, and something else arrived")
                        return
                    }
                    // One push has one name, however often it is tried.
                    let known = found[phone.token]?[message.id]
                    #expect(known == nil || known == delivery.id)
                    if known == nil { distinct += 1 }
                    found[phone.token, default: [:]][message.id] = delivery.id
                }
                try await relay.drained()
                #expect(trouble.doubles.contains(stage.apns.counters.doubles))
                #expect(
                    stage.apns.counters.accepted - stage.apns.counters.doubles
                        == Self.phones * Int(Self.messages))
            }
        }
    }

    @Test("A service that has fallen silent holds up its own pushes alone")
    func silence() async throws {
        try await RelayStage.running(spans: Self.answersSoon) { relay in
            let (server, apple) = try await relay.join(.apns)
            let google = try await relay.phone(.fcm, of: server)
            relay.stage.apns.turnConnections {
                $0.faults = [RequestFault(.neverAnswered, on: .every(1), isJudged: true)]
                $0.ignoresPing = true
            }
            async let slow = server.notify(.test(time: 1), [apple], relay)
            let fast = try await server.notify(.test(time: 2), [google], relay)
            #expect(fast.android == 1)
            // Not yet answered counts as sent.
            #expect(try await slow.apple == 1)
            let arrivals = relay.stage.apns.subscribe(token: apple.token)
            let first = try #require(relay.stage.apns.deliveries().first)
            relay.stage.apns.turnConnections {
                $0.faults = []
                $0.ignoresPing = false
            }
            relay.stage.apns.killConnections()
            let second = try await arrivals.next("a delivery")
            #expect(second.id == first.id && second.isDouble)
            try await relay.drained()
        }
    }

    @Test("What is owed when a relay stops leaves when the next one starts, under the same id")
    func restart() async throws {
        try await RelayStage.with { stage in
            // All leave together: a service that leaves several tries unanswered is asked once a minute, and
            // the pushes of one after the other would wait for that.
            stage.apns.turnConnections {
                $0.streamsAtStart = 100
                $0.faults = [RequestFault(.neverAnswered, on: .every(1), isJudged: true)]
            }
            var sent: [String: DemoApp] = [:]
            try await stage.run(spans: Self.answersSoon) { relay in
                let server = try await relay.server()
                var phones: [DemoApp] = []
                for _ in 0..<5 { phones.append(try await relay.phone(.apns, of: server)) }
                let arrivals = stage.apns.subscribe(token: "")
                let all = phones
                async let answer = server.notify(DemoApp.message(9, "owed"), all, relay)
                while sent.count < phones.count {
                    let delivery = try await arrivals.next("a delivery")
                    sent[delivery.id] = phones.first { $0.token == delivery.token }
                }
                // Tries that follow are refused at once: a relay that stops waits for those under way.
                stage.apns.turn { $0.shutdownUntil = .distantFuture }
                stage.apns.turnConnections { $0.faults = [] }
                stage.apns.killConnections()
                #expect(try await answer.status == 200)
                #expect(try await relay.owed() == phones.count)
            }
            stage.apns.turn { $0.shutdownUntil = nil }
            let stream = stage.apns.subscribe(token: "")
            try await stage.run { relay in
                let arrivals = stream
                var owed = sent
                while !owed.isEmpty {
                    let delivery = try await arrivals.next("a delivery")
                    let expected = owed.removeValue(forKey: delivery.id)
                    let phone = try #require(expected)
                    #expect(phone.token == delivery.token)
                    #expect(try phone.open(delivery).body == DemoApp.message(9, "owed"))
                }
                try await relay.drained()
            }
        }
    }
}
