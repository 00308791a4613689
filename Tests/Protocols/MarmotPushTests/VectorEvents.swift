import MarmotPush
import Primitives
import PushModel
import Secp256k1Keys
import Testing
import WireFormats

/// Events, signatures and what relays say.
extension MarmotVectorRunner {
    func nip01(_ row: JSONValue) throws -> Bool {
        let event = try event(row["event"])
        let stated = try #require(row["event"])
        let digest = SHA256.hash(Array(try text(row, "serialized").utf8))
        let id = NostrEvent.id(
            of: event.pubkey, createdAt: event.createdAt, kind: event.kind, tags: event.tags,
            content: event.content)
        // Written and read again, it is the same event, and the file's member for member.
        let again = try JSONValue.parse(event.serialized().reveal { Array($0) })
        return id == digest && Hex.encode(id) == stated["id"]?.string && event.isSigned && again == stated
    }

    func schnorr(_ row: JSONValue) throws -> Bool {
        let digest = try bytes(row, "message")
        let signature = try bytes(row, "sig")
        guard row["valid"]?.bool == true else {
            return !(try XOnlyKey(bytes(row, "pubkey"))?.verifies(signature, of: digest) ?? false)
        }
        let pair = try pair(row, "secret")
        return try pair.publicKey == xOnly(row, "pubkey")
            && pair.sign(digest, auxiliary: bytes(row, "aux")) == signature
            && pair.publicKey.verifies(signature, of: digest)
    }

    func relayList(_ row: JSONValue) throws -> Bool {
        let events = try #require(row["events"]?.array).map { try event($0) }
        let server = try pair(try #require(json["keys"]?["server"]), "secret").publicKey
        let expected = try #require(row["expect"]?.array).compactMap(\.string)
        // Whatever the order of arrival.
        return [events, events.reversed()].allSatisfy {
            RelayList.newest(of: $0, author: server)?.relays == expected
        }
    }

    func authentication(_ row: JSONValue) throws -> Bool {
        let pair = try pair(row, "secret")
        let (relay, challenge) = (try text(row, "relay"), try text(row, "challenge"))
        let createdAt = try #require(row["created_at"]?.int64)
        let event = AuthEvent.make(
            relay: relay, challenge: challenge, at: createdAt, by: pair,
            auxiliary: [UInt8](repeating: 0, count: 32))
        let again = try JSONValue.parse(event.serialized().reveal { Array($0) })
        return try again == row["event"]
            && AuthEvent.check(event, relay: relay, challenge: challenge, now: createdAt) == pair.publicKey
    }

    /// What the file says one has to do about a frame, told from what we read of it.
    func relayFrame(_ row: JSONValue) throws -> Bool {
        let frame = try #require(row["frame"]).serialized()
        let todo = try text(row, "do")
        do {
            switch try withBytes(
                frame, { (raw) throws(MarmotError) in try NostrMessage.FromRelay.parse(raw) })
            {
            case .endOfStored: return todo.hasPrefix("mark the subscription live")
            case .closed(_, let text): return todo.hasPrefix(advice(closed: NostrReason(text: text)))
            case .ok(_, let isAccepted, let text):
                return todo.hasPrefix(advice(isAccepted: isAccepted, NostrReason(text: text)))
            case .notice: return todo.hasPrefix("log")
            case .challenge: return todo.hasPrefix("store the challenge")
            case .event: return false
            }
        } catch {
            switch error.code {
            // An event that is none, whatever the subscription.
            case .malformedEvent: return todo.hasPrefix("drop")
            case .unknownMessage, .malformedMessage: return todo == "ignore"
            default: return false
            }
        }
    }

    private func advice(closed reason: NostrReason?) -> String {
        switch reason {
        case .authRequired: "AUTH with the stored challenge"
        case .restricted: "stop asking here"
        default: "the same REQ again after a pause"
        }
    }

    private func advice(isAccepted: Bool, _ reason: NostrReason?) -> String {
        if isAccepted { return "published" }
        return switch reason {
        case .duplicate: "published"
        case .authRequired: "AUTH, then the same EVENT again"
        case .rateLimited: "again later"
        default: "do not send it again"
        }
    }
}
