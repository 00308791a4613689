import MarmotPush
import PushModel
import PushTesting
import Secp256k1Keys
import Testing
import WireFormats

/// The device as an app has it: calls, answers, what is kept, and wakes.
@Suite("Marmot for app authors", .timeLimit(.minutes(30)))
struct MarmotKitTests {
    @Test(
        "From nothing to tokens to wake, in each format, also with restarts",
        arguments: TokenFormat.allCases)
    func wholeWay(_ format: TokenFormat) throws {
        for restarts in [false, true] {
            var group = try KitGroup(format, restarts: restarts)
            let new = group.members[0].device
            #expect(new.nextDue == nil && new.status(at: group.now).advice == .giveToken)
            try group.start()
            try group.work()
            for member in group.members {
                #expect(member.device.tokensToWake(at: group.now).count == group.members.count - 1)
                let status = member.device.status(at: group.now)
                #expect(status.state == .active && !member.device.isGone)
            }
            // What is known already is told to nobody.
            let said = group.said
            try group.restart()
            try group.work()
            #expect(group.said == said)
        }
    }

    @Test("Wakes of both services are to be fetched, and nothing else is")
    func opens() throws {
        var group = try KitGroup(.pushV1)
        try group.start()
        let device = group.members[0].device
        for json in [
            #"{"aps":{"content-available":1}}"#, #"{"content_available":"true"}"#,
            #"{"aps":{"alert":{"title":"a","body":"b"},"sound":"default","mutable-content":1}}"#
        ] {
            guard case .fetch = try device.open(Delivered(json: Secret(json.utf8)), at: group.now) else {
                Issue.record("to be fetched: \(json)")
                continue
            }
        }
        for json in [
            "{}", #"{"aps":{}}"#, #"{"aps":{"alert":"x"}}"#, #"{"aps":1}"#, #""{}""#,
            #"{"aps":{"content-available":0}}"#, #"{"content_available":"false"}"#,
            #"{"aps":{"content-available":1},"enc_payload":"x"}"#
        ] {
            #expect(throws: DeviceError(.foreign)) {
                try device.open(Delivered(json: Secret(json.utf8)), at: group.now)
            }
        }
    }

    @Test("What the group has not got is said again after 15 s, and by the next run")
    func failures() throws {
        var group = try KitGroup(.pushV1)
        try group.start()
        for round in 0..<20 {
            let calls = group.due(0)
            #expect(calls.first?.isStanding == true && calls.count == 3, "round \(round)")
            for call in calls { group.answer(.none, call, 0) }
            let device = group.members[0].device
            #expect(group.due(0).isEmpty && device.nextDue == group.now + .seconds(15))
            #expect(device.status(at: group.now).state == .pending)
            group.now = group.now + .seconds(15)
        }
        #expect(group.members[0].device.status(at: group.now).advice == .retrying)
        try group.restart()
        #expect(group.due(0).count == 3)
        try group.restart()
        try group.work()
        #expect(group.members[1].device.tokensToWake(at: group.now).count == 2)
    }

    @Test("Answers that come twice, late, of another kind or to foreign calls change nothing")
    func strayAnswers() throws {
        var group = try KitGroup(.seed)
        try group.start()
        let (calls, foreign) = (group.due(0), group.due(1))
        let kept = group.members[0].device.kept
        for call in foreign { for answer in [CallAnswer.none, .taken] { group.answer(answer, call, 0) } }
        let noise = CallAnswer.group(rumor: Secret("{}".utf8), leaf: 3, epoch: 1, index: 1)
        group.answer(noise, try #require(calls.first), 0)
        #expect(group.members[0].device.kept == kept)
        for call in calls { group.answer(.taken, call, 0) }
        let after = group.members[0].device.kept
        #expect(!(after == kept))
        for call in calls.dropFirst() {
            for answer in [CallAnswer.none, .taken] { group.answer(answer, call, 0) }
        }
        #expect(group.members[0].device.kept == after && group.due(0).isEmpty)
        try group.restart()
        for call in calls { group.answer(.none, call, 0) }
        #expect(group.members[0].device.kept == after && group.due(0).count == 1)
    }

    @Test("A logout is told, over restarts, and whoever is removed is forgotten")
    func logout() throws {
        var group = try KitGroup(.pushV1)
        try group.start()
        try group.work()
        group.members[0].isWanted = false
        try group.members[0].device.use(token: nil)
        #expect(!group.members[0].device.isGone)
        for call in group.due(0) { group.answer(.none, call, 0) }
        let silent = Secret(#"{"aps":{"content-available":1}}"#.utf8)
        guard
            case .ignore(.switchedOff) = try group.members[0].device.open(
                Delivered(json: silent), at: group.now)
        else {
            Issue.record("it is off")
            return
        }
        try group.restart()
        #expect(!group.members[0].device.isGone)
        try group.work()
        #expect(group.members[0].device.isGone)
        #expect(group.members[0].device.tokensToWake(at: group.now).count == 2)
        #expect(group.members[1].device.tokensToWake(at: group.now).count == 1)
        try group.remove(2)
        #expect(group.members[1].device.tokensToWake(at: group.now).isEmpty)
    }

    @Test(
        "What the group has not got is not said again behind a later token, or behind the logout",
        arguments: [TokenFormat.seed, .mip05Long], [nil, "0b"])
    func outdated(_ format: TokenFormat, _ later: String?) throws {
        for isAnsweredFirst in [true, false] {
            var group = try KitGroup(format)
            try group.start()
            var calls = group.due(0)
            #expect(calls.count == 2)
            let first = try #require(calls.last?.rumor)
            for call in calls { group.answer(call.isStanding ? .taken : .none, call, 0) }
            group.now = group.now + .seconds(15)
            let token = try later.map { try DeviceToken.apns(hex: String(repeating: $0, count: 32)) }
            try group.members[0].device.use(token: token)
            calls = group.due(0)
            #expect(calls.count == 2 && calls.first?.rumor == first)
            let (earlier, last) = (try #require(calls.first), try #require(calls.last))
            if isAnsweredFirst { group.answer(.none, earlier, 0) }
            group.answer(.taken, last, 0)
            if !isAnsweredFirst { group.answer(.none, earlier, 0) }
            group.now = group.now + .seconds(15)
            #expect(!group.due(0).contains { $0.rumor == first })
            try group.restart()
            #expect(!group.due(0).contains { $0.rumor == first })
        }
    }

    @Test("A request without tokens does not stand for the token that the group has not got")
    func askedMeanwhile() throws {
        var group = try KitGroup(.seed)
        try group.start()
        var calls = group.due(0)
        let first = try #require(calls.last?.rumor)
        for call in calls { group.answer(call.isStanding ? .taken : .none, call, 0) }
        group.now = group.now + .seconds(15)
        group.members[0].device.askAgain()
        calls = group.due(0)
        #expect(calls.count == 2 && calls.first?.rumor == first)
        group.answer(.none, try #require(calls.first), 0)
        group.answer(.taken, try #require(calls.last), 0)
        group.now = group.now + .seconds(15)
        #expect(group.due(0).map(\.rumor) == [first])
    }

    @Test("A token that was told by a clock half a year ahead is renewed when the clock is right, and once")
    func clockSetBack() throws {
        for isOtherRun in [true, false] {
            var group = try KitGroup(.seed)
            group.now = group.now + .seconds(180 * 86_400)
            try group.start()
            try group.work()
            let said = group.said
            group.now = group.now + .seconds(-180 * 86_400)
            if isOtherRun { try group.restart() }
            try group.work()
            #expect(group.said == said + group.members.count)
            try group.restart()
            try group.work()
            #expect(group.said == said + group.members.count)
        }
    }

    @Test("A token waits while a later one is under way, and is said before it where that fails")
    func underWay() throws {
        var group = try KitGroup(.seed)
        try group.start()
        let first = try #require(group.due(0).last)
        try group.members[0].device.use(token: .apns(hex: String(repeating: "0b", count: 32)))
        let later = try #require(group.due(0).last)
        group.answer(.none, first, 0)
        group.now = group.now + .seconds(15)
        #expect(group.due(0).isEmpty)
        group.answer(.none, later, 0)
        group.now = group.now + .seconds(15)
        #expect(group.due(0).map(\.rumor) == [first.rumor, later.rumor])
    }

    @Test("Another token is told, another group begins anew, and foreign services are refused")
    func changes() throws {
        var group = try KitGroup(.mip05Long)
        try group.start()
        try group.work()
        let before = group.said
        group.members[0].token = "0b"
        try group.restart()
        try group.work()
        #expect(group.said > before)
        var device = group.members[0].device
        #expect(throws: DeviceError(.wrongService)) { try device.use(token: .fcm("token")) }
        #expect(throws: DeviceError(.tooMany)) {
            try device.use(tokens: [.apns(bytes: [1]), .apns(bytes: [2])])
        }
        device.group = MarmotGroup(id: [9], ownLeaf: 0, members: [0: group.members[0].pair.publicKey.bytes])
        #expect(device.tokensToWake(at: group.now).isEmpty && !device.isGone)
        #expect(device.due(at: group.now).count >= 2)
    }

    @Test(
        "What was read without a `hear` counts, and the group is asked again where it is wanted",
        arguments: TokenFormat.allCases)
    func reading(_ format: TokenFormat) throws {
        var group = try KitGroup(format)
        try group.start()
        var rumors: [Secret] = []
        for call in group.due(1) { if case .say(_, let rumor) = call.way { rumors.append(rumor) } }
        // As in a program that looks at the group once: it is told of no token, and says nothing.
        var reader = try MarmotDevice(group.members[0].setup)
        reader.group = group.members[0].device.group
        for (index, rumor) in rumors.enumerated() {
            reader.heard(rumor, leaf: 3, epoch: 1, index: UInt64(index), at: group.now)
        }
        #expect(reader.tokens(at: group.now).map(\.leaf) == [3])
        #expect(reader.due(at: group.now + .seconds(2)).isEmpty && reader.nextDue == nil)

        var device = try MarmotDevice(group.members[0].setup, keeping: reader.kept)
        device.group = reader.group
        #expect(device.tokensToWake(at: group.now).count == 1)
        try device.use(token: nil)
        let asks = GossipProfile(format) == .mip05 ? 0 : 1
        var calls = device.due(at: group.now)
        #expect(calls.count == 1 + asks && calls.first?.isStanding == true)
        for call in calls { device.answered(.taken, to: call, at: group.now) }
        #expect(device.due(at: group.now).isEmpty)
        device.askAgain()
        #expect(device.nextDue == .distantPast)
        calls = device.due(at: group.now)
        #expect(calls.count == asks && device.due(at: group.now).isEmpty)
    }

    @Test("Every truncation and falsified byte of what was kept is refused, and another account's")
    func falsified() throws {
        var group = try KitGroup(.pushV1)
        try group.start()
        try group.work()
        let (kept, setup) = (group.members[0].device.kept, group.members[0].setup)
        let again = try MarmotDevice(setup, keeping: kept)
        #expect(again.kept == kept)
        #expect(throws: DeviceError(.malformedKept)) {
            try MarmotDevice(group.members[1].setup, keeping: kept)
        }
        let bytes = kept.reveal { Array($0) }
        for count in bytes.indices {
            #expect(throws: DeviceError(.malformedKept)) {
                try MarmotDevice(setup, keeping: Secret(bytes[..<count]))
            }
        }
        for other in bytes.withEachChanged() {
            #expect(throws: DeviceError(.malformedKept)) { try MarmotDevice(setup, keeping: Secret(other)) }
        }
    }
}

extension Call {
    /// What the group is to be told.
    var rumor: [UInt8]? {
        if case .say(_, let rumor) = way { rumor.array } else { nil }
    }
}

/// A group of three apps, whose MLS library brings everybody what one of them says.
struct KitGroup {
    struct Member {
        let pair: Secp256k1KeyPair
        let leaf: UInt32
        let setup: MarmotSetup
        var device: MarmotDevice
        var token: String
        var isWanted = true
        var hear: Call?
    }

    var now = UnixTime(seconds: 1_767_225_600)
    var members: [Member] = []
    private(set) var said = 0
    private var random = SeededRandom(seed: 5)
    private let restarts: Bool
    private var standing: Set<UInt32> = [0, 3, 5]

    init(_ format: TokenFormat, restarts: Bool = false) throws {
        self.restarts = restarts
        var props = Props(seed: 8)
        let server = try RelayKey(text: props.pair().publicKey.hex)
        for leaf in standing.sorted() {
            let pair = try props.pair()
            let setup = try MarmotSetup(
                identity: pair.secret, platform: .apple, server: server, relayHint: "wss://inbox.example.org",
                format: format)
            let device = try MarmotDevice(setup, keeping: nil, using: &random)
            members.append(Member(pair: pair, leaf: leaf, setup: setup, device: device, token: "0\(leaf)"))
        }
    }

    private func group(_ place: Int) -> MarmotGroup {
        let all = members.filter { standing.contains($0.leaf) }.map { ($0.leaf, $0.pair.publicKey.bytes) }
        return MarmotGroup(
            id: [1, 2, 3], ownLeaf: members[place].leaf, members: Dictionary(uniqueKeysWithValues: all))
    }

    mutating func start() throws {
        for place in members.indices {
            members[place].device.group = group(place)
            let token = String(repeating: members[place].token, count: 32)
            try members[place].device.use(token: members[place].isWanted ? .apns(hex: token) : nil)
        }
    }

    /// Another run of every app.
    mutating func restart() throws {
        for place in members.indices {
            members[place].device = try MarmotDevice(
                members[place].setup, keeping: members[place].device.kept, using: &random)
            members[place].hear = nil
        }
        try start()
    }

    mutating func remove(_ place: Int) throws {
        standing.remove(members[place].leaf)
        for place in members.indices { members[place].device.group = group(place) }
    }

    mutating func due(_ place: Int) -> [Call] {
        let calls = members[place].device.due(at: now, using: &random)
        members[place].hear = calls.first(where: \.isStanding) ?? members[place].hear
        return calls
    }

    mutating func answer(_ answer: CallAnswer, _ call: Call, _ place: Int) {
        members[place].device.answered(answer, to: call, at: now, using: &random)
    }

    /// Does what is due, until the group is silent for some seconds.
    mutating func work() throws {
        for _ in 0..<12 {
            if restarts { try restart() }
            // Everybody hears before somebody speaks.
            let calls = members.indices.map { due($0) }
            for (place, own) in calls.enumerated() {
                for call in own {
                    answer(.taken, call, place)
                    guard case .say(_, let rumor) = call.way else { continue }
                    said += 1
                    let sender = members[place].leaf
                    for other in members.indices {
                        guard let hear = members[other].hear else { continue }
                        answer(
                            .group(rumor: rumor, leaf: sender, epoch: 1, index: UInt64(said)), hear, other)
                    }
                }
            }
            now = now + .seconds(3)
        }
    }
}
