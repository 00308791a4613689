package import PushModel

/// What an operator decides for one instance (docs/configuration.md).
package struct SessionPolicy: Sendable, Hashable {
    /// How the description of a message is written if the message itself is not sent (§8.1), by the
    /// configuration's words.
    package enum MetadataStyle: String, Sendable, Hashable, CaseIterable {
        /// A JSON text, as the seed has it.
        case json
        /// A bencoded dict, as the deployed server writes it and as unmodified iPhone apps read it.
        case deployed
    }

    /// Which pushes through FCM are sent with high priority, by the configuration's words.
    package enum FCMHigh: String, Sendable, Hashable, CaseIterable {
        /// Those of messages that people read: namespaces 0 and 11.
        case messages
        /// All, as the deployed server had it until 2024.
        case always = "all"
    }

    package var metadata: MetadataStyle
    package var fcmHigh: FCMHigh
    /// Whether the seed's withdrawn `subkey_tag` is accepted (§5.2).
    package var takesSubkeys: Bool

    package init(
        metadata: MetadataStyle = .json, fcmHigh: FCMHigh = .messages, takesSubkeys: Bool = false
    ) {
        self.metadata = metadata
        self.fcmHigh = fcmHigh
        self.takesSubkeys = takesSubkeys
    }
}

/// What callers may ask for in a minute. Callers have no credentials.
package struct SessionAllowances: Sendable {
    /// Elements of one address over plain HTTP: each costs two verifications and a commit. Many phones share
    /// one address of a carrier, and one phone may have a hundred groups.
    package var ofSource = Allowance("calls", perMinute: 6_000)
    /// Elements that one storage node brings. With a million phones and two thousand nodes that is some
    /// thirty a minute; a hundred phones at once, each with two hundred groups, are taken. A twentieth of a
    /// core if none of it verifies.
    package var ofNode = Allowance("onion-calls", perMinute: 20_000)
    /// Onion requests of one address, before they are opened: each costs an exchange of keys. A hundredth of
    /// a core if none of them opens.
    package static let ofOnions = Allowance("onions", perMinute: 20_000)
    /// Elements of one signer who has lately proved the key, before they are verified: as many as the
    /// allowance after verification takes, and as many again that it refuses.
    package var ofProved = Allowance("proved", perMinute: 60)
    /// Subscriptions and unsubscriptions of one signer for one account, counted once it has signed: a phone
    /// makes one in hours, and repeats it five times at most.
    package var ofSigner = Allowance("signer", perMinute: 30)

    package init() {}
}
