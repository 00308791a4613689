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
    /// Appends a whole answer: head and body in one buffer, hence one write.
    ///
    /// There is no `Server` field: what runs here is nobody's business.
    mutating func writeAnswer(_ answer: HTTPOutbound, _ frame: AnswerFrame, date: [UInt8]) {
        let bodiless = answer.status == 204 || answer.status == 304
        writeStaticString("HTTP/1.1 ")
        writeDecimal(answer.status)
        writeInteger(UInt8(ascii: " "))
        writeString(HTTPResponseStatus(statusCode: answer.status).reasonPhrase)
        writeStaticString("\r\ndate: ")
        writeBytes(date)
        if !bodiless {
            writeStaticString("\r\ncontent-length: ")
            writeDecimal(answer.body.count)
            if answer.type != .none {
                writeStaticString("\r\ncontent-type: ")
                writeStaticString(answer.type.field)
            }
        }
        for header in answer.headers {
            writeStaticString("\r\n")
            writeStaticString(header.name)
            writeStaticString(": ")
            // A line break in a value would begin a field of somebody else's making.
            writeBytes(header.value.utf8.lazy.filter { $0 >= 0x20 && $0 != 0x7F })
        }
        if frame.closes {
            writeStaticString("\r\nconnection: close")
        } else if frame.isVersion10 {
            writeStaticString("\r\nconnection: keep-alive")
        }
        writeStaticString("\r\n\r\n")
        if !bodiless, !frame.isHeadOnly { writeBytes(answer.body) }
    }

    private mutating func writeDecimal(_ number: Int) {
        if number >= 10 { writeDecimal(number / 10) }
        writeInteger(UInt8(truncatingIfNeeded: 0x30 + number % 10))
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
