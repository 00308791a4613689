public import PushModel
import WireFormats

/// One HTTP request that a device or an origin makes. A value: anyone who has a network sends it.
public struct NextcloudCall: Sendable {
    /// `GET`, `POST` or `DELETE`.
    public let method: String
    /// Absolute, with `https://` and the peer's host.
    public let url: String
    /// `Authorization` among them, where the peer asks for it; as text.
    public let headers: [(name: String, value: Secret)]
    /// Bytes to send, at most 16 MiB; empty: none.
    public let body: Secret

    static let formType = "application/x-www-form-urlencoded"

    /// The body of a form (§4.6).
    static func form(_ fields: [(name: String, value: Secret)]) -> Secret {
        let plain = fields.map { ($0.name, $0.value.reveal { Array($0) }) }
        var encoded = Form(plain).encoded()
        defer { encoded.withUnsafeMutableBytes { wipe($0) } }
        return Secret(encoded)
    }
}

/// How one of the proxy's or the server's answers came back: `nil` for no answer at all, a timeout too.
public struct NextcloudAnswer: Sendable {
    /// 100 to 599.
    public let status: Int?
    /// The value of `Retry-After`, if there was one.
    public let retryAfter: String?
    /// What was read of it: 4 MiB at most.
    public let body: Secret

    /// - Parameter status: `nil` where nobody answered.
    /// - Parameter body: bytes; longer ones than 4 MiB say nothing.
    public init(status: Int?, retryAfter: String? = nil, body: Secret = Secret([])) {
        self.status = status
        self.retryAfter = retryAfter
        self.body = body
    }

    /// Nothing came back.
    public static let none = NextcloudAnswer(status: nil)

    /// Whether the same request may be answered otherwise later.
    public var mayPass: Bool {
        guard let status else { return true }
        return status == 408 || status == 425 || status == 429 || status >= 500
    }

    /// The pause that the peer asks for, a day at most.
    public func pause(now: UnixTime) -> Duration? { retryAfter.flatMap { RetryAfter.parse($0, now: now) } }
}

/// Paths behind a server's URL.
enum NextcloudPaths {
    static let capabilities = "/ocs/v2.php/cloud/capabilities"
    static let push = "/ocs/v2.php/apps/notifications/api/v2/push"
    static let notifications = "/ocs/v2.php/apps/notifications/api/v2/notifications"
    static let selfTest = "/ocs/v2.php/apps/notifications/api/v3/test/self"
}

/// The wait before another try: 1 s, doubled with each failure up to 5 minutes, a random half of it taken
/// off, and never less than the peer asks for.
enum NextcloudBackoff {
    /// More of them make no pause longer.
    static let countedFailures = 16

    /// The number of failures that a kept cell has; `nil` for one that was never counted.
    static func failures(_ text: String) -> Int? {
        Int(text).flatMap { (0...countedFailures + 1).contains($0) && String($0) == text ? $0 : nil }
    }

    /// - Parameter isLong: what has failed is unlikely to pass soon.
    static func pause(
        failures: Int, asked: Duration?, isLong: Bool = false,
        using generator: inout some RandomNumberGenerator
    ) -> Duration {
        let doublings = min(max(failures - 1, 0), countedFailures)
        let (least, most) =
            isLong
            ? (NextcloudLimits.backoffMost, NextcloudLimits.registrationRepeat)
            : (NextcloudLimits.backoffLeast, NextcloudLimits.backoffMost)
        let whole = min(most.wholeMilliseconds, least.wholeMilliseconds << Int64(doublings))
        let jitter = Int64.random(in: 0...whole / 2, using: &generator)
        return max(.milliseconds(whole - jitter), asked ?? .zero)
    }
}
