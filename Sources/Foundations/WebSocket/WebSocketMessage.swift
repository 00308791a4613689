package import NIOCore

/// One whole message. A text has been checked to be UTF-8.
///
/// The buffer's storage is exactly the message's: it pins nothing of what was read beside it.
package enum WebSocketMessage: Sendable, Equatable {
    case text(ByteBuffer)
    case binary(ByteBuffer)

    package init(_ text: String) { self = .text(ByteBuffer(string: text)) }

    package var bytes: ByteBuffer {
        switch self {
        case .text(let bytes), .binary(let bytes): bytes
        }
    }

    package var count: Int { bytes.readableBytes }
}

/// A status code of a Close frame (RFC 6455 §7.4).
package struct WebSocketCloseCode: RawRepresentable, Sendable, Hashable {
    package let rawValue: UInt16
    package init(rawValue: UInt16) { self.rawValue = rawValue }

    package static let normal = Self(rawValue: 1000)
    package static let goingAway = Self(rawValue: 1001)
    package static let protocolError = Self(rawValue: 1002)
    package static let unsupportedData = Self(rawValue: 1003)
    package static let invalidData = Self(rawValue: 1007)
    package static let policyViolation = Self(rawValue: 1008)
    package static let messageTooBig = Self(rawValue: 1009)
    package static let internalError = Self(rawValue: 1011)
    package static let tryAgainLater = Self(rawValue: 1013)

    /// Whether a frame may carry it: 1004 to 1006 and 1015 are for use inside programs alone, and what the
    /// registry does not know below 3000 is nobody's (RFC 6455 §7.4.2).
    package var mayBeSent: Bool {
        switch rawValue {
        case 1000...1003, 1007...1014, 3000...4999: true
        default: false
        }
    }
}

/// How a connection ended, as its user is told it.
package enum WebSocketEnd: Sendable, Equatable {
    /// Both sides said farewell, or ours was said and the other's did not come in time.
    /// - code: the peer's; `nil` where its frame carried none or none came.
    case closed(code: WebSocketCloseCode?)
    /// We ended it, or it broke.
    case failed(WebSocketError.Code)
}
