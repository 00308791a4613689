package import NIOCore
import PushModel

/// An answer as the driver sees it.
package struct HTTPReply: Sendable {
    package var status: Int
    package var body: ByteBuffer
    /// Whether the peer ends the connection behind it.
    package var closes: Bool
}

/// Finds answers in the bytes of one connection: status line, `content-length`, body (RFC 9112 §6). The
/// driver asks nothing that would be answered in chunks.
struct HTTPReplyParser {
    /// A relay's answer to 1,000 items that all are dead takes some 20 KB.
    private static let limitBytes = 1 << 20

    /// Takes the next whole answer from `buffer`; `nil` when it is not there yet.
    ///
    /// - Throws: `.malformedAnswer`.
    static func next(_ buffer: inout ByteBuffer) throws(BenchError) -> HTTPReply? {
        let head = buffer.withUnsafeReadableBytes { bytes in
            Result { () throws(BenchError) in try parse(bytes) }
        }
        guard let head = try head.get() else { return nil }
        guard buffer.readableBytes >= head.headBytes + head.bodyBytes else { return nil }
        buffer.moveReaderIndex(forwardBy: head.headBytes)
        guard let body = buffer.readSlice(length: head.bodyBytes) else { throw BenchError(.malformedAnswer) }
        return HTTPReply(status: head.status, body: body, closes: head.closes)
    }

    private struct Head {
        var status: Int
        var headBytes: Int
        var bodyBytes: Int
        var closes: Bool
    }

    private static func parse(_ bytes: UnsafeRawBufferPointer) throws(BenchError) -> Head? {
        var head = Head(status: 0, headBytes: 0, bodyBytes: -1, closes: false)
        var start = 0
        while true {
            guard let end = lineEnd(bytes, from: start) else {
                guard bytes.count < limitBytes else { throw BenchError(.malformedAnswer) }
                return nil
            }
            if end == start {
                head.headBytes = end + 2
                break
            }
            let line = UnsafeRawBufferPointer(rebasing: bytes[start..<end])
            if start == 0 {
                guard line.count >= 12, hasPrefix(line, "http/1.1 ") else {
                    throw BenchError(.malformedAnswer)
                }
                head.status = number(line[9..<12])
            } else if hasPrefix(line, "content-length:") {
                head.bodyBytes = number(line[15...])
            } else if hasPrefix(line, "connection: close") {
                head.closes = true
            }
            start = end + 2
        }
        if head.status == 204 || head.status == 304 { head.bodyBytes = 0 }
        guard head.status >= 200, (0...limitBytes).contains(head.bodyBytes) else {
            throw BenchError(.malformedAnswer)
        }
        return head
    }

    private static func lineEnd(_ bytes: UnsafeRawBufferPointer, from start: Int) -> Int? {
        var index = start
        while index + 1 < bytes.count {
            if bytes[index] == 0x0D, bytes[index + 1] == 0x0A { return index }
            index += 1
        }
        return nil
    }

    /// Compares letters without case; `prefix` is in small letters.
    private static func hasPrefix(_ line: UnsafeRawBufferPointer, _ prefix: StaticString) -> Bool {
        guard line.count >= prefix.utf8CodeUnitCount else { return false }
        for index in 0..<prefix.utf8CodeUnitCount {
            let byte = line[index]
            let small = (0x41...0x5A).contains(byte) ? byte | 0x20 : byte
            if small != prefix.utf8Start[index] { return false }
        }
        return true
    }

    /// Digits, spaces before them left out; -1 when there is something else.
    private static func number(_ bytes: Slice<UnsafeRawBufferPointer>) -> Int {
        var value = -1
        for byte in bytes {
            if byte == 0x20, value < 0 { continue }
            guard (0x30...0x39).contains(byte), value < 1 << 40 else { return -1 }
            value = max(0, value) * 10 + Int(byte & 15)
        }
        return value
    }
}
