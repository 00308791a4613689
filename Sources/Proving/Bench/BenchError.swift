package import PushModel

/// Why a measurement or a trial could not be made. What it found out is a report, never an error.
package typealias BenchError = CodedError<BenchErrorCode>

package enum BenchErrorCode: String, PushErrorCode {
    /// The relay under trial did not start, or said it could not.
    case relayNotReady
    /// The relay's or the sink's address does not answer.
    case unreachable
    /// An answer that is not HTTP/1.1 with a length.
    case malformedAnswer
    /// Sign-up, analytics or a registration was refused.
    case setUpRefused
    /// A file could not be read or written.
    case fileFault
    /// There is less free disk than the measurement was told to need.
    case tooLittleSpace
    /// The numbers asked for contradict each other or are out of bounds.
    case badPlan
    /// A process could not be started, or its numbers could not be read.
    case processFault

    package var sentence: String {
        switch self {
        case .relayNotReady: "The relay did not become ready. Look at its log."
        case .unreachable: "The address does not answer. Look at host and port."
        case .malformedAnswer: "The relay's answer is not HTTP/1.1 with a content-length."
        case .setUpRefused: "The relay refused the set-up: sign-up must be open and the keys its own."
        case .fileFault: "A file of the trial could not be read or written. Look at the disk and the rights."
        case .tooLittleSpace:
            "There is too little free disk for this. Make room, or measure for a shorter time."
        case .badPlan: "These numbers do not fit together. See --help."
        case .processFault: "A process of the trial could not be started or watched."
        }
    }
}
