import NIOCore
import PushModel
import SealbellKit

/// A request as it goes over a connection.
typealias RequestText = (head: [UInt8], body: [UInt8])

/// A request of HTTP/1.1 (RFC 9112 §3).
///
/// - Parameter headers: those of the caller; host and length are added.
func requestText(
    _ method: String, _ path: String, host: String, _ headers: [(name: String, value: Secret)], _ body: Secret
) -> RequestText {
    var head = Array("\(method) \(path) HTTP/1.1\r\nHost: \(host)\r\n".utf8)
    for (name, value) in headers {
        head += Array("\(name): ".utf8)
        value.reveal { head += $0 }
        head += Array("\r\n".utf8)
    }
    head += Array("Content-Length: \(body.count)\r\n\r\n".utf8)
    return (head, body.reveal { Array($0) })
}

/// What a device or an origin of the kit has to say, whatever server its URL names; a path alone names none.
func requestText(_ call: HTTPCall, host: String) -> RequestText {
    let parts = call.url.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
    let path = call.url.hasPrefix("/") ? call.url : "/" + (parts.count > 3 ? parts[3] : "")
    return requestText(call.method, path, host: host, call.headers, call.body)
}

extension ByteBuffer {
    /// Head and body.
    init(_ request: RequestText) {
        self.init(bytes: request.head)
        writeBytes(request.body)
    }
}
