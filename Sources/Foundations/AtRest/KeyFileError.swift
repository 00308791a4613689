package import PushModel

/// What is wrong with a key file. It names no bytes of it.
package typealias KeyFileError = CodedError<KeyFileErrorCode>

package enum KeyFileErrorCode: String, PushErrorCode {
    /// The file is missing or may not be read.
    case unreadable
    /// A line is neither `lookup HEX64`, `seal NUMBER HEX64`, a comment nor empty; or a key is missing or
    /// double.
    case malformed
    /// There is a file of that name already; it is never overwritten.
    case exists
    /// The file could not be written and synced.
    case unwritable
    /// Another command is changing the file.
    case busy

    package var sentence: String {
        switch self {
        case .unreadable: "The key file cannot be read. Look at its path and permissions."
        case .malformed: "The key file holds a line that is no key. Restore it from a backup."
        case .exists: "There is a key file already. Move it away first if it is really to be replaced."
        case .unwritable: "The key file cannot be written. Look at the directory and the disk."
        case .busy: "Another command is changing this key file. Wait for it."
        }
    }
}
