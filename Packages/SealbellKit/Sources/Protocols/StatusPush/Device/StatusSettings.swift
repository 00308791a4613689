import Primitives
public import PushModel
public import Secp256k1Keys

/// What a user wants of pushes, as the app knows it. Any change is told to all servers.
public struct StatusSettings: Sendable {
    /// Whether pushes are to come at present. A server that is told `false` keeps the registration and stays
    /// silent, and senders do not learn of it.
    public var isEnabled = true
    /// Whether only contacts are to be able to send: then servers hold the access token for each of them
    /// alone.
    public var contactsOnly = false
    /// Whether mentions are to be left out.
    public var blocksMentions = false
    /// The chat keys of the user's contacts. A contact that leaves this list no longer knows the token.
    public var contacts: [PublicPoint] = []
    /// Chat keys of people from whom nothing is to come.
    public var blockedContacts: [PublicPoint] = []
    /// Chat ids (UTF-8, as the app has them) from which nothing is to come.
    public var blockedChats: [Secret] = []
    /// Chat ids (UTF-8) from which no messages are to come; mentions do.
    public var mutedChats: [Secret] = []
    /// Ids (UTF-8) of public and community chats in which mentions are told.
    public var chatsWithMentions: [Secret] = []

    /// Pushes on, for everybody, mentions too, with no lists.
    public init() {}

    /// Whether a registration with these stays in what networks pass on.
    var isWithinBounds: Bool {
        contacts.count <= StatusLimits.deviceContacts
            && blockedContacts.count + blockedChats.count <= StatusLimits.deviceChats
            && mutedChats.count <= StatusLimits.deviceChats
            && chatsWithMentions.count <= StatusLimits.deviceChats
            && entries <= StatusLimits.deviceEntries
    }

    /// Of all lists of a registration together.
    private var entries: Int {
        (contactsOnly ? contacts.count : 0) + blockedContacts.count + blockedChats.count + mutedChats.count
            + chatsWithMentions.count
    }

    /// `blocked_chat_list`: deployed clients list the hash of a person's contact id; the seed means chats.
    var blockedHashes: [Secret] {
        blockedContacts.map { StatusHash.author($0) } + blockedChats.map { StatusHash.chat($0) }
    }

    /// What servers are told of these, as a digest. Contacts matter while they alone may send.
    func update(_ hash: borrowing KeyedHash) {
        hash.update([isEnabled ? 1 : 0, contactsOnly ? 1 : 0, blocksMentions ? 1 : 0])
        let people = contactsOnly ? contacts.map { Secret($0.compressed) } : []
        for list in [
            people, blockedHashes, mutedChats.map { StatusHash.chat($0) },
            chatsWithMentions.map { StatusHash.chat($0) }
        ] {
            hash.update(count: list.count)
            for one in list.sorted(by: Self.isBefore) { hash.update(one) }
        }
    }

    private static func isBefore(_ left: Secret, _ right: Secret) -> Bool {
        left.reveal { left in right.reveal { left.lexicographicallyPrecedes($0) } }
    }
}
