import PushModel
import PushTesting
import SealbellKit
import Synchronization
import Testing

@testable import RelayProgram

/// A device that has so many calls to make, `width` at a time, and notes what it is asked.
private struct PlayedTalker: KitTalker {
    var left: Int
    var width = 1
    private(set) var heard: [String] = []
    private(set) var askedAt: [UnixTime] = []
    private var number: UInt64 = 0

    init(_ calls: Int, width: Int = 1) { (left, self.width) = (calls, width) }

    var kept: Secret { Secret(heard.joined(separator: " ").utf8) }

    mutating func due(at now: UnixTime) -> [Call] {
        askedAt.append(now)
        let count = min(left, width)
        left -= count
        return (0..<count).map { _ in
            number += 1
            return Call(id: number, .history(topic: ""))
        }
    }

    mutating func answered(_ answer: CallAnswer, to call: Call, at now: UnixTime) {
        heard.append("\(call.id)")
    }
}

@Suite("A device at work on the command line", .timeLimit(.minutes(30)))
struct KitPhoneTests {
    private static let broken = CommandFailure(.failed, "broken")

    @Test("What it knows is kept before each round leaves, and behind each answer")
    func order() async throws {
        let phone = KitPhone(PlayedTalker(3, width: 2), .live)
        var said: [String] = []
        try await phone.work { (kept) throws(CommandFailure) in
            said.append("keep \(kept.reveal { String(decoding: $0, as: UTF8.self) })")
        } send: { (call) throws(CommandFailure) in
            said.append("send \(call.id)")
            return [.taken]
        } then: { (call, _) throws(CommandFailure) in
            said.append("then \(call.id)")
        }
        #expect(
            said == [
                "keep ", "send 1", "keep 1", "then 1", "send 2", "keep 1 2", "then 2", "keep 1 2", "send 3",
                "keep 1 2 3", "then 3", "keep 1 2 3"
            ])
    }

    @Test("Where it cannot be kept nothing leaves, and what fails to leave ends it unanswered")
    func faults() async throws {
        let full = KitPhone(PlayedTalker(2), .live)
        var sent = 0
        await #expect(throws: CommandFailure.self) {
            try await full.work { (_) throws(CommandFailure) in
                throw Self.broken
            } send: { (_) throws(CommandFailure) in
                sent += 1
                return [.taken]
            }
        }
        #expect(sent == 0)
        let cut = KitPhone(PlayedTalker(3, width: 3), .live)
        await #expect(throws: CommandFailure.self) {
            try await cut.work { (call) throws(CommandFailure) in
                if call.id == 2 { throw Self.broken }
                return [.taken]
            }
        }
        #expect(cut.device.heard == ["1"])
    }

    @Test("It makes no more calls than it may, and brings each answer that came")
    func bounds() async throws {
        let phone = KitPhone(PlayedTalker(9, width: 3), .live)
        var sent = 0
        try await phone.work(atMost: 4) { (call) throws(CommandFailure) in
            sent += 1
            return call.id == 1 ? [] : [.taken, .none]
        }
        #expect(sent == 4)
        #expect(phone.device.heard == ["2", "2", "3", "3", "4", "4"])
    }

    @Test("What is due in a while is asked for where that counts as due")
    func ahead() async throws {
        let phone = KitPhone(PlayedTalker(0), .live, ahead: .seconds(3_600))
        let before = World.live.now()
        try await phone.work { (_) throws(CommandFailure) in [] }
        #expect(phone.device.askedAt.count == 1)
        #expect(phone.device.askedAt[0].since(before) >= .seconds(3_600))
    }
}

@Suite("The wire of a device on the command line", .timeLimit(.minutes(30)))
struct KitWireTests {
    /// Answers nothing, and notes how long it would have been waited for.
    private final class PlayedWeb: KitWeb {
        let waits = Mutex<[Duration]>([])

        func answer(_ call: HTTPCall, within patience: Duration) async throws(WebError) -> WebAnswer {
            waits.withLock { $0.append(patience) }
            throw WebError(.unknownHost)
        }
    }

    private static func call(_ url: String = "http://localhost:1/a", patience: Duration) -> Call {
        Call(id: 1, .http(HTTPCall(method: "GET", url: url, answerLimitBytes: 10)), patience: patience)
    }

    @Test("A call that waits at its server is waited for as long as it says, others as long as the person")
    func patience() async throws {
        let web = PlayedWeb()
        for person in [Duration.seconds(5), .seconds(600)] {
            let wire = KitWire(web, patience: person)
            for patience in [KitLimits.patience, KitLimits.longPatience] {
                let reply = await wire.reply(to: Self.call(patience: patience))
                #expect(reply.words == "no answer. \(WebErrorCode.unknownHost.sentence)")
            }
        }
        #expect(web.waits.withLock { $0 } == [.seconds(5), .seconds(90), .seconds(600), .seconds(600)])
        _ = await KitWire(web, patience: .zero).answer(Call(id: 1, .history(topic: "a")))
        #expect(web.waits.withLock { $0.count } == 4, "no call of HTTP")
    }

    @Test("What is no URL, and where nobody listens, is no answer")
    func nobody() async throws {
        let wire = KitWire(DirectWeb(), patience: .seconds(600))
        for url in ["", "ftp://localhost/", "https://user@localhost/", "http://local host/"] {
            let reply = await wire.reply(to: Self.call(url, patience: KitLimits.patience))
            #expect(reply.fault == .malformedURL)
        }
        let away = await wire.reply(to: Self.call(patience: KitLimits.patience))
        #expect(away.fault == .unreachable && away.words.hasPrefix("no answer"))
    }
}
