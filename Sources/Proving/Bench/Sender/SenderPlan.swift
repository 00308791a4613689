package import PushModel

/// What a sender is made to do, alone, against any sink that speaks HTTP/2.
package struct SenderPlan: Sendable {
    package var host: String
    package var port: Int
    /// PEM text of the authority to trust; `nil`: the system's.
    package var authority: [UInt8]?
    package var requests = 100_000
    package var connections = 1
    package var streams = 100
    package var service = PushService.apns
    /// Requests a second; `nil`: as many as go.
    package var rate: Double?
    /// Size of the JSON that goes to the device.
    package var bodyBytes = 400
    /// The `.p8` text, or the service account's JSON; `nil`: made on the spot.
    package var key: Secret?

    /// Device tokens that take turns; empty: made on the spot. For sinks that answer only paths they know.
    package var tokens: [String] = []

    package init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    /// A push is sent again at most so often after the first time. Sinks end connections by the thousand
    /// requests, and each time only what was under way is sent again.
    static let resendLimit = 10
    /// From the start to the first free stream: two attempts at a connection.
    static let connectSpan = Duration.seconds(15)
    /// Different device tokens that take turns, as different `:path` values.
    static let addresses = 512
    /// More workers than this hold more memory than a connection's streams can use.
    static let workerLimit = 20_000
}
