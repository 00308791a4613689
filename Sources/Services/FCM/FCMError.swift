package import PushModel

/// Why a Firebase credential cannot be used.
package typealias FCMError = CodedError<FCMErrorCode>

package enum FCMErrorCode: String, PushErrorCode {
    /// No JSON with the members of a service account.
    case malformedServiceAccount
    /// `private_key` is no PEM with an RSA key of at least 2048 bits.
    case badSigningKey

    package var sentence: String {
        switch self {
        case .malformedServiceAccount:
            "Give the JSON key file of a service account, as Google's console hands it out. "
                + "google-services.json, which belongs to the app, and a server key are none."
        case .badSigningKey: "The service account's private key cannot be read. Make a new key file."
        }
    }
}
