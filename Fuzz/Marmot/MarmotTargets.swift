import MarmotPush
import Primitives
import PushModel
import Secp256k1Keys
import WireFormats

/// The parsers and boxes of Marmot and of Nostr below it.
///
/// A box almost never opens for invented bytes, so that what is inside would never be read: each box is tried
/// as it came, and once more with the input as the content that somebody with the keys put in.
let marmotTargets: [String: Body] = [
    "nostr-event": { bytes in
        for completeness in [NostrEvent.Completeness.signed, .rumor, .sealed] {
            guard let event = try? NostrEvent.parse(bytes, completeness) else { continue }
            _ = event.isSigned
            let text = event.serialized()
            // Escapes may make the text longer than a frame, which is then not ours to send.
            guard text.count <= MarmotLimits.frameBytes else { continue }
            guard let again = try? NostrEvent.parse(text, completeness) else {
                preconditionFailure("what we write we can read")
            }
            precondition(again.id == event.id && again.content == event.content)
            precondition(again.hasRightID == event.hasRightID && again.serialized() == text)
            precondition(!again.isLoose)
        }
    },
    "nostr-from-relay": { bytes in
        guard let message = try? NostrMessage.FromRelay.parse(bytes) else { return }
        let text = message.serialized()
        guard text.count <= MarmotLimits.frameBytes else { return }
        guard let again = try? text.reveal({ try NostrMessage.FromRelay.parse($0) }) else {
            preconditionFailure("what we write we can read")
        }
        // A text that was cut inside a character is longer by a byte or two, and is cut again.
        if case .event = again { precondition(again.serialized() == text) }
    },
    "nostr-from-client": { bytes in
        guard let message = try? NostrMessage.FromClient.parse(bytes) else { return }
        let text = message.serialized()
        guard text.count <= MarmotLimits.frameBytes else { return }
        guard let again = try? text.reveal({ try NostrMessage.FromClient.parse($0) }) else {
            preconditionFailure("what we write we can read")
        }
        precondition(again.serialized() == text)
    },
    "nostr-relay-list": { bytes in
        let tags = String(decoding: bytes, as: UTF8.self).split(
            separator: "\n", omittingEmptySubsequences: false
        )
        .prefix(64).map { ["relay", String($0)] }
        let event = NostrEvent.signed(
            kind: NostrKind.relayList, createdAt: 1, tags: tags, content: Secret([]), by: server,
            auxiliary: zeros)
        guard let list = try? RelayList(event) else { preconditionFailure("signed, and of the right kind") }
        precondition(Set(list.relays).count == list.relays.count)
    },
    "marmot-trigger": { bytes in
        guard let first = bytes.first else { return }
        let content = Secret(copying: UnsafeRawBufferPointer(rebasing: bytes.dropFirst()))
        let format = TokenFormat.allCases[Int(first) % TokenFormat.allCases.count]
        let event = NostrEvent.rumor(
            kind: NostrKind.trigger, createdAt: 1, tags: format.triggerTags, content: content,
            author: server.publicKey)
        guard let trigger = try? TriggerContent(reading: event) else { return }
        precondition(trigger.count <= trigger.format.mostTokens)
        for chunk in trigger.chunks { _ = try? TokenBox.decrypt(chunk, trigger.format, with: server) }
        // Hex has two cases and a list may hold anything; a blob has one spelling.
        let spaces = Set(" \t\n\r\u{C}".utf8)
        let isPlain = content.reveal { !$0.contains { spaces.contains($0) } }
        if trigger.format == .pushV1 || trigger.format != .seed && isPlain {
            precondition(trigger.serialized() == content)
        }
    },
    "nip44": { bytes in
        _ = try? NIP44.decrypt(Secret(copying: bytes), key: conversation)
        guard let payload = authentic(padded: bytes),
            let plain = try? NIP44.decrypt(payload, key: conversation)
        else { return }
        precondition(plain.count > 0 && plain.count <= bytes.count)
    },
    // A padded text of up to 140,000 bytes: four bytes say how long, the rest is its beginning, zeros follow.
    "nip44-padding": { bytes in
        guard bytes.count > 4 else { return }
        let size = bytes[..<4].reduce(0) { $0 << 8 | Int($1) } % 140_000
        let rest = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(4))
        let padded = Secret(count: max(34, size, rest.count)) { $0.copyMemory(from: rest) }
        guard let plain = try? NIP44.unpadded(padded) else { return }
        precondition(plain.count > 0 && plain.count < padded.count)
        let prefix = plain.count > MarmotLimits.shortPlaintextBytes ? 6 : 2
        precondition(padded.count == prefix + NIP44.paddedCount(plain.count))
    },
    "nostr-filter": { bytes in
        var reader = JSONReader(bytes)
        guard let filter = try? NostrFilter.parse(&reader) else { return }
        var writer = JSONWriter()
        filter.write(to: &writer)
        let text = writer.bytes
        text.withUnsafeBytes { raw in
            var reader = JSONReader(raw)
            guard let again = try? NostrFilter.parse(&reader) else {
                preconditionFailure("what we write we can read")
            }
            precondition(again == filter)
        }
        _ = filter.matches(proof)
    },
    "nostr-relay-information": { bytes in
        guard let told = try? RelayInformation(reading: Secret(copying: bytes)) else { return }
        for limit in [told.maxMessageBytes, told.maxContentCharacters, told.minPowDifficulty] {
            precondition(limit ?? 1 > 0)
        }
        precondition(told.createdAtLowerLimit ?? .seconds(1) > .zero)
    },
    // Eight bytes of time, then the values of two tags, a line each.
    "nostr-auth": { bytes in
        guard bytes.count >= 8 else { return }
        let at = bytes[..<8].reduce(UInt64(0)) { $0 << 8 | UInt64($1) } & UInt64(Int64.max)
        let lines = String(decoding: bytes.dropFirst(8), as: UTF8.self).split(
            separator: "\n", maxSplits: 1, omittingEmptySubsequences: false)
        let event = AuthEvent.make(
            relay: lines.first.map(String.init) ?? "", challenge: lines.count > 1 ? String(lines[1]) : "",
            at: Int64(at), by: server, auxiliary: zeros)
        guard
            let key = try? AuthEvent.check(
                event, relay: "wss://relay.example.org", challenge: "challenge", now: 1_767_225_600)
        else { return }
        precondition(key == server.publicKey && event.tag("challenge") == "challenge")
    },
    "marmot-token-box": { bytes in
        guard let first = bytes.first else { return }
        let rest = Secret(copying: UnsafeRawBufferPointer(rebasing: bytes.dropFirst()))
        let format = TokenFormat.allCases[Int(first) % TokenFormat.allCases.count]
        _ = try? TokenBox.decrypt(rest, format, with: server)
        guard let box = box(rest, format), let target = try? TokenBox.decrypt(box, format, with: server)
        else {
            return
        }
        precondition((1...MarmotLimits.deviceTokenBytes).contains(target.token.count))
    },
    "marmot-gift-wrap": { bytes in
        guard let inner = try? NIP44.encrypt(Secret(copying: bytes), key: conversation, nonce: zeros) else {
            return
        }
        for kind in [NostrKind.seal, NostrKind.giftWrap] {
            let layer = NostrEvent.signed(
                kind: kind, createdAt: 1, tags: [["p", server.publicKey.hex]], content: inner, by: sender,
                auxiliary: zeros)
            let wrapped =
                kind == NostrKind.giftWrap
                ? layer
                : try? GiftWrap.wrap(
                    layer, by: sender, to: server.publicKey,
                    GiftWrap.Layer(createdAt: 1, nonce: zeros, auxiliary: zeros))
            guard let wrapped, let opened = try? GiftWrap.unwrap(wrapped, with: server) else { continue }
            precondition(opened.event.kind == NostrKind.trigger && opened.event.hasRightID)
            precondition(opened.path == .direct || opened.event.pubkey == sender.publicKey)
            _ = try? TriggerContent(reading: opened.event)
        }
    },
    "x-only-key": { bytes in
        guard let key = XOnlyKey(bytes) else { return }
        precondition(XOnlyKey(hex: key.hex) == key && server.sharedX(with: key).count == 32)
    }
]

