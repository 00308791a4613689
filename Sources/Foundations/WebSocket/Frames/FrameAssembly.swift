import NIOCore
import NIOWebSocket
import WireFormats

/// Which side of a connection we are: clients mask what they send, servers do not (RFC 6455 §5.1).
package enum WebSocketRole: Sendable { case client, server }

/// Puts messages together from frames and judges both (RFC 6455 §5), without a socket.
///
/// Length of control frames, their not being fragmented and the size of one frame are judged by the decoder
/// below, before a frame is whole.
struct FrameAssembly {
    enum Step: Equatable {
        case none
        case message(WebSocketMessage)
        case ping(ByteBuffer)
        case pong(ByteBuffer)
        case close(WebSocketCloseCode?)
        /// The peer broke a rule: what it is told, and what our user is.
        case fail(WebSocketCloseCode, WebSocketError.Code)
    }

    private let role: WebSocketRole
    private let limits: WebSocketLimits
    private var isText = false
    /// `nil` between messages.
    private var parts: ByteBuffer?
    private var fragments = 0

    init(_ role: WebSocketRole, _ limits: WebSocketLimits) {
        self.role = role
        self.limits = limits
    }

    private static let broken = Step.fail(.protocolError, .protocolViolation)

    mutating func take(_ frame: WebSocketFrame) -> Step {
        guard !frame.rsv1, !frame.rsv2, !frame.rsv3, (frame.maskKey == nil) == (role == .client) else {
            return Self.broken
        }
        switch frame.opcode {
        case .text, .binary:
            guard parts == nil else { return Self.broken }
            isText = frame.opcode == .text
            fragments = 0
            return append(frame)
        case .continuation:
            guard parts != nil else { return Self.broken }
            return append(frame)
        case .ping: return .ping(frame.unmaskedData)
        case .pong: return .pong(frame.unmaskedData)
        case .connectionClose: return farewell(frame.unmaskedData)
        default: return Self.broken
        }
    }

    private mutating func append(_ frame: WebSocketFrame) -> Step {
        fragments += 1
        let held = parts?.readableBytes ?? 0
        guard held + frame.length <= limits.messageBytes else { return .fail(.messageTooBig, .tooLarge) }
        guard fragments <= limits.fragments else { return .fail(.policyViolation, .tooLarge) }
        // A copy of the very size: the frame's own bytes are part of whatever was read beside them.
        var whole = parts ?? ByteBuffer()
        parts = nil
        whole.writeImmutableBuffer(frame.unmaskedData)
        guard frame.fin else {
            parts = whole
            return .none
        }
        guard isText else { return .message(.binary(whole)) }
        guard whole.withUnsafeReadableBytes({ UTF8Check.holds($0) }) else {
            return .fail(.invalidData, .notUTF8)
        }
        return .message(.text(whole))
    }

    /// Nothing, or a code of two bytes and a reason in UTF-8 (RFC 6455 §5.5.1).
    private func farewell(_ payload: ByteBuffer) -> Step {
        guard payload.readableBytes > 0 else { return .close(nil) }
        var payload = payload
        guard let code = payload.readInteger(as: UInt16.self).map(WebSocketCloseCode.init(rawValue:)),
            code.mayBeSent
        else { return Self.broken }
        guard payload.withUnsafeReadableBytes({ UTF8Check.holds($0) }) else {
            return .fail(.invalidData, .notUTF8)
        }
        return .close(code)
    }
}
