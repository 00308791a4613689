/// Answers calls as a Waku node's REST interface does (logos-delivery's, or go-waku's if that is switched
/// on).
final class WakuNodeJudge: ConnectionJudge {
    /// The most that a node relays: 150 KiB with the envelope.
    static let messageBytes = 150 << 10
    /// The most bytes of a body that are kept: such a message in base64, and some more.
    static let bodyKept = 256 << 10

    private let hub: WakuNodeHub

    init(_ hub: WakuNodeHub) { self.hub = hub }

    func judge(_ request: SimulatedRequest) -> SimulatedAnswer {
        let target = String(decoding: request[.path] ?? [], as: UTF8.self)
        let halves = target.split(separator: "?", maxSplits: 1)
        let path = String(halves.first ?? "")
        let method = String(decoding: request[.method] ?? [], as: UTF8.self)
        let knobs = hub.knobs
        var isAccepted = false
        var answer: SimulatedAnswer
        switch (method, path) {
        case ("POST", "/relay/v1/subscriptions"): answer = subscribe(request, knobs)
        case ("DELETE", "/relay/v1/subscriptions"): answer = unsubscribe(request)
        case ("GET", "/store/v3/messages"):
            answer = history(halves.count > 1 ? String(halves[1]) : "", knobs)
        case ("GET", "/health"): answer = health(knobs)
        case ("GET", "/info"), ("GET", "/debug/v1/info"):
            answer = Self.json(200, ["listenAddresses": ["/ip4/127.0.0.1/tcp/60000"]])
        case ("GET", "/version"), ("GET", "/debug/v1/version"): answer = Self.text(200, "simulated")
        default:
            let head = "/relay/v1/messages/"
            guard path.hasPrefix(head), let topic = Self.unescaped(path.dropFirst(head.utf8.count)),
                ["GET", "POST"].contains(method)
            else {
                answer = Self.text(404, "")
                break
            }
            answer = method == "GET" ? poll(topic, knobs) : publish(topic, request, knobs)
            isAccepted = method == "POST" && Self.isTaken(answer)
        }
        if [429, 503].contains(answer.status) { answer.retryAfter = knobs.retryAfterSeconds.map { "\($0)" } }
        answer.delay = max(answer.delay, knobs.answerDelay)
        hub.count(answer.status, isAccepted: isAccepted)
        return answer
    }

    // MARK: Routes

    private func subscribe(_ request: SimulatedRequest, _ knobs: WakuNodeKnobs) -> SimulatedAnswer {
        if let answer = Self.fault(knobs.subscriptions, knobs) {
            hub.note(.subscribed(isTaken: false))
            return answer
        }
        guard let topics = Self.topics(request), hub.subscribe(topics) else {
            hub.note(.subscribed(isTaken: false))
            return Self.text(400, "Invalid pubsub topic(s)")
        }
        hub.note(.subscribed(isTaken: true))
        return Self.done(knobs)
    }

    private func unsubscribe(_ request: SimulatedRequest) -> SimulatedAnswer {
        guard let topics = Self.topics(request) else { return Self.text(400, "Invalid pubsub topic(s)") }
        hub.unsubscribe(topics)
        hub.note(.unsubscribed)
        return Self.done(hub.knobs)
    }

    private func poll(_ topic: String, _ knobs: WakuNodeKnobs) -> SimulatedAnswer {
        if knobs.polls.status != nil || knobs.polls == .garbage {
            hub.note(.polled(nil))
            return Self.fault(knobs.polls, knobs) ?? Self.text(500, "")
        }
        guard var messages = hub.drain(topic) else {
            hub.note(.polled(nil))
            return Self.text(404, "")
        }
        if knobs.reverses { messages.reverse() }
        let repeated = messages.flatMap { Array(repeating: $0.tree, count: max(1, knobs.copies)) }
        let tree = knobs.isGoWaku && repeated.isEmpty ? JSONTree.null : .array(repeated)
        var answer = Self.json(200, tree)
        switch knobs.polls {
        case .brokenOff: answer.body.removeLast(min(answer.body.count, 1 + answer.body.count / 4))
        case .oversized, .hangsUp: answer = Self.fault(knobs.polls, knobs) ?? answer
        default: break
        }
        hub.note(.polled(knobs.polls == .asItShould ? messages.count : nil))
        return answer
    }

