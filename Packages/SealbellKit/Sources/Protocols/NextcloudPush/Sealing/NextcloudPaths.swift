import PushModel
import SealbellKit
import WireFormats

extension HTTPCall {
    static let formType = "application/x-www-form-urlencoded"

    /// The body of a form (§4.6).
    static func form(_ fields: [(name: String, value: Secret)]) -> Secret {
        let plain = fields.map { ($0.name, $0.value.reveal { Array($0) }) }
        var encoded = Form(plain).encoded()
        defer { encoded.withUnsafeMutableBytes { wipe($0) } }
        return Secret(encoded)
    }
}

extension CallAnswer {
    /// Whether the same request may be answered otherwise later.
    var mayPass: Bool {
        guard let status else { return true }
        return status == 408 || status == 425 || status == 429 || status >= 500
    }
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
