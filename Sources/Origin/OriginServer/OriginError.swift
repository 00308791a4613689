package import PushModel

/// What an origin's server refuses, whatever the door.
package typealias OriginError = CodedError<OriginErrorCode>

package enum OriginErrorCode: String, PushErrorCode {
    case overloaded, rateLimited
    /// A record cannot be what this program wrote.
    case damagedRecord
    case tooMuchContent
    case badName, nameTaken, unknownRealm, unknownUser, tooManyRealms, tooManyKeys
    case realmInUse

    package var sentence: String {
        switch self {
        case .overloaded: "The server cannot take this now; try again later."
        case .rateLimited: "Too much was asked for; try again later."
        case .damagedRecord: "The store holds a record that this program did not write. Restore a backup."
        case .tooMuchContent: "The notification is larger than push services take; shorten it."
        case .badName:
            "A name has 1 to 128 visible ASCII characters without a space, a colon, a slash or quotes."
        case .nameTaken: "This name is taken."
        case .unknownRealm: "There is no realm of that name."
        case .unknownUser: "There is no user of that name."
        case .tooManyRealms: "There are as many realms as one origin may have."
        case .realmInUse: "The realm has users; remove them first."
        case .tooManyKeys: "This user has as many app passwords as one may have."
        }
    }
}

extension CodedError<OriginErrorCode>: DeferringError {
    package static func overloaded(retryAfter: Duration?) -> Self { Self(.overloaded) }
    package static func rateLimited(retryAfter: Duration) -> Self { Self(.rateLimited) }
    package var isOverloaded: Bool { code == .overloaded }
}

extension CodedError<OriginErrorCode> {
    /// A store is out for a moment, or an operator must act: a client is told nothing more.
    init(_ error: StoreError) { self.init(error.code == .corrupt ? .damagedRecord : .overloaded) }
}
