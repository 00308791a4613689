/// Whether notifications of a realm must be encrypted: the server's administrators may require it of all
/// realms, and each realm's of their own (§14.13).
public struct EncryptionRequirement: Sendable, Hashable {
    /// The server's administrators require it, of all realms.
    public var serverRequires: Bool
    /// The realm's administrators require it.
    public var realmRequires: Bool

    /// Both settings, as they stand now.
    public init(serverRequires: Bool, realmRequires: Bool) {
        self.serverRequires = serverRequires
        self.realmRequires = realmRequires
    }

    /// What clients are shown as `realm_require_e2ee_push_notifications`.
    public var isInForce: Bool {
        !ZulipOrigin.mayUseLegacy(serverRequires: serverRequires, realmRequires: realmRequires)
    }

    /// What the realm's clients are told after a change; `nil` where what is in force stays as it was.
    public func event(after old: EncryptionRequirement) -> ZulipEvent? {
        isInForce == old.isInForce ? nil : .requiresEncryption(isInForce)
    }
}
