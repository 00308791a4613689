public import PushModel
public import Secp256k1Keys

/// The relays at which a key wants to receive messages: an event of kind 10050 (NIP-17;
/// docs/conformance/marmot.md).
public struct RelayList: Sendable {
    /// `ws` and `wss` addresses in the order of the `relay` tags, each once; at most
    /// ``MarmotLimits/relaysOfList``.
    public let relays: [String]
    /// The event as it was read, with its signature.
    public let event: NostrEvent

    /// Unix seconds; the newest list counts.
    public var createdAt: Int64 { event.createdAt }

    /// Reads a list. `relay` tags without a usable address, and all other tags, are ignored.
    ///
    /// - Throws: `.malformedRelayList` for another kind; `.badSignature`.
    public init(_ event: NostrEvent) throws(MarmotError) {
        guard event.kind == NostrKind.relayList else { throw MarmotError(.malformedRelayList) }
        guard event.isSigned else { throw MarmotError(.badSignature) }
        relays = Self.usable(event.tags.lazy.filter { $0.count > 1 && $0[0] == "relay" }.map { $0[1] })
        self.event = event
    }

    /// The list in force among events that relays returned: the author's newest; within one second, the one
    /// with the lower id. `nil` if there is none; a list may also be empty, which is an answer.
    public static func newest(of events: some Sequence<NostrEvent>, author: XOnlyKey) -> RelayList? {
        var best: RelayList?
        for event in events where event.pubkey == author {
            // Anything that is not a valid list by this author is ignored.
            guard let list = try? RelayList(event) else { continue }
            if best.map({ list.replaces($0) }) ?? true { best = list }
        }
        return best
    }

    /// Whether this list replaces another by the same author.
    public func replaces(_ other: RelayList) -> Bool {
        if createdAt != other.createdAt { return createdAt > other.createdAt }
        return event.id.lexicographicallyPrecedes(other.event.id)
    }

    /// Makes the event: one `relay` tag for each address, no content.
    public static func event(
        relays: [String], at createdAt: Int64, by pair: Secp256k1KeyPair, auxiliary: [UInt8]
    ) -> NostrEvent {
        .signed(
            kind: NostrKind.relayList, createdAt: createdAt, tags: relays.map { ["relay", $0] },
            content: Secret([]), by: pair, auxiliary: auxiliary)
    }

    /// Well-formed addresses, each once, at most ``MarmotLimits/relaysOfList``.
    package static func usable(_ addresses: some Sequence<String>) -> [String] {
        var kept: [String] = []
        for address in addresses where kept.count < MarmotLimits.relaysOfList {
            guard address.utf8.count <= MarmotLimits.relayURLBytes, hasHost(address), !kept.contains(address)
            else { continue }
            kept.append(address)
        }
        return kept
    }

    private static func hasHost(_ address: String) -> Bool {
        for scheme in ["wss://", "ws://"] where address.hasPrefix(scheme) {
            return address.utf8.count > scheme.utf8.count
        }
        return false
    }
}

/// Proves to a relay who is asking: an event of kind 22242 (NIP-42).
package enum AuthEvent {
    /// Makes the event.
    ///
    /// - Parameter relay: the address that was dialled.
    /// - Parameter challenge: the connection's latest.
    /// - Parameter createdAt: Unix seconds.
    /// - Parameter auxiliary: 32 random bytes for the signature.
    package static func make(
        relay: String, challenge: String, at createdAt: Int64, by pair: Secp256k1KeyPair, auxiliary: [UInt8]
    ) -> NostrEvent {
        .signed(
            kind: NostrKind.authentication, createdAt: createdAt,
            tags: [["relay", relay], ["challenge", challenge]], content: Secret([]), by: pair,
            auxiliary: auxiliary)
    }

    /// The relay's side: the key that has proved itself.
    ///
    /// - Throws: `.wrongKind`; `.malformedEvent` if relay, challenge or time do not match; `.badSignature`.
    package static func check(
        _ event: NostrEvent, relay: String, challenge: String, now: Int64
    ) throws(MarmotError) -> XOnlyKey {
        guard event.kind == NostrKind.authentication else { throw MarmotError(.wrongKind) }
        let (off, isOver) = event.createdAt.subtractingReportingOverflow(now)
        guard event.tag("relay") == relay, event.tag("challenge") == challenge, !isOver,
            off.magnitude <= UInt64(MarmotLimits.authenticationSkew.components.seconds)
        else { throw MarmotError(.malformedEvent) }
        guard event.isSigned else { throw MarmotError(.badSignature) }
        return event.pubkey
    }
}
