import Primitives
import PushModel
import WireFormats

/// The text around `enc_payload` in the payload for a push service (§8.3).
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

/// Seals one message for the devices of its account (§8.1, §8.2).
///
/// The plaintext is a bencoded list: a description of the message, and the message itself if the device wants
/// it and it is short enough. It is written once for consecutive devices that get the same content; each
/// device has its own key and nonce. Writing, sealing and base64 all happen in memory that no array or string
/// shares.
struct PushSealing: ~Copyable {
    private let style: SessionPolicy.MetadataStyle
    /// Where the plaintext is written.
    private let room: UnsafeMutableRawBufferPointer
    /// What stands in it.
    private var plain: (part: Part, count: Int)?
    /// The most bytes of it that have been written.
    private var written = 0

    /// How the message itself is described.
    private enum Part {
        case whole
        /// Its length, and that it is too long.
        case tooLong
        case unwanted
    }

    private init(_ style: SessionPolicy.MetadataStyle, _ room: UnsafeMutableRawBufferPointer) {
        (self.style, self.room) = (style, room)
    }

    /// Lends a value that seals one message, with memory for the plaintext that is wiped afterwards.
    static func lend(
        _ style: SessionPolicy.MetadataStyle, for notice: StorageNotice, _ body: (inout PushSealing) -> Void
    ) {
        let data = min(notice.dataCount, SessionLimits.pushMessageBytes)
        let most = metadataBytes + data + SessionLimits.paddingBytes
        withUnsafeTemporaryAllocation(byteCount: most, alignment: 16) { room in
            var sealing = PushSealing(style, room)
            body(&sealing)
            wipe(UnsafeMutableRawBufferPointer(rebasing: room[..<sealing.written]))
        }
    }

    /// Seals, and puts the base64 of nonce ‖ ciphertext ‖ tag into an envelope.
    ///
    /// - Parameters:
    ///   - push: the same for each device.
    ///   - most: a longer message is left out; at most ``SessionLimits/pushMessageBytes``.
    ///   - key: the device's, 32 bytes. A nonce is drawn from the world.
    mutating func payload(
        _ notice: StorageNotice, wantsData: Bool, most: Int = SessionLimits.pushMessageBytes,
        key: UnsafeRawBufferPointer, _ world: World, in envelope: Envelope
    ) -> Secret {
        let length = wantsData ? notice.dataCount : 0
        let plain = plain(notice, length == 0 ? .unwanted : length <= most ? .whole : .tooLong)
        let sealed = XChaCha20Poly1305.nonceBytes + plain.count + XChaCha20Poly1305.overheadBytes
        let text = envelope.before.count..<envelope.before.count + Base64.encodedCount(sealed)
        return Secret(count: text.upperBound + envelope.after.count) { out in
            out.copyBytes(from: envelope.before)
            // Sealed at the end of the text's own memory, and encoded from there.
            let room = UnsafeMutableRawBufferPointer(rebasing: out[text])
            Self.seal(
                plain, key: key, nonce: (world.random(), world.random(), world.random()),
                into: UnsafeMutableRawBufferPointer(rebasing: room[(room.count - sealed)...]))
            Base64.spell(last: sealed, in: room)
            UnsafeMutableRawBufferPointer(rebasing: out[text.upperBound...]).copyBytes(from: envelope.after)
        }
    }

    private static func seal(
        _ plain: UnsafeRawBufferPointer, key: UnsafeRawBufferPointer, nonce: (UInt64, UInt64, UInt64),
        into out: UnsafeMutableRawBufferPointer
    ) {
        let start = XChaCha20Poly1305.nonceBytes
        withUnsafeBytes(of: nonce) { out.copyMemory(from: $0) }
        XChaCha20Poly1305.seal(
            plain, with: UnsafeRawBufferPointer(start: nil, count: 0), key: key,
            nonce: UnsafeRawBufferPointer(rebasing: out[..<start]),
            into: UnsafeMutableRawBufferPointer(rebasing: out[start...]))
    }

    // MARK: The plaintext

    private mutating func plain(_ notice: StorageNotice, _ part: Part) -> UnsafeRawBufferPointer {
        if plain?.part != part {
            let count =
                switch part {
                case .whole: write(notice, withData: true, notice.dataCount)
                case .tooLong: write(notice, withData: false, notice.dataCount)
                case .unwanted: write(notice, withData: false, nil)
                }
            plain = (part, count)
            written = max(written, count)
        }
        return UnsafeRawBufferPointer(rebasing: room[..<(plain?.count ?? 0)])
    }

    /// The most bytes that the description of a message takes: both ids, five numbers and the text around
    /// them.
    private static let metadataBytes =
        2 * SessionLimits.accountBytes + SessionLimits.hashBytes.upperBound + 200

