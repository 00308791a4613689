import NIOHTTP1
import NIOPosix
import PushModel
import PushTesting
import Testing
import WebClient

@testable import Simulators

/// A simulated node, asked over its socket.
private struct NodeStage {
    let network: WakuNetworkSimulator
    let node: WakuNodeSimulator
    let port: Int

    static let messages = "/relay/v1/messages/%2Fwaku%2F2%2Frs%2F16%2F32"
    static let subscriptions = "/relay/v1/subscriptions"
    static let shard = #"["/waku/2/rs/16/32"]"#

    init(_ knobs: WakuNodeKnobs = WakuNodeKnobs(), world: World = .live) async throws {
        network = WakuNetworkSimulator(world: world)
        node = WakuNodeSimulator(
            on: network, knobs: knobs, eventLoopGroup: MultiThreadedEventLoopGroup.singleton)
        port = try await node.start()
    }

    func ask(
        _ method: HTTPMethod, _ path: String, _ body: String = "", type: String = "application/json"
    ) async throws -> LocalCall.Answer {
        try await PlainClient.ask(
            port: port, trusting: nil, method, path, headers: body.isEmpty ? [] : [("content-type", type)],
            body: Array(body.utf8))
    }

    func subscribe() async throws {
        #expect(try await ask(.POST, Self.subscriptions, Self.shard).status == 200)
    }

    func json(_ payload: String = "AAAA", timestamp: Int64? = nil, more: String = "") -> String {
        #"{"payload":"\#(payload)","contentTopic":"/waku/1/0x0000002a/rfc26","version":1,"#
            + #""timestamp":\#(timestamp ?? network.now)\#(more)}"#
    }
}

@Suite("A simulated Waku node", .timeLimit(.minutes(30)))
struct WakuNodeTests {
    @Test("A node hears what it was subscribed to, hands it out once, and forgets it")
    func polls() async throws {
        let stage = try await NodeStage()
        #expect(try await stage.ask(.GET, NodeStage.messages).status == 404)
        let early = try await stage.ask(.POST, NodeStage.messages, stage.json())
        #expect(early.status == 400 && early.text.contains("not subscribed"))
        try await stage.subscribe()
        #expect(try await stage.ask(.GET, NodeStage.messages).tree == [])
        #expect(try await stage.ask(.POST, NodeStage.messages, stage.json()).text == "OK")
        let answer = try await stage.ask(.GET, NodeStage.messages)
        #expect(answer.tree?.items?.count == 1)
        #expect(answer.tree?.items?.first?["payload"]?.text == "AAAA")
        #expect(try await stage.ask(.GET, NodeStage.messages).tree == [])
        #expect(try await stage.ask(.DELETE, NodeStage.subscriptions, NodeStage.shard).status == 200)
        #expect(try await stage.ask(.GET, NodeStage.messages).status == 404)
        await stage.node.stop()
    }

    @Test(
        "A subscription that names no static shard is refused",
        arguments: [
            "", "{}", "[5]", #"["/waku/2/default-waku/proto"]"#, #"["/waku/2/rs/16/"]"#,
            #"["/waku/2/rs/16/32" "#,
            #"["/waku/2/rs/16/32","/waku/2/rs/16/x"]"#
        ])
    func shards(_ body: String) async throws {
        let stage = try await NodeStage()
        #expect(try await stage.ask(.POST, NodeStage.subscriptions, body).status == 400)
        #expect(!stage.node.isSubscribed)
        await stage.node.stop()
    }

    @Test(
        "What is no message is refused",
        arguments: [
            "", "[]", "{", #"{"contentTopic":"x"}"#, #"{"payload":"AAAA"}"#,
            #"{"payload":"","contentTopic":"x"}"#,
            #"{"payload":"AAA","contentTopic":"x"}"#, #"{"payload":"-_-_","contentTopic":"x"}"#,
            #"{"payload":"AAAA","contentTopic":""}"#, #"{"payload":"AAAA","contentTopic":"x","version":-1}"#,
            #"{"payload":"AAAA","payload":"AAAA","contentTopic":"x"}"#,
            #"{"payload":"AAAA","contentTopic":"x","meta":"!"}"#,
            #"{"payload":"AAAA","contentTopic":"x","ephemeral":1}"#,
            #"{"payload":"AAAA","contentTopic":"x","timestamp":"5"}"#
        ])
    func noMessage(_ body: String) async throws {
        let stage = try await NodeStage()
        try await stage.subscribe()
        #expect(try await stage.ask(.POST, NodeStage.messages, body).status == 400)
        #expect(stage.network.published == 0)
        await stage.node.stop()
    }

