public import PushModel

/// What can go wrong when a simulator is set up.
public typealias SimulatorError = CodedError<SimulatorErrorCode>

/// The codes of ``SimulatorError``, frozen: docs/errors.md has a row for each.
public enum SimulatorErrorCode: String, AdvisingErrorCode {
    /// What is wrong with the configuration, with a knob, or with the machine; `sentence` tells each.
    case portNotFree, keyNotUsable, certificateNotMade, knobNotKnown, alreadyStarted

    public var retry: RetryAdvice { self == .portNotFree ? .later : .never }

    public var blame: Blame {
        switch self {
        case .portNotFree, .keyNotUsable: .operator
        case .knobNotKnown: .peer
        case .certificateNotMade, .alreadyStarted: .ourselves
        }
    }

    public var sentence: String {
        switch self {
        case .portNotFree: "The port is taken or may not be used: choose another, or 0 for any."
        case .keyNotUsable: "The key is not in the form that the service wants."
        case .certificateNotMade: "The simulator could not make its certificate."
        case .knobNotKnown: "No knob has this name, or its value is out of range."
        case .alreadyStarted: "A simulator starts once."
        }
    }
}
