import WireFormats

/// The bytes of HTTP/1.1 requests as a Zulip server sends them to its bouncer (docs/conformance/zulip.md).
enum ZulipRequests {
    static let notifyPath = "/api/v1/remotes/push/e2ee/notify"
    static let registerPath = "/api/v1/remotes/push/e2ee/register"

    /// - Parameter authorization: the value of the field; `nil`: none.
    static func head(
        path: String, host: String, authorization: String?, contentType: String, bodyBytes: Int
    ) -> [UInt8] {
        var text = "POST \(path) HTTP/1.1\r\nHost: \(host)\r\nUser-agent: ZulipServer/12.0\r\n"
        if let authorization { text += "Authorization: \(authorization)\r\n" }
        text += "Content-type: \(contentType)\r\nContent-length: \(bodyBytes)\r\n\r\n"
        return Array(text.utf8)
    }

    static func form(
        path: String, host: String, authorization: String?, fields: [(name: String, value: String)]
    ) -> (head: [UInt8], body: [UInt8]) {
        let body = Form(fields.map { ($0.name, Array($0.value.utf8)) }).encoded()
        let type = "application/x-www-form-urlencoded"
        return (
            head(
                path: path, host: host, authorization: authorization, contentType: type, bodyBytes: body.count
            ), body
        )
    }

    static func json(
        path: String, host: String, authorization: String, body: [UInt8]
    ) -> (head: [UInt8], body: [UInt8]) {
        let head = head(
            path: path, host: host, authorization: authorization, contentType: "application/json",
            bodyBytes: body.count)
        return (head, body)
    }
}
