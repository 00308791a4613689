/// A frame of RFC 6455 §5.2 as it stands on the wire.
struct RawFrame: Sendable, Equatable {
    static let continuation: UInt8 = 0, text: UInt8 = 1, binary: UInt8 = 2, close: UInt8 = 8, ping: UInt8 = 9
    static let pong: UInt8 = 10

    var opcode: UInt8
    var payload: [UInt8]
    /// FIN and the reserved bits.
    var flags: UInt8 = 0x80
    var isMasked = false

    init(_ opcode: UInt8, _ payload: [UInt8] = [], flags: UInt8 = 0x80, isMasked: Bool = false) {
        (self.opcode, self.payload, self.flags, self.isMasked) = (opcode, payload, flags, isMasked)
    }

    init(_ opcode: UInt8, _ text: String, flags: UInt8 = 0x80) {
        self.init(opcode, Array(text.utf8), flags: flags)
    }

    static func close(_ code: UInt16, _ reason: [UInt8] = []) -> Self {
        Self(Self.close, [UInt8(code >> 8), UInt8(code & 255)] + reason)
    }

    /// The code of a Close frame.
    var code: UInt16? {
        opcode == Self.close && payload.count >= 2 ? UInt16(payload[0]) << 8 | UInt16(payload[1]) : nil
    }

    var masked: Self {
        var copy = self
        copy.isMasked = true
        return copy
    }

    var bytes: [UInt8] {
        var out = Self.head(opcode, flags, length: payload.count, isMasked: isMasked)
        guard isMasked else { return out + payload }
        let mask: [UInt8] = [0x12, 0x34, 0x56, 0x78]
        out += mask
        out += payload.enumerated().map { $1 ^ mask[$0 % 4] }
        return out
    }

    static func head(_ opcode: UInt8, _ flags: UInt8, length: Int, isMasked: Bool = false) -> [UInt8] {
        let bit: UInt8 = isMasked ? 0x80 : 0
        let first = flags | opcode
        if length < 126 { return [first, bit | UInt8(length)] }
        if length < 65_536 { return [first, bit | 126, UInt8(length >> 8), UInt8(length & 255)] }
        return [first, bit | 127] + (0..<8).map { UInt8(truncatingIfNeeded: length >> (56 - 8 * $0)) }
    }
}

extension Wire {
    func send(_ frame: RawFrame) { send(frame.bytes) }

    /// The next frame, unmasked; `nil` when the stream ends.
    func frame() async -> RawFrame? {
        guard let start = await take(2) else { return nil }
        var length = Int(start[1] & 0x7F)
        if length >= 126 {
            guard let more = await take(length == 126 ? 2 : 8) else { return nil }
            length = more.reduce(0) { $0 << 8 | Int($1) }
        }
        let isMasked = start[1] & 0x80 != 0
        guard let mask = isMasked ? await take(4) : [0, 0, 0, 0], let payload = await take(length) else {
            return nil
        }
        return RawFrame(
            start[0] & 0x0F, payload.enumerated().map { $1 ^ mask[$0 % 4] }, flags: start[0] & 0xF0,
            isMasked: isMasked)
    }
}