    private func publish(
        _ topic: String, _ request: SimulatedRequest, _ knobs: WakuNodeKnobs
    ) -> SimulatedAnswer {
        let answer = judged(topic, request, knobs)
        hub.note(.published(isTaken: Self.isTaken(answer)))
        return answer
    }

    private func judged(
        _ topic: String, _ request: SimulatedRequest, _ knobs: WakuNodeKnobs
    ) -> SimulatedAnswer {
        if let answer = Self.fault(knobs.publishing, knobs) { return answer }
        guard hub.listens(on: topic) else {
            let words = "Failed to publish: Node not subscribed to topic: \(topic)"
            return Self.text(knobs.isGoWaku ? 500 : 400, words)
        }
        guard Self.isJSON(request), let tree = JSONTree(request.body),
            let message = SimulatedWakuMessage(tree, now: hub.network.now)
        else { return Self.text(400, "Invalid content body, could not decode") }
        guard message.bytes <= Self.messageBytes else {
            return Self.text(400, "Failed to publish: Message size exceeded maximum of 153600 bytes")
        }
        hub.network.publish(message, on: topic)
        return Self.done(knobs)
    }

    private func history(_ query: String, _ knobs: WakuNodeKnobs) -> SimulatedAnswer {
        let answer = page(query, knobs)
        if answer.status != 200 { hub.note(.stored(nil)) }
        return answer
    }

    private func page(_ query: String, _ knobs: WakuNodeKnobs) -> SimulatedAnswer {
        if let answer = Self.fault(knobs.store, knobs) { return answer }
        guard knobs.hasStore else {
            return Self.text(412, "No suitable service peer & no discovery method")
        }
        guard let query = WakuStoreQuery(query, isGoWaku: knobs.isGoWaku) else {
            return Self.text(400, "parsing error")
        }
        guard let page = hub.network.page(query) else { return Self.text(500, "INVALID_CURSOR") }
        hub.note(.stored(page.messages.count))
        let entries = page.messages.map { stored -> JSONTree in
            var members: [JSONTree.Member] = [
                .init(name: "messageHash", value: .string(Self.hex(stored.hash)))
            ]
            if query.includesData {
                members.append(.init(name: "message", value: stored.message.tree))
                members.append(.init(name: "pubsubTopic", value: .string(stored.pubsubTopic)))
            }
            return .object(members)
        }
        var members: [JSONTree.Member] = [
            .init(name: "requestId", value: "simulated"), .init(name: "statusCode", value: 200),
            .init(name: "statusDesc", value: "OK"), .init(name: "messages", value: .array(entries))
        ]
        if let cursor = page.cursor {
            members.append(.init(name: "paginationCursor", value: .string(Self.hex(cursor))))
        }
        return Self.json(200, .object(members))
    }

    private func health(_ knobs: WakuNodeKnobs) -> SimulatedAnswer {
        hub.note(.askedForHealth)
        guard !knobs.isGoWaku else {
            return Self.json(501, "No health without RLN")
        }
        return Self.json(
            200,
            [
                "nodeHealth": "Ready", "connectionStatus": .string(knobs.peers.rawValue),
                "protocolsHealth": [["Relay": "Ready", "desc": ""]]
            ])
    }

    // MARK: Forms

    private static func isTaken(_ answer: SimulatedAnswer) -> Bool { answer.status == 200 && !answer.hangsUp }

    private static func done(_ knobs: WakuNodeKnobs) -> SimulatedAnswer {
        knobs.isGoWaku ? json(200, true) : text(200, "OK")
    }

    private static func text(_ status: Int, _ words: String) -> SimulatedAnswer {
        SimulatedAnswer(status: status, contentType: "text/plain", body: Array(words.utf8))
    }

