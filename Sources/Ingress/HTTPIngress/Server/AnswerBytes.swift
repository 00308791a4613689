import NIOCore
import NIOHTTP1
import PushModel

/// How an answer is framed for its request.
struct AnswerFrame {
    /// HTTP/1.0 must be told when the connection stays open; HTTP/1.1 when it does not.
    var isVersion10 = false
    /// HEAD: the head alone, with the length that the body would have (RFC 9110 §9.3.2).
    var isHeadOnly = false
    var closes = false
}

/// `HTTP/1.1 100 Continue`, when a client waits for it before it sends its body (RFC 9110 §10.1.1).
let continueBytes: StaticString = "HTTP/1.1 100 Continue\r\n\r\n"

extension ByteBuffer {
    /// Appends a whole answer: head and body in one buffer, hence one write, and room for them once.
    ///
    /// There is no `Server` field, so that the answer does not show what runs here.
    mutating func writeAnswer(_ answer: HTTPOutbound, _ frame: AnswerFrame, date: [UInt8]) {
        let bodiless = answer.status == 204 || answer.status == 304
        let reason = HTTPResponseStatus(statusCode: answer.status).reasonPhrase
        let room = Self.mostBytes(of: answer, reason, date)
        writeWithUnsafeMutableBytes(minimumWritableBytes: room) { room in
            var out = AnswerCursor(room)
            out.put("HTTP/1.1 ")
            out.put(decimal: answer.status)
            out.put(UInt8(ascii: " "))
            out.put(text: reason)
            out.put("\r\ndate: ")
            out.put(bytes: date)
            if !bodiless {
                out.put("\r\ncontent-length: ")
                out.put(decimal: answer.body.count)
                if answer.type != .none {
                    out.put("\r\ncontent-type: ")
                    out.put(answer.type.field)
                }
            }
            for header in answer.headers {
                out.put("\r\n")
                out.put(header.name)
                out.put(": ")
                out.put(value: header.value)
            }
            if frame.closes {
                out.put("\r\nconnection: close")
            } else if frame.isVersion10 {
                out.put("\r\nconnection: keep-alive")
            }
            out.put("\r\n\r\n")
            if !bodiless, !frame.isHeadOnly { out.put(bytes: answer.body) }
            return out.count
        }
    }

    /// The fixed words and two numbers of any size are less than 128 bytes.
    private static func mostBytes(of answer: HTTPOutbound, _ reason: String, _ date: [UInt8]) -> Int {
        var count = 128 + reason.utf8.count + date.count + answer.body.count
        count += answer.type.field.withUTF8Buffer(\.count)
        for header in answer.headers {
            count += 4 + header.name.withUTF8Buffer(\.count) + header.value.utf8.count
        }
        return count
    }
}

/// Writes an answer into room that was computed for it. Bytes beyond it are left out.
private struct AnswerCursor {
    private let room: UnsafeMutableRawBufferPointer
    private(set) var count = 0

    init(_ room: UnsafeMutableRawBufferPointer) { self.room = room }

    mutating func put(_ byte: UInt8) {
        guard count < room.count else { return }
        room[count] = byte
        count += 1
    }

    mutating func put(bytes: UnsafeRawBufferPointer) {
        guard bytes.count <= room.count - count else { return }
        UnsafeMutableRawBufferPointer(rebasing: room[count...]).copyMemory(from: bytes)
        count += bytes.count
    }

    mutating func put(bytes: [UInt8]) { bytes.withUnsafeBytes { put(bytes: $0) } }

    mutating func put(_ word: StaticString) { word.withUTF8Buffer { put(bytes: UnsafeRawBufferPointer($0)) } }

    mutating func put(text: String) {
        var text = text
        text.withUTF8 { put(bytes: UnsafeRawBufferPointer($0)) }
    }

    /// A line break in a value would let a peer add a field.
    mutating func put(value: String) {
        var value = value
        value.withUTF8 { bytes in
            for byte in bytes where byte >= 0x20 && byte != 0x7F { put(byte) }
        }
    }

    mutating func put(decimal number: Int) {
        if number >= 10 { put(decimal: number / 10) }
        put(UInt8(truncatingIfNeeded: 0x30 + number % 10))
    }
}

/// The `Date` field's value (RFC 9110 §5.6.7), made anew once a second.
struct DateLine {
    private var second: Int64 = .min
    private var bytes: [UInt8] = []

    /// Twenty-nine bytes: `Sun, 06 Nov 1994 08:49:37 GMT`.
    mutating func bytes(at time: UnixTime) -> [UInt8] {
        if time.seconds != second {
            second = time.seconds
            bytes = Array(Self.text(second).utf8)
        }
        return bytes
    }

    /// Days to the civil calendar, counted in eras of 400 years that begin on 1 March.
    static func text(_ second: Int64) -> String {
        let days = second >= 0 ? second / 86400 : (second - 86399) / 86400
        let clock = second - days * 86400
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        let weekday = Int(((days + 4) % 7 + 7) % 7)
        return "\(weekdays[weekday]), \(two(day)) \(months[Int(month) - 1]) \(year) "
            + "\(two(clock / 3600)):\(two(clock / 60 % 60)):\(two(clock % 60)) GMT"
    }

    private static func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : String(number) }
    private static let weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"
    ]
}
