public import PushModel

/// A request to send as it is: everything that belongs to it is in it.
///
/// Follow no redirect, and send no cookies. It prints as its method alone.
public struct HTTPCall: Sendable {
    /// `GET`, `POST`, `PUT` or `DELETE`.
    public let method: String
    /// Absolute, `https://` as a rule; `http://` only where the app gave such a server itself.
    public let url: String
    /// In this order; with `Authorization` and `Content-Type` where they belong to it. The values are visible
    /// ASCII characters.
    public let headers: [(name: String, value: Secret)]
    /// Bytes to send; empty: none.
    public let body: Secret
    /// An answer whose body has more bytes is ``CallAnswer/none``.
    public let answerLimitBytes: Int

    package init(
        method: String, url: String, headers: [(name: String, value: Secret)] = [], body: Secret = Secret([]),
        answerLimitBytes: Int
    ) {
        (self.method, self.url, self.headers, self.body) = (method, url, headers, body)
        self.answerLimitBytes = answerLimitBytes
    }
}

extension HTTPCall: CustomStringConvertible, CustomReflectable {
    /// The method alone.
    public var description: String { method }
    /// Without children.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