    private static func json(_ status: Int, _ tree: JSONTree) -> SimulatedAnswer {
        SimulatedAnswer(status: status, contentType: "application/json", body: tree.bytes)
    }

    private static func fault(
        _ answers: WakuNodeKnobs.Answers, _ knobs: WakuNodeKnobs
    ) -> SimulatedAnswer? {
        switch answers {
        case .asItShould: return nil
        case .garbage: return text(200, "<html>no node here</html>")
        case .brokenOff: return text(200, #"{"messages":[{"#)
        case .oversized:
            let body = [UInt8](repeating: 0x20, count: knobs.oversizedBytes)
            return SimulatedAnswer(status: 200, contentType: "application/json", body: body)
        case .hangsUp:
            var answer = text(200, "")
            answer.hangsUp = true
            return answer
        case .badRequest, .notFound, .tooMany, .serverError, .unavailable:
            return text(answers.status ?? 500, "")
        }
    }

    private static func isJSON(_ request: SimulatedRequest) -> Bool {
        let type = String(decoding: request[.contentType] ?? [], as: UTF8.self)
        return ["application/json", "text/plain"].contains(String(type.prefix { $0 != ";" }))
            && request.body.count == request.bodyBytes
    }

    /// Names of static shards only.
    private static func topics(_ request: SimulatedRequest) -> [String]? {
        guard isJSON(request), let items = JSONTree(request.body)?.items else { return nil }
        var topics: [String] = []
        for item in items {
            guard let text = item.text, text.wholeMatch(of: #//waku/2/rs/\d{1,5}/\d{1,5}/#) != nil else {
                return nil
            }
            topics.append(text)
        }
        return topics
    }

    private static func hex(_ bytes: [UInt8]) -> String {
        "0x" + bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }

    /// Decodes percent escapes; `nil` for a broken one.
    static func unescaped(_ text: some StringProtocol) -> String? {
        var out: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                out.append(byte)
                continue
            }
            guard rest.count >= 2,
                let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
            else { return nil }
            out.append(value)
            rest = rest.dropFirst(2)
        }
        return String(validating: out, as: UTF8.self)
    }
}

extension WakuStoreQuery {
    /// Reads the part after the question mark.
    ///
    /// - Returns: `nil` if a node would answer 400.
    init?(_ text: String, isGoWaku: Bool) {
        self.init()
        for pair in text.split(separator: "&") {
            let halves = pair.split(separator: "=", maxSplits: 1)
            guard halves.count == 2 else { continue }
            guard let value = WakuNodeJudge.unescaped(halves[1]) else { return nil }
            switch halves[0] {
            case "pubsubTopic": pubsubTopic = value
            case "contentTopics": contentTopics = Set(value.split(separator: ",").map(String.init))
            case "includeData":
                guard let flag = Bool(value) else { return nil }
                includesData = flag
            case "ascending": isAscending = value == "true"
            case "pageSize":
                guard let size = Int(value) else { return nil }
                pageSize = max(1, min(100, size))
            case "startTime", "endTime":
                guard let time = Int64(value) else { return nil }
                guard time > 0 else { continue }
                if halves[0] == "startTime" { start = time } else { end = time }
            case "cursor":
                guard let hash = Self.hash(value) else { return nil }
                cursor = hash
            default: break
            }
        }
        if isGoWaku, pubsubTopic == nil || contentTopics.isEmpty { return nil }
    }

    /// 32 bytes in hex, with `0x`.
    private static func hash(_ text: String) -> [UInt8]? {
        guard text.hasPrefix("0x"), text.utf8.count == 66 else { return nil }
        var bytes: [UInt8] = []
        var rest = text.dropFirst(2)
        while !rest.isEmpty {
            guard let byte = UInt8(rest.prefix(2), radix: 16) else { return nil }
            bytes.append(byte)
            rest = rest.dropFirst(2)
        }
        return bytes
    }
}
