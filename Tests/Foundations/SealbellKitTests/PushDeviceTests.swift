import PushModel
import SealbellKit
import Testing

@Suite("What all devices share", .timeLimit(.minutes(30)))
struct PushDeviceTests {
    /// Opens with one word, and knows what is for it by another.
    struct Toy: PushDevice {
        let word: DeviceError.Code?
        var random: UInt64 = 0
        var tokens: [DeviceToken?] = []

        init(
            _ setup: DeviceError.Code?, keeping kept: Secret?,
            using generator: inout some RandomNumberGenerator
        )
            throws(DeviceError)
        {
            if let kept, kept.count != 1 { throw DeviceError(.malformedKept) }
            word = setup
            random = generator.next()
        }

        mutating func use(token: DeviceToken?) throws(DeviceError) { tokens.append(token) }
        mutating func due(at now: UnixTime, using generator: inout some RandomNumberGenerator) -> [Call] {
            [Call(id: generator.next(), .history(topic: "/a/1/b/proto"))]
        }
        mutating func answered(
            _ answer: CallAnswer, to call: Call, at now: UnixTime,
            using generator: inout some RandomNumberGenerator
        ) { random = generator.next() }
        func open(_ delivered: Delivered, at now: UnixTime) throws(DeviceError) -> Opened<Int> {
            if tokens.last == .some(nil) { return .ignore(.switchedOff) }
            if let word { throw DeviceError(word, "toy") }
            return .show(delivered.json.count)
        }
        func status(at now: UnixTime) -> DeviceStatus {
            DeviceStatus(state: .none, since: nil, detail: nil, isQuiet: true, advice: .giveToken)
        }
        var kept: Secret { Secret([1]) }
        var nextDue: UnixTime? { nil }
        var isGone: Bool { tokens.last == .some(nil) }
    }

    @Test("Among several, the first that a push is for opens it")
    func among() throws {
        let delivered = try Delivered(data: ["a": "b"])
        let toys = try [DeviceError.Code.foreign, .doesNotOpen, nil, nil].map { try Toy($0) }
        let found = try Toy.open(delivered, among: toys, at: .distantPast)
        #expect(found.place == 2)
        #expect(found.opened.content == 9)
    }

    @Test("Where none opens it, the first that knew it says why; foreign where none did")
    func none() throws {
        let delivered = try Delivered(data: [:])
        let toys = try [DeviceError.Code.foreign, .doesNotOpen, .malformedContent].map { try Toy($0) }
        #expect(throws: DeviceError(.doesNotOpen)) {
            try Toy.open(delivered, among: toys, at: .distantPast)
        }
        #expect(throws: DeviceError(.foreign)) {
            try Toy.open(delivered, among: Array(toys[..<1]), at: .distantPast)
        }
        #expect(throws: DeviceError(.foreign)) { try Toy.open(delivered, among: [], at: .distantPast) }
    }

    @Test("One that is switched off keeps nothing from another, and is the answer where none opens it")
    func off() throws {
        let delivered = try Delivered(data: [:])
        var off = try Toy(nil)
        try off.use(token: nil)
        let found = try Toy.open(delivered, among: [off, off, Toy(nil)], at: .distantPast)
        #expect(found.place == 2 && found.opened.content != nil)
        let none = try Toy.open(delivered, among: [Toy(.foreign), Toy(.doesNotOpen), off], at: .distantPast)
        #expect(none.place == 2)
        guard case .ignore(.switchedOff) = none.opened else {
            Issue.record("it is off")
            return
        }
        #expect(try Toy.open(delivered, among: [off, off], at: .distantPast).place == 0)
    }

    @Test("An app that names no generator has the system's")
    func generator() throws {
        var toy = try Toy(nil, keeping: Secret([1]))
        #expect(throws: DeviceError(.malformedKept)) { try Toy(nil, keeping: Secret([])) }
        let calls = toy.due(at: .distantPast)
        toy.answered(.taken, to: try #require(calls.first), at: .distantPast)
        toy.stored(1)
        try toy.use(token: nil)
        #expect(toy.isGone)
    }

    @Test("A call says its kind and nothing of what is in it")
    func printsCalls() {
        let http = HTTPCall(
            method: "POST", url: "https://canary.example.org", headers: [("canary", Secret("canary".utf8))],
            body: Secret("canary".utf8), answerLimitBytes: 1)
        let ways: [Call.Way] = [
            .http(http), .follow(topics: ["canary"]), .history(topic: "canary"),
            .say(group: [1], rumor: Secret("canary".utf8)), .hear(group: [1], kinds: [447]),
            .event(Secret("canary".utf8), relays: ["wss://canary"]),
            .lookUp(filter: Secret([]), relays: ["wss://canary"]),
            .publish(WakuMessage(payload: Secret("canary".utf8), contentTopic: "canary", timestamp: 0))
        ]
        for way in ways {
            let call = Call(id: 7, way)
            var dumped = ""
            dump(call, to: &dumped)
            for text in ["\(call)", String(reflecting: call), dumped] {
                #expect(!text.contains("canary"), "\(text)")
            }
            #expect(call.description.hasPrefix("7 "))
        }
        #expect(Call(id: 1, .http(http)).http?.method == "POST")
        #expect("\(http)" == "POST")
    }

    @Test("An error is its code; a detail of the protocol's stands beside it")
    func errors() {
        let error = DeviceError(.foreign, "foreignContent")
        #expect(error == DeviceError(.foreign))
        #expect("\(error)" == "foreign")
        #expect(error.detail == "foreignContent")
        for code in DeviceError.Code.allCases {
            #expect(!code.sentence.isEmpty && DeviceError(code).retry == .never)
            #expect(DeviceError(code).blame == code.blame)
        }
        for advice in DeviceStatus.Advice.allCases { #expect(advice.sentence.isEmpty == (advice == .none)) }
    }
}
