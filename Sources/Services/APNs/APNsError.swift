package import PushModel

/// Why an APNs credential cannot be used.
package typealias APNsError = CodedError<APNsErrorCode>

package enum APNsErrorCode: String, PushErrorCode {
    /// The key file is no PKCS#8 PEM with a P-256 key.
    case badSigningKey
    /// The team or key id is not ten capital letters or digits.
    case badIdentifier

    package var sentence: String {
        switch self {
        case .badSigningKey: "Give the .p8 file as Apple's developer pages hand it out."
        case .badIdentifier: "Give the team id and the key id: ten capital letters or digits each."
        }
    }
}
