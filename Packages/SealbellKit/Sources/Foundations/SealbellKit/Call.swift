public import PushModel

/// Something that the app must do over its network. Save ``PushDevice/kept`` before you do it.
///
/// It prints as its id and its kind.
public struct Call: Sendable, Identifiable {
    /// Unique within one device and one run of the app.
    public let id: UInt64
    /// What to do, and where.
    public let way: Way
    /// Whether it is a standing call: it is answered with ``CallAnswer/taken`` once it is in force, and then
    /// each time something arrives, until the device gives a new one of its kind or the app ends.
    public let isStanding: Bool
    /// If no answer has come within this time, the answer is ``CallAnswer/none``: 30 s; 90 s where the server
    /// waits until something happens.
    public let patience: Duration

    /// What the app must do. An app of one protocol needs only those of its protocol.
    public enum Way: Sendable {
        /// Zulip, Nextcloud, Session (whose onions are sealed inside): an HTTP request.
        case http(HTTPCall)
        /// Status: publish it through the app's Waku node.
        case publish(WakuMessage)
        /// Status, standing: what arrives with one of these content topics.
        case follow(topics: [String])
        /// Status's sender: the store nodes' messages of a content topic, one answer each, then
        /// ``CallAnswer/taken``.
        case history(topic: String)
        /// Marmot: an application message of the MLS group with this id, at most 64 KiB of NIP-01 JSON.
        case say(group: [UInt8], rumor: Secret)
        /// Marmot, standing: application messages of these kinds (447 to 450) in the MLS group with this id.
        case hear(group: [UInt8], kinds: [Int])
        /// Marmot's sender: an `EVENT`, as NIP-01 JSON, at each of these Nostr relays (`wss://` or `ws://`
        /// URLs), over connections of its own. Others may have named them: dial no private address.
        case event(Secret, relays: [String])
        /// Marmot's sender: a `REQ` with this filter, as NIP-01 JSON, until `EOSE`, at these Nostr relays; as
        /// above.
        case lookUp(filter: Secret, relays: [String])
    }

    package init(
        id: UInt64, _ way: Way, isStanding: Bool = false, patience: Duration = KitLimits.patience
    ) {
        (self.id, self.way, self.isStanding, self.patience) = (id, way, isStanding, patience)
    }

    /// The request, where it is one.
    public var http: HTTPCall? { if case .http(let call) = way { call } else { nil } }
}

extension Call: CustomStringConvertible, CustomReflectable {
    /// Id and kind: `7 publish`.
    public var description: String {
        let kind =
            switch way {
            case .http: "http"
            case .publish: "publish"
            case .follow: "follow"
            case .history: "history"
            case .say: "say"
            case .hear: "hear"
            case .event: "event"
            case .lookUp: "lookUp"
            }
        return "\(id) \(kind)"
    }
    /// Without children.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
