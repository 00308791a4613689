public import PushModel

/// What can go wrong in setting a simulator up.
public struct SimulatorError: PushError {
    /// Frozen: what the codes are called.
    public enum Code: String, Sendable, CaseIterable {
        case portNotFree, keyNotUsable, certificateNotMade, knobNotKnown, alreadyStarted
    }

    public let code: Code
    public init(_ code: Code) { self.code = code }
    public var codeText: String { code.rawValue }
    public var retry: RetryAdvice { code == .portNotFree ? .later : .never }

    public var blame: Blame {
        switch code {
        case .portNotFree, .keyNotUsable: .operator
        case .knobNotKnown: .peer
        case .certificateNotMade, .alreadyStarted: .ourselves
        }
    }

    public var sentence: String {
        switch code {
        case .portNotFree: "The port is taken or may not be used: choose another, or 0 for any."
        case .keyNotUsable: "The key is not in the form that the service wants."
        case .certificateNotMade: "The simulator could not make its certificate."
        case .knobNotKnown: "No knob has this name, or its value is out of range."
        case .alreadyStarted: "A simulator starts once."
        }
    }
}