    @Test("A message of more than 150 KiB is refused, one of another type of body too")
    func large() async throws {
        let stage = try await NodeStage()
        try await stage.subscribe()
        let fits = SimulatorBase64.encode([UInt8](repeating: 1, count: (150 << 10) - 48))
        #expect(try await stage.ask(.POST, NodeStage.messages, stage.json(fits)).status == 200)
        let tooLarge = SimulatorBase64.encode([UInt8](repeating: 1, count: (150 << 10) - 47))
        #expect(try await stage.ask(.POST, NodeStage.messages, stage.json(tooLarge)).status == 400)
        let typed = try await stage.ask(.POST, NodeStage.messages, stage.json(), type: "text/html")
        #expect(typed.status == 400)
        await stage.node.stop()
    }

    @Test("The cache holds so many messages; the one dated furthest back goes first")
    func cache() async throws {
        var knobs = WakuNodeKnobs()
        knobs.cacheMessages = 2
        let stage = try await NodeStage(knobs)
        try await stage.subscribe()
        let now = stage.network.now
        for (payload, timestamp) in [("AAAA", now), ("BBBB", now - 9), ("CCCC", now + 1), ("CCCC", now + 1)] {
            let body = stage.json(payload, timestamp: timestamp)
            #expect(try await stage.ask(.POST, NodeStage.messages, body).status == 200)
        }
        let items = try await stage.ask(.GET, NodeStage.messages).tree?.items ?? []
        #expect(items.map { $0["payload"]?.text } == ["AAAA", "CCCC"])
        await stage.node.stop()
    }

    @Test("Nodes of one network hear each other, each message once")
    func network() async throws {
        let stage = try await NodeStage()
        let other = WakuNodeSimulator(
            on: stage.network, eventLoopGroup: MultiThreadedEventLoopGroup.singleton)
        let port = try await other.start()
        try await stage.subscribe()
        _ = try await PlainClient.ask(
            port: port, trusting: nil, .POST, NodeStage.subscriptions,
            headers: [("content-type", "application/json")], body: Array(NodeStage.shard.utf8))
        let body = stage.json()
        let messages = stage.network.messages()
        for _ in 0..<2 { _ = try await stage.ask(.POST, NodeStage.messages, body) }
        let heard = try await PlainClient.ask(port: port, trusting: nil, .GET, NodeStage.messages)
        #expect(heard.tree?.items?.count == 1 && stage.network.published == 1)
        let behind = SimulatedWakuMessage(payload: [1], contentTopic: "/behind", timestamp: 1)
        other.inject(behind)
        let first = try await messages.next("the message")
        #expect(first.tree["payload"]?.text == heard.tree?.items?.first?["payload"]?.text)
        let next = try await messages.next("the message behind it")
        #expect(next == behind)
        await other.stop()
        await stage.node.stop()
    }

