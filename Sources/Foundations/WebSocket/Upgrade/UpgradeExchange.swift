import Crypto
package import NIOCore
package import PushModel
import WireFormats

/// The client's opening handshake (RFC 6455 §4.1), without a socket: one request, one answer's head.
package struct UpgradeExchange {
    package enum Step: Equatable {
        case wait
        case open
        case refused(WebSocketError.Code, status: Int?)
    }

    let request: ByteBuffer
    private let accept: String
    private let limits: WebSocketLimits
    /// Where the search for the head's end goes on: each byte is looked at once.
    private var searched = 0

    package init(to address: WebSocketAddress, limits: WebSocketLimits, world: World) {
        let key = Base64.text(world.randomBytes(16))
        accept = Self.accept(for: key)
        self.limits = limits
        request = ByteBuffer(
            string: "GET \(address.target) HTTP/1.1\r\nHost: \(address.authority)\r\nUpgrade: websocket\r\n"
                + "Connection: Upgrade\r\nSec-WebSocket-Key: \(key)\r\nSec-WebSocket-Version: 13\r\n\r\n")
    }

    /// Base64 of the SHA-1 of the key and the protocol's own identifier (RFC 6455 §4.2.2, step 5.4).
    static func accept(for key: String) -> String {
        let text = key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        return Base64.text(Array(Insecure.SHA1.hash(data: Array(text.utf8))))
    }

    /// Looks for a whole head at the front of `input` and takes it off.
    package mutating func take(_ input: inout ByteBuffer) -> Step {
        let bytes = input.readableBytesView
        var at = bytes.startIndex + searched
        while at + 3 < bytes.endIndex, at - bytes.startIndex + 4 <= limits.headBytes {
            if bytes[at] == 13, bytes[at + 1] == 10, bytes[at + 2] == 13, bytes[at + 3] == 10 {
                let head = bytes[bytes.startIndex..<at]
                let step = judge(head)
                input.moveReaderIndex(forwardBy: at - bytes.startIndex + 4)
                return step
            }
            at += 1
        }
        searched = at - bytes.startIndex
        return searched + 4 > limits.headBytes ? .refused(.badUpgrade, status: nil) : .wait
    }

    private func judge(_ head: ByteBufferView) -> Step {
        let broken = Step.refused(.badUpgrade, status: nil)
        guard let answer = UpgradeAnswer(head) else { return broken }
        guard answer.status == 101 else { return .refused(.upgradeRefused, status: answer.status) }
        guard answer["upgrade"].map({ $0.lowercased() }) == ["websocket"],
            answer["connection"].contains(where: { value in
                value.split(separator: ",").contains { trimmed($0).lowercased() == "upgrade" }
            }),
            answer["sec-websocket-accept"] == [accept],
            // Neither was asked for, so neither may be granted.
            answer["sec-websocket-protocol"].isEmpty, answer["sec-websocket-extensions"].isEmpty
        else { return broken }
        return .open
    }
}

/// The status and the fields of an HTTP/1.1 answer.
private struct UpgradeAnswer {
    let status: Int
    private let fields: [(name: String, value: String)]

    /// `nil` for anything but a status line and fields of RFC 9112, without folded lines.
    init?(_ head: ByteBufferView) {
        guard head.allSatisfy({ $0 >= 0x20 || $0 == 9 || $0 == 13 || $0 == 10 }) else { return nil }
        let lines = String(decoding: head, as: UTF8.self).split(
            separator: "\r\n" as Character, omittingEmptySubsequences: false)
        guard let first = lines.first, first.utf8.starts(with: "HTTP/1.1 ".utf8) else { return nil }
        let rest = first.utf8.dropFirst(9)
        let digits = rest.prefix(3)
        guard digits.count == 3, digits.allSatisfy({ 0x30...0x39 ~= $0 }),
            rest.dropFirst(3).first.map({ $0 == 0x20 }) ?? true, let status = Int(Substring(digits))
        else { return nil }
        self.status = status
        var fields: [(String, String)] = []
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":"), colon != line.startIndex,
                !line.utf8.contains(13), !line.utf8.contains(10),
                line[..<colon].utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
            else { return nil }
            fields.append((line[..<colon].lowercased(), String(trimmed(line[line.index(after: colon)...]))))
        }
        self.fields = fields
    }

    subscript(name: String) -> [String] { fields.filter { $0.name == name }.map(\.value) }
}

private func trimmed(_ text: Substring) -> Substring {
    var text = text
    while text.first == " " || text.first == "\t" { text.removeFirst() }
    while text.last == " " || text.last == "\t" { text.removeLast() }
    return text
}