    /// - Parameters:
    ///   - withData: whether the message is included.
    ///   - length: of the message, if the device wanted it.
    /// - Returns: bytes written, padded.
    private func write(_ notice: StorageNotice, withData: Bool, _ length: Int?) -> Int {
        var writer = PlainWriter(room)
        writer.text("l")
        if !withData, style == .deployed {
            Self.writeDictionary(notice, length, to: &writer)
        } else {
            Self.writeJSON(notice, length, isTooLong: length != nil && !withData, to: &writer)
        }
        if withData {
            writer.digits(UInt64(notice.dataCount))
            writer.text(":")
            notice.data?.reveal { writer.bytes($0) }
        }
        writer.text("e")
        let padding = SessionLimits.paddingBytes
        let count = (writer.at + padding - 1) / padding * padding
        UnsafeMutableRawBufferPointer(rebasing: room[writer.at..<count])
            .initializeMemory(as: UInt8.self, repeating: 0)
        return count
    }

    /// A bencoded string whose content is JSON, with the spaces that deployed servers write.
    private static func writeJSON(
        _ notice: StorageNotice, _ length: Int?, isTooLong: Bool, to writer: inout PlainWriter
    ) {
        let place = writer.reserveDigits()
        writer.text(#"{"@": ""#)
        notice.account.bytes.reveal { writer.hex($0) }
        writer.text(##"", "#": ""##)
        notice.hash.reveal { writer.bytes($0) }
        writer.text(#"", "n": "#)
        writer.int(Int64(notice.namespace))
        writer.text(#", "t": "#)
        writer.int(notice.timestamp.milliseconds)
        writer.text(#", "z": "#)
        writer.int(notice.expiry.milliseconds)
        if let length {
            writer.text(#", "l": "#)
            writer.int(Int64(length))
        }
        if isTooLong { writer.text(#", "B": true"#) }
        writer.text("}")
        writer.fill(place)
    }

    /// The same as a bencoded dictionary. If it holds a length, no message follows it.
    private static func writeDictionary(
        _ notice: StorageNotice, _ length: Int?, to writer: inout PlainWriter
    ) {
        writer.text("d1:#")
        writer.digits(UInt64(notice.hash.count))
        writer.text(":")
        notice.hash.reveal { writer.bytes($0) }
        writer.text("1:@66:")
        notice.account.bytes.reveal { writer.hex($0) }
        if let length {
            writer.text("1:Bi1e")
            writer.member("1:li", Int64(length))
        }
        writer.member("1:ni", Int64(notice.namespace))
        writer.member("1:ti", notice.timestamp.milliseconds)
        writer.member("1:zi", notice.expiry.milliseconds)
        writer.text("e")
    }
}

/// Writes into memory that is large enough.
private struct PlainWriter {
    private let start: UnsafeMutableRawPointer
    private let room: Int
    /// Bytes written so far.
    private(set) var at = 0

    init(_ out: UnsafeMutableRawBufferPointer) {
        guard let start = out.baseAddress else { preconditionFailure("memory that is large enough") }
        (self.start, room) = (start, out.count)
    }

    /// Inlined, so that the length is known and a few moves take the place of a call.
    @inline(__always)
    mutating func text(_ text: StaticString) {
        let count = text.utf8CodeUnitCount
        assert(count <= room - at, "memory that is large enough")
        start.advanced(by: at).copyMemory(from: text.utf8Start, byteCount: count)
        at += count
    }

    mutating func bytes(_ bytes: UnsafeRawBufferPointer) {
        rest.copyMemory(from: bytes)
        at += bytes.count
    }

    private var rest: UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(start: start.advanced(by: at), count: room - at)
    }

    mutating func hex(_ bytes: UnsafeRawBufferPointer) {
        Hex.write(bytes, into: rest)
        at += 2 * bytes.count
    }

    mutating func int(_ value: Int64) {
        if value < 0 { text("-") }
        digits(value.magnitude)
    }

    mutating func digits(_ value: UInt64) {
        // Written from the last digit, two at a time, into room for the longest number: each division waits
        // for the one before, and a message has two times of thirteen digits.
        withUnsafeTemporaryAllocation(byteCount: 20, alignment: 1) { room in
            var (rest, first) = (value, 20)
            while rest >= 10 {
                let (tens, units) = (rest % 100 / 10, rest % 10)
                first -= 2
                room[first] = 0x30 + UInt8(truncatingIfNeeded: tens)
                room[first + 1] = 0x30 + UInt8(truncatingIfNeeded: units)
                rest /= 100
            }
            if rest > 0 || first == 20 {
                first -= 1
                room[first] = 0x30 + UInt8(truncatingIfNeeded: rest)
            }
            bytes(UnsafeRawBufferPointer(rebasing: room[first...]))
        }
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

    /// Writes the length of everything written after that room.
    mutating func fill(_ place: Int) {
        let end = at
        precondition((100...999).contains(end - place - 4), "three digits")
        at = place
        digits(UInt64(end - place - 4))
        text(":")
        at = end
    }
}
