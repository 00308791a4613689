package import PushModel
package import WebSocket
import WireFormats

/// Fetches a relay's document; `nil` when there is none, which means that no limits are known.
package typealias DocumentFetch = @Sendable (WebSocketAddress) async -> RelayDocument?

/// What a relay says of itself (NIP-11): the limits that concern us. Nothing of it is believed beyond
/// politeness.
package struct RelayDocument: Sendable, Hashable {
    /// Bytes of one message to the relay.
    package var messageBytes: Int?
    /// Characters of one event's content.
    package var contentCharacters: Int?
    package var asksForProof = false
    /// Leading zero bits of an id that the relay wants.
    package var difficulty = 0
    /// An event may be so old.
    package var oldest: Duration?

    package init() {}

    /// - Parameter json: the document; members of another type count as absent.
    /// - Returns: `nil` when it is no JSON object.
    package init?(_ json: Secret) {
        let parsed = json.reveal { raw in
            // Whatever is wrong with it, a relay without a document is none the worse.
            try? JSONValue.parse(raw, limitBytes: NostrLimits.documentBytes, depthLimit: 16)
        }
        guard let parsed, parsed.object != nil else { return nil }
        let limitation = parsed["limitation"]
        func number(_ name: String) -> Int? {
            guard case .number(let number)? = limitation?[name], let value = number.int64, value > 0 else {
                return nil
            }
            return Int(value)
        }
        messageBytes = number("max_message_length")
        contentCharacters = number("max_content_length")
        difficulty = number("min_pow_difficulty") ?? 0
        oldest = number("created_at_lower_limit").map { .seconds(min($0, 1 << 40)) }
        if case .bool(true)? = limitation?["auth_required"] { asksForProof = true }
    }

    /// Whether an event of that size and age would be taken.
    package func takes(messageBytes size: Int, contentBytes: Int, age: Duration) -> Bool {
        size <= messageBytes ?? .max && contentBytes <= contentCharacters ?? .max && difficulty == 0
            && oldest.map { age <= $0 } ?? true
    }

    /// Fetches documents over https. The relay's own host and port are asked, and plain `ws` ones are not:
    /// they stand on this machine.
    package static func fetch(_ web: any WebFetch) -> DocumentFetch {
        { address in
            guard address.isSecure, !address.isOnion else { return nil }
            let request = WebRequest(
                .get, url: "https://\(address.authority)\(address.target)",
                headers: [("accept", "application/nostr+json")], answerLimitBytes: NostrLimits.documentBytes,
                deadline: NostrLimits.documentDeadline, publicAddressesOnly: false)
            do throws(WebError) {
                let answer = try await web.fetch(request)
                return answer.status == 200 ? RelayDocument(answer.body) : nil
            } catch {
                return nil
            }
        }
    }
}