    @Test("The store keeps what is dated now and is not ephemeral, and hands it out in pages")
    func store() async throws {
        // What is dated now is so on a machine that is slow, too.
        let stage = try await NodeStage(world: .fixed(seed: 1, at: World.live.now()))
        try await stage.subscribe()
        let now = stage.network.now
        let (second, minute): (Int64, Int64) = (1_000_000_000, 60_000_000_000)
        for number in 0..<5 {
            let body = stage.json(timestamp: now - Int64(number) * second)
            #expect(try await stage.ask(.POST, NodeStage.messages, body).status == 200)
        }
        for body in [
            stage.json(timestamp: now - minute), stage.json(timestamp: now + minute),
            stage.json(timestamp: now + 1, more: #","ephemeral":true"#)
        ] {
            #expect(try await stage.ask(.POST, NodeStage.messages, body).status == 200)
        }
        #expect(stage.network.storedCount == 5)
        var times: [Int64] = []
        var cursor = ""
        for round in 0..<3 {
            let page = try await stage.ask(
                .GET,
                "/store/v3/messages?includeData=true&ascending=true&pageSize=2"
                    + "&pubsubTopic=%2Fwaku%2F2%2Frs%2F16%2F32&startTime=\(now - minute)&endTime=\(now)"
                    + cursor)
            let items = page.tree?["messages"]?.items ?? []
            times += items.compactMap { $0["message"]?["timestamp"]?.integer }
            let next = page.tree?["paginationCursor"]?.text
            #expect((next == nil) == (round == 2))
            cursor = next.map { "&cursor=\($0)" } ?? ""
        }
        #expect(times == (0..<5).map { now - Int64(4 - $0) * second })
        let bare = try await stage.ask(.GET, "/store/v3/messages?pageSize=1")
        #expect(bare.tree?["messages"]?.items?.first?["message"] == nil, "without data nothing but hashes")
        for query in [
            "cursor=0x12", "cursor=abc", "includeData=perhaps", "startTime=x", "pageSize=x", "cursor=%zz"
        ] {
            #expect(try await stage.ask(.GET, "/store/v3/messages?" + query).status == 400, "\(query)")
        }
        let strange = "0x" + String(repeating: "0", count: 64)
        #expect(try await stage.ask(.GET, "/store/v3/messages?cursor=\(strange)").status == 500)
        stage.node.turn { $0.hasStore = false }
        #expect(try await stage.ask(.GET, "/store/v3/messages").status == 412)
        await stage.node.stop()
    }

    @Test("In the manner of go-waku: other words, no health, a store that must be told the topics")
    func goWaku() async throws {
        var knobs = WakuNodeKnobs()
        knobs.isGoWaku = true
        let stage = try await NodeStage(knobs)
        #expect(try await stage.ask(.POST, NodeStage.messages, stage.json()).status == 500)
        #expect(try await stage.ask(.POST, NodeStage.subscriptions, NodeStage.shard).tree == true)
        #expect(try await stage.ask(.GET, NodeStage.messages).tree == .null)
        #expect(try await stage.ask(.GET, "/health").status == 501)
        #expect(try await stage.ask(.GET, "/store/v3/messages?pubsubTopic=x").status == 400)
        #expect(try await stage.ask(.GET, "/store/v3/messages?pubsubTopic=x&contentTopics=a").status == 200)
        await stage.node.stop()
    }

    @Test("Another process turns its knobs and reads its counters")
    func control() async throws {
        let stage = try await NodeStage()
        let control = SimulatorControl(
            [stage.node], eventLoopGroup: MultiThreadedEventLoopGroup.singleton)
        let port = try await control.start()
        func turn(_ body: String) async throws -> Int {
            try await PlainClient.ask(
                port: port, trusting: nil, .POST, "/waku/knobs", body: Array(body.utf8)
            ).status
        }
        let all = """
            {"service": {"polls": "unavailable", "subscriptions": "garbage", "publishing": "hangsUp",
              "store": "brokenOff", "retryAfterSeconds": 7, "answerDelayMilliseconds": 1, "oversizedBytes": 9,
              "copies": 2, "reverses": true, "losesEvery": 3, "cacheMessages": 4, "hasStore": false,
              "peers": "Disconnected", "isGoWaku": true}}
            """
        #expect(try await turn(all) == 200)
        let knobs = stage.node.knobs
        #expect(knobs.polls == .unavailable && knobs.subscriptions == .garbage && knobs.store == .brokenOff)
        #expect(knobs.publishing == .hangsUp && knobs.retryAfterSeconds == 7 && knobs.oversizedBytes == 9)
        #expect(knobs.answerDelay == .milliseconds(1) && knobs.copies == 2 && knobs.reverses)
        #expect(knobs.losesEvery == 3 && knobs.cacheMessages == 4 && !knobs.hasStore)
        #expect(knobs.peers == .none && knobs.isGoWaku)
        for bad in [
            #"{"service": {"polls": "shrugs"}}"#, #"{"service": {"copies": -1, "isGoWaku": false}}"#,
            #"{"service": {"unknown": 1}}"#, #"{"service": 5}"#
        ] {
            #expect(try await turn(bad) == 400)
        }
        #expect(stage.node.knobs == knobs, "a refused order changes nothing")
        let answer = try await stage.ask(.GET, NodeStage.messages)
        #expect(answer.status == 503 && answer["retry-after"] == ["7"])
        let counters = try await PlainClient.ask(port: port, trusting: nil, .GET, "/waku/counters")
        #expect(counters.tree?["received"]?.integer == 1)
        #expect(counters.tree?["byReason"]?["503"]?.integer == 1)
        await control.stop()
        await stage.node.stop()
    }
}
