/// Whose fault an error is.
public enum Blame: String, Sendable, Hashable, CaseIterable {
    /// Whoever sent it.
    case peer
    /// Whoever runs the program, or built the app.
    case `operator`
    /// Apple or Google.
    case provider
    /// This program, or what it stands on.
    case ourselves
}

/// Whether to try again.
public enum RetryAdvice: String, Sendable, Hashable, CaseIterable {
    /// The same fails again.
    case never
    /// The same may succeed in a while.
    case later
}

/// An error of one of our modules: a frozen code and a sentence for a person.
///
/// It never holds input bytes: its description is the code alone.
public protocol PushError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The frozen code, letters alone: for logs, metrics and `docs/errors.md`.
    var codeText: String { get }
    /// What to do, for a person; no byte of any input is in it.
    var sentence: String { get }
}

/// An error that whoever catches it can act on: those that an app meets, and a store's.
public protocol AdvisingError: PushError {
    /// Who can mend it.
    var blame: Blame { get }
    /// Whether the same may succeed later.
    var retry: RetryAdvice { get }
}

extension PushError {
    /// The code alone.
    public var description: String { codeText }
    /// By the codes: other members do not count.
    public static func == (left: Self, right: Self) -> Bool { left.codeText == right.codeText }
}

/// The codes of one module's errors. Raw values are frozen: logs, metrics and `docs/errors.md` have them.
public protocol PushErrorCode: RawRepresentable, Sendable, Hashable, CaseIterable where RawValue == String {
    /// What to do, for a person.
    var sentence: String { get }
}

/// The codes of an ``AdvisingError``.
public protocol AdvisingErrorCode: PushErrorCode {
    /// Who can mend it.
    var blame: Blame { get }
    /// Whether the same may succeed later.
    var retry: RetryAdvice { get }
}

/// An error that is its code and nothing else: what most modules throw.
public struct CodedError<Reason: PushErrorCode>: PushError {
    /// The codes of the module.
    public typealias Code = Reason

    /// Which error.
    public let code: Code

    /// An error that is this code.
    public init(_ code: Code) { self.code = code }

    public var codeText: String { code.rawValue }
    public var sentence: String { code.sentence }
}

extension CodedError: AdvisingError where Reason: AdvisingErrorCode {
    public var blame: Blame { code.blame }
    public var retry: RetryAdvice { code.retry }
}
