import MarmotPush
import PushModel
import SealbellKit
import Secp256k1Keys
import WireFormats

/// An app's sender, between the members who name servers and relays, and what those answer.
///
/// No invented text has a signature, so a server's list is made anew around what came: what a server could
/// publish is reached, not only what a stranger could. An input has at most 32 steps, three wakes and four
/// tokens in each of them, because a trigger takes keys and signatures.
let wakingTargets: [String: Body] = [
    // What members ask for, and what relays answer, in any order and at any time. A byte tells what comes,
    // those behind it what it says.
    "marmot-origin": { bytes in
        var input = Input(bytes)
        var run = WakingRun()
        var steps = 0
        while !input.isOver, steps < 32 {
            steps += 1
            run.step(&input)
        }
        run.end()
    },
    // What is kept over a restart: as it came; and two times of eight bytes with a list's relays, one a line,
    // in the form that is written.
    "marmot-origin-kept": { bytes in
        check(Secret(copying: bytes))
        guard bytes.count >= 16 else { return }
        func time(_ place: Int) -> Int64 {
            Int64(bitPattern: bytes[place..<place + 8].reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
        }
        let lines = String(decoding: bytes.dropFirst(16), as: UTF8.self).split(separator: "\n")
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("version", 1)
        writer.beginArray("lists")
        writer.beginArray()
        writer.int(time(0))
        writer.int(time(8))
        list(lines.map(String.init), of: servers[0], at: 1).reveal { writer.string(utf8: $0) }
        writer.endArray()
        writer.endArray()
        writer.endObject()
        check(writer.takeSecret())
    }
]

/// The sender is there, whatever was kept, makes what is due, and keeps what it knows.
private func check(_ kept: Secret) {
    for now in [UnixTime.distantPast, begin, .distantFuture, UnixTime(milliseconds: .min)] {
        var random = WakingChance()
        var origin = MarmotOrigin(lookUp: [index], keeping: kept, using: &random)
        let again = RelayListCache(keeping: origin.kept)
        precondition(Set(again.entries.keys) == Set(origin.cache.entries.keys))
        for server in again.entries.keys {
            precondition(again.list(of: server)?.relays == origin.cache.list(of: server)?.relays)
        }
        guard (try? origin.notify([token(.mip05Long, servers[0], nil)])) != nil else {
            preconditionFailure("a new one has room")
        }
        let calls = origin.due(at: now, using: &random)
        precondition(calls.count <= MarmotLimits.documentsOfServer + 1)
        _ = origin.nextDue
    }
}

/// A sender with its calls, and what must hold of them.
private struct WakingRun {
    var random = WakingChance()
    var origin: MarmotOrigin
    var now = begin
    /// Given and not answered, also where the sender has given them up.
    var open: [Call] = []
    /// The newest 256, which may be answered again.
    var answered: [Call] = []
    var ids: Set<UInt64> = []
    /// Tokens of wakes that have not ended.
    var wakes: [UInt64: Int] = [:]
    var taken = 0

    init() {
        origin = MarmotOrigin(
            lookUp: [index], builtIn: [servers[1].publicKey: ["wss://built-in.example.org"]], using: &random)
    }

    mutating func step(_ input: inout Input) {
        switch input.byte() % 6 {
        case 0: wake(&input)
        case 1: now = now + pauses[Int(input.byte()) % pauses.count]
        case 2:
            guard !answered.isEmpty else { break }
            answer(answered[Int(input.byte()) % answered.count], &input)
        default:
            guard !open.isEmpty else { break }
            let call = open.remove(at: Int(input.byte()) % open.count)
            answered = answered.suffix(255) + [call]
            answer(call, &input)
        }
        look()
    }

    /// Whatever is under way ends when nobody answers any more, within a bounded time.
    mutating func end() {
        var rounds = 0
        while !wakes.isEmpty {
            rounds += 1
            precondition(rounds <= 256, "a wake that never ends")
            let calls = open
            open = []
            for call in calls { origin.answered(.none, to: call, at: now, using: &random) }
            if calls.isEmpty {
                guard let next = origin.nextDue else { preconditionFailure("a wake that waits for nothing") }
                now = max(next, now)
            }
            look()
        }
        // Those of `open` it has given up.
        precondition(origin.nextDue == nil)
        precondition(origin.kept.count <= MarmotLimits.keptListsBytes)
    }

    private mutating func wake(_ input: inout Input) {
        guard taken < 3 else { return }
        taken += 1
        let tokens = (0..<Int(input.byte() % 5)).map { _ in
            let choice = Int(input.byte())
            let format = TokenFormat.allCases[choice % TokenFormat.allCases.count]
            let hint = choice & 64 == 0 ? nil : "wss://" + input.text(or: "hint.example.org")
            return token(format, servers[choice >> 2 & 1], hint)
        }
        guard let id = try? origin.notify(tokens) else { preconditionFailure("there is room") }
        precondition(wakes.updateValue(tokens.count, forKey: id) == nil)
    }

    private mutating func look() {
        for call in origin.due(at: now, using: &random) {
            precondition(ids.insert(call.id).inserted && !call.isStanding)
            check(call)
            open.append(call)
        }
        for one in origin.takeSettled() {
            precondition(wakes.removeValue(forKey: one.id) == one.reached + one.missed)
            precondition((one.detail == nil) == (one.missed == 0))
        }
    }

    private func check(_ call: Call) {
        switch call.way {
        case .event(let text, let relays):
            precondition(!relays.isEmpty && relays.count <= 2 * MarmotLimits.relaysOfList)
            precondition(Set(relays).count == relays.count)
            precondition(text.count <= MarmotLimits.commonFrameBytes)
            guard let event = try? NostrEvent.parse(text), event.kind == NostrKind.giftWrap else {
                preconditionFailure("what we write we can read")
            }
        case .lookUp(_, let relays):
            precondition(Set(relays).count == relays.count)
            precondition(relays.count <= 2 * MarmotLimits.relaysOfList + 1)
        case .http(let http):
            precondition(http.url.hasPrefix("https://") && http.answerLimitBytes > 0)
        case .publish, .follow, .history, .say, .hear: preconditionFailure("no call of a sender")
        }
    }

    private mutating func answer(_ call: Call, _ input: inout Input) {
        let answer: CallAnswer
        switch input.byte() % 9 {
        case 0: answer = .none
        case 1: answer = .taken
        case 2: answer = .events([Secret(input.raw())])
        case 3, 4:
            let relays = (0..<Int(input.byte() & 3)).map { _ in
                "wss://" + input.text(or: "inbox.example.org")
            }
            let at = Int64(input.byte())
            answer = .events(servers.map { list(relays, of: $0, at: at) })
        case 5: answer = .http(status: 200, body: Secret(input.raw()))
        case 6:
            let limit = Int64(input.byte()) << 9
            answer = .http(
                status: 200, body: Secret(#"{"limitation":{"max_message_length":\#(limit)}}"#.utf8))
        default:
            var relays: [String] = []
            if case .event(_, let asked) = call.way { relays = asked }
            answer = .relays(
                (relays + [input.text(or: "wss://other.example.org")])
                    .map { ($0, outcomes[Int(input.byte()) % outcomes.count]) })
        }
        origin.answered(answer, to: call, at: now, using: &random)
    }
}

/// The same keys and pauses in each run.
private struct WakingChance: RandomNumberGenerator {
    private var state: UInt64 = 1
    mutating func next() -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return state
    }
}

private let index = "wss://index.example.org"
private let begin = UnixTime(seconds: 1_767_225_601)
private let pauses: [Duration] = [
    .milliseconds(1), .seconds(2), .seconds(4), .seconds(60), .seconds(86_401), .seconds(-1), .seconds(-3_600)
]
private let outcomes: [RelayAnswer] =
    [.accepted, .refused(nil), .unfit, .forbidden, .unreachable, .torFailed, .unanswered]
    + NostrReason.allCases.map { .refused($0) }
private let servers = [pair(3), pair(5)]

private func pair(_ byte: UInt8) -> Secp256k1KeyPair {
    do { return try Secp256k1KeyPair(secret: Secret([UInt8](repeating: byte, count: 32))) } catch {
        preconditionFailure("a small number is a scalar")
    }
}

/// A token that nobody opens; the sender never looks into one.
private func token(_ format: TokenFormat, _ server: Secp256k1KeyPair, _ hint: String?) -> GossipToken {
    let count = format.tokenBytes ?? TokenFormat.overheadBytes + 35
    let box = Secret([UInt8](repeating: 7, count: count))
    do { return try GossipToken(format, box: box, server: server.publicKey, relayHint: hint) } catch {
        preconditionFailure("a token of its format's size")
    }
}

/// A server's list, as it publishes it.
private func list(_ relays: [String], of server: Secp256k1KeyPair, at seconds: Int64) -> Secret {
    RelayList.event(
        relays: relays, at: seconds, by: server, auxiliary: [UInt8](repeating: 0, count: 32)
    ).serialized()
}
