/// Whose fault an error is.
public enum Blame: String, Sendable, Hashable, CaseIterable { case peer, `operator`, provider, ourselves }

/// Whether to try again.
public enum RetryAdvice: String, Sendable, Hashable, CaseIterable { case never, later }

/// An error of one of our modules: a frozen code, a sentence for a person, whose fault, whether to try again.
///
/// It never holds input bytes: its description is the code alone.
public protocol PushError: Error, Sendable, Equatable, CustomStringConvertible {
    var codeText: String { get }
    var sentence: String { get }
    var blame: Blame { get }
    var retry: RetryAdvice { get }
}

extension PushError {
    public var description: String { codeText }
    public static func == (left: Self, right: Self) -> Bool { left.codeText == right.codeText }
}

/// The codes of one module's errors. Raw values are frozen: logs, metrics and `docs/errors.md` have them.
public protocol PushErrorCode: RawRepresentable, Sendable, Hashable, CaseIterable where RawValue == String {
    /// What to do, for a person.
    var sentence: String { get }
    var blame: Blame { get }
    var retry: RetryAdvice { get }
}

/// An error that is its code and nothing else: what most modules throw.
public struct CodedError<Reason: PushErrorCode>: PushError {
    public typealias Code = Reason

    public let code: Code

    public init(_ code: Code) { self.code = code }

    public var codeText: String { code.rawValue }
    public var sentence: String { code.sentence }
    public var blame: Blame { code.blame }
    public var retry: RetryAdvice { code.retry }
}
