public import PushModel

/// What every reader of this module says about bytes that are not what they should be.
public typealias FormatError = CodedError<FormatErrorCode>

public enum FormatErrorCode: String, AdvisingErrorCode {
    /// Not JSON by RFC 8259, or a lone surrogate in an escape.
    case malformedJSON
    /// A byte sequence that is not UTF-8.
    case invalidUTF8
    /// Nested deeper than the reader allows.
    case tooDeep
    /// More bytes, members or fields than the reader allows.
    case tooLarge
    /// Well-formed, but of another type than was asked for.
    case wrongType
    /// Not base64 in its one canonical spelling.
    case malformedBase64
    /// Not an even number of hex digits.
    case malformedHex
    /// A form with a broken percent escape.
    case malformedForm
    /// Not bencode, or an integer beyond 64 bits where those count.
    case malformedBencode
    /// Not protobuf's wire format.
    case malformedProtobuf

    public var blame: Blame { .peer }
    public var retry: RetryAdvice { .never }
    public var sentence: String {
        switch self {
        case .malformedJSON: "The text is not JSON."
        case .invalidUTF8: "The text is not UTF-8."
        case .tooDeep: "The input is nested too deeply."
        case .tooLarge: "The input is larger than allowed."
        case .wrongType: "A value has another type than expected."
        case .malformedBase64: "The text is not canonical base64."
        case .malformedHex: "The text is not hexadecimal."
        case .malformedForm: "The form is not correctly percent-encoded."
        case .malformedBencode: "The bytes are not bencode."
        case .malformedProtobuf: "The bytes are not protobuf."
        }
    }
}