private let server = pair(3)
private let proof = AuthEvent.make(
    relay: "wss://relay.example.org", challenge: "challenge", at: 1_767_225_600, by: server, auxiliary: zeros)
private let sender = pair(4)
private let conversation = NIP44.conversationKey(sender, server.publicKey)
private let zeros = [UInt8](repeating: 0, count: 32)

private func pair(_ byte: UInt8) -> Secp256k1KeyPair {
    do { return try Secp256k1KeyPair(secret: Secret([UInt8](repeating: byte, count: 32))) } catch {
        preconditionFailure("a small number is a scalar")
    }
}

/// A payload whose authenticator fits whatever the padded text is.
private func authentic(padded: UnsafeRawBufferPointer) -> Secret? {
    let keys = NIP44.messageKeys(conversation, zeros)
    let (cipher, nonce, code) = keys.reveal { raw in
        (Secret(raw[0..<32]), Array(raw[32..<44]), Secret(raw[44..<76]))
    }
    guard let body = try? ChaCha20.apply(Secret(copying: padded), key: cipher, nonce: nonce) else {
        return nil
    }
    let signed = zeros + body.reveal { Array($0) }
    let authenticator = signed.withUnsafeBytes { HMAC256.code(key: code, $0) }
    return Secret(Base64.encode([2] + signed + authenticator.reveal { Array($0) }))
}

/// A token box of that content, padded with zeros or cut to the format's size.
private func box(_ content: Secret, _ format: TokenFormat) -> Secret? {
    let plain = content.reveal { raw in
        guard let size = format.plaintextBytes else { return Array(raw) }
        return Array(raw.prefix(size)) + [UInt8](repeating: 0, count: max(0, size - raw.count))
    }
    let key = TokenBox.key(format, sender.sharedX(with: server.publicKey))
    let nonce = [UInt8](repeating: 0, count: TokenBox.nonceBytes)
    guard let sealed = try? ChaCha20Poly1305.seal(Secret(plain), key: key, nonce: nonce) else { return nil }
    return Secret(sender.publicKey.bytes + nonce + sealed.reveal { Array($0) })
}
