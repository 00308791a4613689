import NextcloudPush
import PushModel
import PushTesting
import Testing

/// The queue beside plain lists that have the same done to them.
@Suite("Nextcloud queue to proxies, compared with plain lists", .timeLimit(.minutes(30)))
struct ProxyQueueModelTests {
    /// What stands in the queue, by proxy.
    private struct Lists {
        struct List {
            var flight: (id: UInt64, entries: [String])?
            var waiting: [String] = []
        }

        var lists: [String: List] = [:]
        var dropped = 0

        var count: Int { all.count }
        var all: [String] {
            lists.sorted { $0.key < $1.key }.flatMap { ($0.value.flight?.entries ?? []) + $0.value.waiting }
        }
        var calls: [(proxy: String, id: UInt64)] {
            lists.sorted { $0.key < $1.key }.compactMap { list in
                list.value.flight.map { (list.key, $0.id) }
            }
        }

        /// Where several proxies have most, any of them may give way: which one did, `kept` tells.
        mutating func add(_ entry: SealedEntry, room: ProxyQueue.Room, kept: Set<String>) {
            lists[entry.proxy, default: List()].waiting.append(entry.text)
            if lists[entry.proxy, default: List()].waiting.count > room.perProxy { drop(from: entry.proxy) }
            guard count > room.all else { return }
            let most = lists.values.map(\.waiting.count).max() ?? 0
            let candidates = lists.filter { $0.value.waiting.count == most }
            let chosen = candidates.filter { list in
                list.value.waiting.first.map { !kept.contains($0) } ?? false
            }
            #expect(chosen.count == 1, "one of those that have most has lost its oldest")
            if let proxy = chosen.keys.first { drop(from: proxy) }
        }

        private mutating func drop(from proxy: String) {
            lists[proxy]?.waiting.removeFirst()
            dropped += 1
        }

        mutating func send(_ call: ProxyQueue.Call) {
            let proxy = String(call.request.url.dropLast("/notifications".count))
            var list = lists[proxy] ?? List()
            #expect(list.flight == nil && call.count > 0 && call.count <= list.waiting.count)
            list.flight = (call.id, Array(list.waiting.prefix(call.count)))
            list.waiting = Array(list.waiting.dropFirst(call.count))
            lists[proxy] = list
        }

        /// - Returns: how many were sent.
        mutating func settle(_ proxy: String, again: Bool) -> Int {
            let sent = lists[proxy]?.flight?.entries ?? []
            lists[proxy]?.flight = nil
            if again { lists[proxy]?.waiting.insert(contentsOf: sent, at: 0) }
            return sent.count
        }
    }

    private static let answers: [(answer: CallAnswer, isTriedAgain: Bool)] = [
        (CallAnswer(200, #"{"unknown":[],"failed":0}"#), false), (CallAnswer(400, "no"), false),
        (CallAnswer(503, "", retryAfter: "20"), true), (.none, true), (CallAnswer(413, ""), true)
    ]

    private static let room = {
        var room = ProxyQueue.Room()
        room.perProxy = 12
        room.all = 30
        return room
    }()

    private let ends: Ends

    init() throws { ends = try Ends() }

    @Test("After any steps the queue holds what the lists do, and counts it so", arguments: 1...12)
    func steps(_ seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var queue = ProxyQueue(NextcloudOrigin(), room: Self.room)
        var lists = Lists()
        var now = Ends.now
        for step in 0..<1_500 {
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<6:
                let proxy = "https://p\(Int.random(in: 0..<6, using: &random)).example.com"
                let entry = ends.entry("\(step)", proxy: proxy)
                queue.add([entry], now: now)
                lists.add(entry, room: Self.room, kept: Set(queue.waiting.map(\.entry.text)))
            case 6..<8:
                for call in queue.next(now: now) { lists.send(call) }
            case 8:
                settle(&queue, &lists, now, &random)
            default:
                // A day is longer than all steps together.
                now = now + .seconds(Int.random(in: 1...50, using: &random))
            }
            let held = queue.waiting.map(\.entry.text)
            #expect(held == lists.all && queue.count == held.count && queue.dropped == lists.dropped)
            if held != lists.all { return }
        }
        #expect(lists.dropped > 0)
        // What waits for nothing but time is given up at its end, and calls under way are to be settled.
        for call in queue.next(now: now + .seconds(86_400)) { lists.send(call) }
        let underWay = lists.lists.values.reduce(0) { $0 + ($1.flight?.entries.count ?? 0) }
        let busy = lists.lists.values.filter { $0.flight != nil }.reduce(0) { $0 + $1.waiting.count }
        #expect(queue.count == underWay + busy)
        #expect(queue.dropped == lists.dropped + lists.count - queue.count)
    }

    private func settle(
        _ queue: inout ProxyQueue, _ lists: inout Lists, _ now: UnixTime, _ random: inout SeededRandom
    ) {
        let unknown = UInt64.random(in: 1_000_000...2_000_000, using: &random)
        #expect(queue.settle(unknown, .none, rows: [], now: now, using: &random) == nil)
        guard let (proxy, id) = lists.calls.randomElement(using: &random) else { return }
        let (answer, isTriedAgain) = Self.answers.randomElement(using: &random)!
        let settled = queue.settle(id, answer, rows: [], now: now, using: &random)
        let count = lists.lists[proxy]?.flight?.entries.count ?? 0
        // One that is too large alone stays too large.
        let again = isTriedAgain && (answer.status != 413 || count > 1)
        #expect(lists.settle(proxy, again: again) == count)
        #expect(settled?.retried == (again ? count : 0))
        #expect(queue.settle(id, answer, rows: [], now: now, using: &random) == nil, "it is settled")
    }

    @Test("What comes from the last run is counted, and bounded as what is added")
    func restart() {
        var queue = ProxyQueue(NextcloudOrigin(), room: Self.room)
        queue.add((0..<12).map { ends.entry("\($0)") }, now: Ends.now)
        _ = queue.next(now: Ends.now)
        queue.add((12..<24).map { ends.entry("\($0)") }, now: Ends.now)
        #expect(queue.count == 24 && queue.dropped == 0)
        let again = ProxyQueue(NextcloudOrigin(), waiting: queue.waiting, room: Self.room)
        #expect(again.count == 12 && again.dropped == 12 && again.waiting.count == 12)
    }
}

extension SealedEntry {
    fileprivate var text: String { json.reveal { String(decoding: $0, as: UTF8.self) } }
}
