import PushModel

/// How a simulated node misbehaves; each can be changed at run time and takes effect with the next call.
package struct WakuNodeKnobs: Sendable, Equatable {
    /// The answer to a kind of call.
    package enum Answers: String, Sendable, CaseIterable {
        case asItShould
        case badRequest, notFound, tooMany, serverError, unavailable
        /// Bytes that are not JSON.
        case garbage
        /// JSON that breaks off in the middle. Messages that the call would hand out are lost.
        case brokenOff
        /// Very many bytes of white space.
        case oversized
        /// The connection ends instead. Messages that the call would hand out are lost.
        case hangsUp

        var status: Int? {
            switch self {
            case .badRequest: 400
            case .notFound: 404
            case .tooMany: 429
            case .serverError: 500
            case .unavailable: 503
            case .asItShould, .garbage, .brokenOff, .oversized, .hangsUp: nil
            }
        }
    }

    /// What `/health` says about the node's peers. Without any the node receives nothing from the network,
    /// but still answers.
    package enum Peers: String, Sendable, CaseIterable {
        case connected = "Connected"
        case partlyConnected = "PartiallyConnected"
        case none = "Disconnected"
    }

    package var polls = Answers.asItShould
    package var subscriptions = Answers.asItShould
    package var publishing = Answers.asItShould
    package var store = Answers.asItShould
    /// The `Retry-After` of answers 429 and 503.
    package var retryAfterSeconds: Int?
    /// The delay of every answer.
    package var answerDelay = Duration.zero
    /// The size of an oversized answer, in bytes.
    package var oversizedBytes = 65 << 20
    /// How often each message occurs in the answer to a poll.
    package var copies = 1
    /// The answer to a poll has the newest message first.
    package var reverses = false
    /// The node loses one of this many messages of the network: 2 is every other one, 0 loses none.
    package var losesEvery = 0
    /// How many messages wait for a poll; beyond it the oldest is dropped (`--rest-relay-cache-capacity`).
    package var cacheMessages = 50
    /// Whether it knows a store.
    package var hasStore = true
    package var peers = Peers.connected
    /// Behaves like go-waku: `null` for an empty list, no health, and a store that requires the content
    /// topics.
    package var isGoWaku = false

    package init() {}
}

/// An event at a simulated node.
package enum WakuNodeNote: Sendable, Hashable {
    /// A poll, and how many messages were in the answer; `nil`: it failed.
    case polled(Int?)
    case subscribed(isTaken: Bool)
    case unsubscribed
    case published(isTaken: Bool)
    /// A request for a page of the store, and how many messages it had; `nil`: it failed.
    case stored(Int?)
    case askedForHealth
}

extension WakuNodeKnobs {
    /// One JSON object; absent members leave their knobs unchanged.
    ///
    /// - Throws: `.knobNotKnown`; then nothing has been changed.
    mutating func turn(_ tree: JSONTree) throws(SimulatorError) {
        var next = self
        for member in try tree.known(tree.members) { try next.turn(member.name, member.value) }
        self = next
    }

    private mutating func turn(_ name: String, _ value: JSONTree) throws(SimulatorError) {
        func answers() throws(SimulatorError) -> Answers {
            try value.known(value.text.flatMap { Answers(rawValue: $0) })
        }
        switch name {
        case "polls": polls = try answers()
        case "subscriptions": subscriptions = try answers()
        case "publishing": publishing = try answers()
        case "store": store = try answers()
        case "retryAfterSeconds": retryAfterSeconds = value == .null ? nil : Int(try value.setting())
        case "answerDelayMilliseconds": answerDelay = try value.milliseconds()
        case "oversizedBytes": oversizedBytes = min(128 << 20, Int(try value.setting()))
        case "copies": copies = min(16, Int(try value.setting()))
        case "reverses": reverses = try value.known(value.flag)
        case "losesEvery": losesEvery = Int(try value.setting())
        case "cacheMessages": cacheMessages = max(1, min(100_000, Int(try value.setting())))
        case "hasStore": hasStore = try value.known(value.flag)
        case "peers": peers = try value.known(value.text.flatMap { Peers(rawValue: $0) })
        case "isGoWaku": isGoWaku = try value.known(value.flag)
        default: throw SimulatorError(.knobNotKnown)
        }
    }
}
