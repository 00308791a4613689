package import PushModel

/// An operator's settings for one instance (docs/configuration.md).
package struct NextcloudPolicy: Sendable {
    /// What `DELETE /devices` answers where nothing is registered (§5.4), by the configuration's words.
    package enum MissingDelete: String, Sendable, Hashable, CaseIterable {
        /// 403, as the written specification has it.
        case forbidden = "refuse"
        /// 200, so that clients forget what they have stored, also those that repeat the call until they do.
        case success = "accept"
    }

    /// What a registered device must show to change to another key of its user (§5.3), by the words of the
    /// configuration.
    package enum NewKey: String, Sendable, Hashable, CaseIterable {
        /// It names its account, and the instance confirms the key; else 409.
        case byProof = "proof"
        /// The push token is enough as well: only the device can show the registered one, because servers
        /// know only its hash.
        case byToken = "token"
    }

    /// Of which each notifications call must show one; none: no call needs one.
    package var subscriptionKeys: [Secret]
    /// Identifiers without any row that an answer lists as `unknown`, and all answers within an hour.
    package var unknownPerAnswer: Int
    package var unknownPerHour: Int
    package var missingDelete: MissingDelete
    package var newKey: NewKey
    /// Where it is not empty, devices of these instances alone register, and each for the first time with a
    /// proof: `cloud.example.org`, with port and path where they have them.
    package var provenServers: Set<String>
    /// ``NextcloudLimits/appPasswords``.
    package var appPasswords = NextcloudLimits.appPasswords

    package init(
        subscriptionKeys: [Secret] = [], unknownPerAnswer: Int = NextcloudLimits.unknownPerAnswer,
        unknownPerHour: Int = NextcloudLimits.unknownPerHour, missingDelete: MissingDelete = .forbidden,
        newKey: NewKey = .byProof, provenServers: Set<String> = []
    ) {
        self.subscriptionKeys = subscriptionKeys
        self.unknownPerAnswer = unknownPerAnswer
        self.unknownPerHour = unknownPerHour
        self.missingDelete = missingDelete
        self.newKey = newKey
        self.provenServers = Set(provenServers.map { CloudID.folded($0) })
    }

    /// Whether a caller that shows this key may send notifications. All keys are looked at, each in constant
    /// time.
    package func admits(_ key: Secret?) -> Bool {
        if subscriptionKeys.isEmpty { return true }
        guard let key else { return false }
        return subscriptionKeys.reduce(false) { $1 == key || $0 }
    }

    /// Whose turns the pushes of an admitted caller take. Users' keys have none: a pair of them costs
    /// nothing.
    func turns(_ key: Secret?) -> Turns {
        guard !subscriptionKeys.isEmpty, let key else { return .byClient }
        return .byCredential(key)
    }
}
