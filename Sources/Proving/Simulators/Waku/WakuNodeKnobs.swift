import PushModel

/// How a simulated node misbehaves; each can be turned at run time and counts from the next call.
package struct WakuNodeKnobs: Sendable, Equatable {
    /// What a kind of call is answered with.
    package enum Answers: String, Sendable, CaseIterable {
        case asItShould
        case badRequest, notFound, tooMany, serverError, unavailable
        /// Something that is no JSON.
        case garbage
        /// JSON that breaks off in the middle. What the call empties is emptied.
        case brokenOff
        /// More bytes than anybody wants, of white space.
        case oversized
        /// The connection ends instead. What the call empties is emptied.
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

    /// What `/health` says of the node's peers. Without any the node hears nothing of the network, and goes
    /// on answering.
    package enum Peers: String, Sendable, CaseIterable {
        case connected = "Connected"
        case partlyConnected = "PartiallyConnected"
        case none = "Disconnected"
    }

    package var polls = Answers.asItShould
    package var subscriptions = Answers.asItShould
    package var publishing = Answers.asItShould
    package var store = Answers.asItShould
    /// What answers of 429 and 503 carry.
    package var retryAfterSeconds: Int?
    /// Every call is answered so much later.
    package var answerDelay = Duration.zero
    /// Bytes of an answer that is oversized.
    package var oversizedBytes = 65 << 20
    /// Every message of an answer to a poll comes so often.
    package var copies = 1
    /// The youngest message of an answer to a poll comes first.
    package var reverses = false
    /// Of so many messages of the network the node hears one less: 2 is every other one, 0 loses none.
    package var losesEvery = 0
    /// Messages that are kept until somebody asks; then the oldest goes (`--rest-relay-cache-capacity`).
    package var cacheMessages = 50
    /// Whether it knows a store.
    package var hasStore = true
    package var peers = Peers.connected
    /// Speaks as go-waku does: `null` for an empty list, no health, and a store that must be told the content
    /// topics.
    package var isGoWaku = false

    package init() {}
}

/// Something that was seen at a simulated node.
package enum WakuNodeNote: Sendable, Hashable {
    /// A poll, and how many messages it was answered with; `nil`: with a fault.
    case polled(Int?)
    case subscribed(isTaken: Bool)
    case unsubscribed
    case published(isTaken: Bool)
    /// A page of the store was asked for, and had so many messages; `nil`: a fault.
    case stored(Int?)
    case askedForHealth
}

extension WakuNodeKnobs {
    /// One JSON object; members that are absent stay as they are.
    ///
    /// - Throws: `.knobNotKnown`; nothing has been changed then.
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
