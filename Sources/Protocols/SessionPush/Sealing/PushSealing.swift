import Primitives
import PushModel
import WireFormats

/// What stands around `enc_payload` in what is handed to a push service (§8.3).
struct Envelope {
    let before: [UInt8]
    let after: [UInt8]

    /// - Parameter aps: the `aps` object as JSON.
    static func apple(_ aps: [UInt8]) -> Envelope {
        Envelope(
            before: Array(#"{"aps":"#.utf8) + aps + Array(#","spns":1,"enc_payload":""#.utf8),
            after: Array(#""}"#.utf8))
    }

    static let google = Envelope(
        before: Array(#"{"enc_payload":""#.utf8), after: Array(#"","spns":"1"}"#.utf8))
}

/// Seals one message for one device (§8.1, §8.2).
///
/// The plaintext is a bencoded list: what describes the message, and the message itself where the device
/// wants it and it is short enough. All of it is written, sealed and spelled in memory that no array or
/// string shares.
struct PushSealing {
    private let push: StoragePush
    private let data: Secret?
    /// Of the message, where the device wants it.
    private let length: Int?
    private let style: SessionPolicy.MetadataStyle

    /// - Parameter most: a longer message does not go along.
    init(
        _ push: StoragePush, wantsData: Bool, _ style: SessionPolicy.MetadataStyle,
        most: Int = SessionLimits.pushMessageBytes
    ) {
        self.push = push
        self.style = style
        let wanted = wantsData ? push.data.flatMap { $0.count > 0 ? $0 : nil } : nil
        length = wanted?.count
        data = wanted.flatMap { $0.count <= most ? $0 : nil }
    }

    private var isTooLong: Bool { length != nil && data == nil }

    /// Seals, and puts the base64 of it into an envelope.
    ///
    /// - Parameter key: the device's, 32 bytes. A nonce is drawn from the world.
    func payload(key: UnsafeRawBufferPointer, _ world: World, in envelope: Envelope) -> Secret {
        withSealed(key: key, nonce: (world.random(), world.random(), world.random())) { sealed in
            let text = envelope.before.count..<envelope.before.count + Base64.encodedCount(sealed.count)
            return Secret(count: text.upperBound + envelope.after.count) { out in
                out.copyBytes(from: envelope.before)
                Base64.encode(sealed, into: UnsafeMutableRawBufferPointer(rebasing: out[text]))
                UnsafeMutableRawBufferPointer(rebasing: out[text.upperBound...])
                    .copyBytes(from: envelope.after)
            }
        }
    }

    /// Nonce ‖ ciphertext ‖ tag, lent and then wiped.
    func withSealed<Result>(
        key: UnsafeRawBufferPointer, nonce: (UInt64, UInt64, UInt64),
        _ body: (UnsafeRawBufferPointer) -> Result
    ) -> Result {
        let start = XChaCha20Poly1305.nonceBytes
        return withUnsafeTemporaryAllocation(byteCount: start + room, alignment: 16) { memory in
            defer { wipe(memory) }
            withUnsafeBytes(of: nonce) { memory.copyMemory(from: $0) }
            var writer = PlainWriter(UnsafeMutableRawBufferPointer(rebasing: memory[start...]))
            write(to: &writer)
            let plain = start..<start + writer.padded(to: SessionLimits.paddingBytes)
            let sealed = plain.lowerBound..<plain.upperBound + XChaCha20Poly1305.overheadBytes
            XChaCha20Poly1305.seal(
                UnsafeRawBufferPointer(rebasing: memory[plain]),
                with: UnsafeRawBufferPointer(start: nil, count: 0), key: key,
                nonce: UnsafeRawBufferPointer(rebasing: memory[..<start]),
                into: UnsafeMutableRawBufferPointer(rebasing: memory[sealed]))
            return body(UnsafeRawBufferPointer(rebasing: memory[..<sealed.upperBound]))
        }
    }

    /// What describes a message takes at most so many bytes: both ids, five numbers and the words around.
    private static let metadataBytes =
        2 * SessionLimits.accountBytes + SessionLimits.hashBytes.upperBound + 200

    private var room: Int {
        Self.metadataBytes + (data?.count ?? 0) + SessionLimits.paddingBytes
            + XChaCha20Poly1305.overheadBytes
    }

    private func write(to writer: inout PlainWriter) {
        writer.text("l")
        if data == nil, style == .deployed {
            writeDictionary(to: &writer)
        } else {
            writeJSON(to: &writer)
        }
        if let data {
            writer.digits(UInt64(data.count))
            writer.text(":")
            data.reveal { writer.bytes($0) }
        }
        writer.text("e")
    }

    /// A bencoded string whose content is JSON, spaced as deployed servers space it.
    private func writeJSON(to writer: inout PlainWriter) {
        let length = writer.reserveDigits()
        writer.text(#"{"@": ""#)
        push.account.bytes.reveal { writer.hex($0) }
        writer.text(##"", "#": ""##)
        push.hash.reveal { writer.bytes($0) }
        writer.text(#"", "n": "#)
        writer.int(Int64(push.namespace))
        writer.text(#", "t": "#)
        writer.int(push.timestamp.milliseconds)
        writer.text(#", "z": "#)
        writer.int(push.expiry.milliseconds)
        if let length = self.length {
            writer.text(#", "l": "#)
            writer.int(Int64(length))
        }
        if isTooLong { writer.text(#", "B": true"#) }
        writer.text("}")
        writer.fill(length)
    }

    /// The same as a bencoded dictionary.
    private func writeDictionary(to writer: inout PlainWriter) {
        writer.text("d1:#")
        writer.digits(UInt64(push.hash.count))
        writer.text(":")
        push.hash.reveal { writer.bytes($0) }
        writer.text("1:@66:")
        push.account.bytes.reveal { writer.hex($0) }
        if isTooLong { writer.text("1:Bi1e") }
        if let length { writer.member("1:li", Int64(length)) }
        writer.member("1:ni", Int64(push.namespace))
        writer.member("1:ti", push.timestamp.milliseconds)
        writer.member("1:zi", push.expiry.milliseconds)
        writer.text("e")
    }
}

/// Writes into memory that is large enough.
private struct PlainWriter {
    private let out: UnsafeMutableRawBufferPointer
    private var at = 0

    init(_ out: UnsafeMutableRawBufferPointer) { self.out = out }

    mutating func text(_ text: StaticString) {
        bytes(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    mutating func bytes(_ bytes: UnsafeRawBufferPointer) {
        UnsafeMutableRawBufferPointer(rebasing: out[at...]).copyMemory(from: bytes)
        at += bytes.count
    }

    mutating func hex(_ bytes: UnsafeRawBufferPointer) {
        Hex.write(bytes, into: UnsafeMutableRawBufferPointer(rebasing: out[at...]))
        at += 2 * bytes.count
    }

    mutating func int(_ value: Int64) {
        if value < 0 { text("-") }
        digits(value.magnitude)
    }

    mutating func digits(_ value: UInt64) {
        if value >= 10 { digits(value / 10) }
        out[at] = 0x30 + UInt8(value % 10)
        at += 1
    }

    mutating func member(_ key: StaticString, _ value: Int64) {
        text(key)
        int(value)
        text("e")
    }

    /// Room for the length of what follows, and a colon: what describes a message has 100 to 999 bytes.
    mutating func reserveDigits() -> Int {
        defer { at += 4 }
        return at
    }

    /// Writes the length of all that was written behind the room.
    mutating func fill(_ place: Int) {
        let end = at
        precondition((100...999).contains(end - place - 4), "three digits")
        at = place
        digits(UInt64(end - place - 4))
        text(":")
        at = end
    }

    /// Appends zeros up to the next multiple. - Returns: how many bytes there are then.
    mutating func padded(to multiple: Int) -> Int {
        let end = (at + multiple - 1) / multiple * multiple
        for index in at..<end { out[index] = 0 }
        at = end
        return end
    }
}
