package import PushModel

/// Why a message was not published.
package typealias WakuError = CodedError<WakuErrorCode>

package enum WakuErrorCode: String, PushErrorCode {
    /// No answer came in time, or the node could not take it; it was asked until the deadline.
    case nodeAway
    /// The node does not take this message (400, 413).
    case refused
    /// Too many messages already wait to be published.
    case overloaded

    package var sentence: String {
        switch self {
        case .nodeAway: "The Waku node does not answer."
        case .refused: "The Waku node does not take the message."
        case .overloaded: "Too many messages wait to be published; try again later."
        }
    }
}
