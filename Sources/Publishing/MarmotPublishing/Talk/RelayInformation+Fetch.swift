package import MarmotPush
package import PushModel
package import WebSocket

/// Fetches a relay's document; `nil` when there is none, which means that no limits are known.
package typealias DocumentFetch = @Sendable (WebSocketAddress) async -> RelayInformation?

extension RelayInformation {
    /// Whether an event of that size and age would be taken. Nobody works for a difficulty here.
    package func takes(messageBytes size: Int, contentBytes: Int, age: Duration) -> Bool {
        size <= maxMessageBytes ?? .max && contentBytes <= maxContentCharacters ?? .max
            && minPowDifficulty == nil && createdAtLowerLimit.map { age <= $0 } ?? true
    }

    /// Fetches documents over https (NIP-11).
    ///
    /// - Parameter isStranger: whether somebody else named the relay, so that it must stand at a public
    ///   address.
    package static func fetch(
        _ web: any WebFetch, isStranger: @escaping @Sendable (WebSocketAddress) -> Bool = { _ in false }
    ) -> DocumentFetch {
        { address in
            let answer = await answer(of: address, web, isStranger: isStranger)
            guard let answer, answer.status == 200 else { return nil }
            // A relay whose document cannot be read is none the worse.
            return try? RelayInformation(reading: answer.body)
        }
    }

    /// A relay's own host and port are asked, and plain `ws` ones are not: they stand on this machine.
    static func answer(
        of address: WebSocketAddress, _ web: any WebFetch, isStranger: (WebSocketAddress) -> Bool
    ) async -> WebAnswer? {
        guard address.isSecure, !address.isOnion else { return nil }
        let request = WebRequest(
            .get, url: "https://\(address.authority)\(address.target)",
            headers: [("accept", "application/nostr+json")],
            answerLimitBytes: MarmotLimits.informationBytes, deadline: MarmotLimits.documentPatience,
            publicAddressesOnly: isStranger(address))
        do throws(WebError) { return try await web.fetch(request) } catch { return nil }
    }
}
