public import RSAKeys

/// A user as the push of their server knows them: a name that is the same everywhere, and a key pair
/// ("identity proof") that is made once and kept, encrypted at rest.
///
/// When the pair is lost, a new one may be made, but every proxy then holds the old public key for the same
/// device identifiers, and devices must register anew.
public struct NextcloudUser: Sendable {
    /// See ``AppPasswordIdentity/cloudID(user:serverURL:)``.
    public let cloudID: String
    /// The pair of the identity proof: RSA of 2,048 bits.
    public let key: RSAPrivateKey

    /// - Parameter cloudID: see ``AppPasswordIdentity/cloudID(user:serverURL:)``.
    /// - Parameter key: made once for the user, and kept.
    public init(cloudID: String, key: RSAPrivateKey) {
        self.cloudID = cloudID
        self.key = key
    }

    /// The identity of one of the user's app passwords.
    public func identity(tokenID: Int64) -> AppPasswordIdentity {
        AppPasswordIdentity(cloudID: cloudID, tokenID: tokenID)
    }
}

/// Who asks an OCS endpoint: a user who is logged in, with an app password or with the login's own.
public struct NextcloudSession: Sendable {
    /// Who is logged in.
    public let user: NextcloudUser
    /// `nil`: no app password.
    public let tokenID: Int64?

    /// - Parameter tokenID: number of the app password; `nil`: the login's own password.
    public init(user: NextcloudUser, tokenID: Int64?) {
        self.user = user
        self.tokenID = tokenID
    }
}
