import MarmotPush
import PushModel
import Secp256k1Keys
import Testing
import WireFormats

/// Wraps: built to the byte, and opened.
extension MarmotVectorRunner {
    /// Every byte but the signatures, whose random part the file does not give: the id covers all the rest,
    /// and the file's signature has to fit it.
    func building(_ row: JSONValue) throws -> Bool {
        let server = try xOnly(row, "server_pubkey")
        let expected = try #require(row["wrap"])
        let inner: NostrEvent
        if row["seal_json"] == nil {
            inner = try NostrEvent.parse(Secret(try text(row, "kind446_json").utf8))
            guard isText(inner.serialized(), try text(row, "kind446_json")) else { return false }
        } else {
            let rumor = try NostrEvent.parse(Secret(try text(row, "rumor_json").utf8), .rumor)
            guard isText(rumor.serialized(), try text(row, "rumor_json")) else { return false }
            inner = try NostrEvent.parse(Secret(try text(row, "seal_json").utf8))
            let seal = try GiftWrap.seal(
                rumor, by: pair(row, "sender_secret"), to: server,
                layer(bytes(row, "seal_nonce"), at: try #require(row["seal_created_at"]?.int64)))
            guard isText(inner.serialized(), try text(row, "seal_json")), isSame(seal, inner) else {
                return false
            }
        }
        let wrap = try GiftWrap.wrap(
            inner, by: pair(row, "wrapper_secret"), to: server,
            layer(bytes(row, "outer_nonce"), at: try #require(expected["created_at"]?.int64)))
        return isSame(wrap, try event(expected))
    }

    private func isSame(_ ours: NostrEvent, _ theirs: NostrEvent) -> Bool {
        ours.id == theirs.id && ours.content == theirs.content && ours.tags == theirs.tags
            && ours.pubkey == theirs.pubkey && ours.isSigned && theirs.isSigned
    }

    private func layer(_ nonce: [UInt8], at createdAt: Int64) -> GiftWrap.Layer {
        GiftWrap.Layer(createdAt: createdAt, nonce: nonce, auxiliary: [UInt8](repeating: 1, count: 32))
    }

    private func isText(_ secret: Secret, _ text: String) -> Bool { secret == Secret(text.utf8) }

    /// From the wrap to the device tokens, by the pure parts. (The relay's own way, with budgets and replay,
    /// is to be compared with the same row.)
    func giftWrap(_ row: JSONValue) throws -> Bool {
        let server = try named(row, "server")
        let expect = try #require(row["expect"])
        guard expect["accept"]?.bool == true else {
            return reasons(try text(expect, "reason"))
                .contains(refusal { _ = try trigger(row["event"], with: server) })
        }
        let (opened, content) = try trigger(row["event"], with: server)
        return try holds(opened, expect) && content.format.rawValue == expect["format"]?.string
            && Int64(content.count) == expect["chunks"]?.int64
            && (expect["content_sha256"] == nil
                || Hex.encode(content.digest) == expect["content_sha256"]?.string)
            && wakes(content, expect, server)
    }

    private func trigger(
        _ event: JSONValue?, with server: Secp256k1KeyPair
    ) throws -> (GiftWrap.Opened, TriggerContent) {
        let opened = try GiftWrap.unwrap(try self.event(event), with: server)
        return (opened, try TriggerContent(reading: opened.event))
    }

    private func holds(_ opened: GiftWrap.Opened, _ expect: JSONValue) throws -> Bool {
        (opened.path == .sealed ? "sealed" : "direct") == expect["path"]?.string
            && opened.event.pubkey.hex == expect["sender"]?.string
            && Hex.encode(opened.event.id) == expect["rumor_id"]?.string
            && opened.event.createdAt == expect["created_at"]?.int64
    }

    /// The devices that the tokens name, in any order, and how many items name none.
    private func wakes(_ content: TriggerContent, _ expect: JSONValue, _ server: Secp256k1KeyPair) throws
        -> Bool
    {
        var ignored = content.unusable
        var found: [DeviceTarget] = []
        for chunk in content.chunks {
            // What does not open is a decoy.
            guard let target = try? TokenBox.decrypt(chunk, content.format, with: server) else {
                ignored += 1
                continue
            }
            if !found.contains(where: { same($0, target) }) { found.append(target) }
        }
        let devices = try #require(expect["devices"]?.array)
        return Int64(ignored) == expect["ignored"]?.int64 && found.count == devices.count
            && devices.allSatisfy { device in
                found.contains {
                    $0.platform.name == device["platform"]?.string
                        && Hex.encode($0.token.reveal { Array($0) }) == device["token_hex"]?.string
                }
            }
    }

    /// Our codes for a reason of the file, whose names are its own. What lacks a member is no event at all
    /// here, where others find a signature missing.
    private func reasons(_ reason: String) -> Set<MarmotError.Code?> {
        switch reason {
        case "outer_signature": [.badSignature, .malformedEvent]
        case "seal_signature", "inner_signature": [.badSignature, .malformedInside]
        case "outer_kind", "inner_kind", "rumor_kind": [.wrongKind]
        case "wrong_recipient": [.wrongRecipient]
        case "decrypt": [.doesNotOpen]
        case "inner_shape": [.malformedInside]
        case "author_mismatch": [.authorMismatch]
        case "rumor_id": [.badRumorID]
        // A content without tags that no format has can be called either.
        case "version", "content": [.unknownVersion, .malformedTrigger]
        default: []
        }
    }
}
