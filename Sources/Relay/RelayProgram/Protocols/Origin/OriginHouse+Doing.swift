import OriginServer
import PushModel
import WireFormats
import ZulipPush

/// What commands and applications have done at an origin.
extension OriginHouse {
    /// Host and perhaps port of the public address.
    var host: String { String(settings.url.drop { $0 != "/" }.dropFirst(2)) }

    /// Signs this server up at the relay, with an id and a key of its own. Both stand in the file before the
    /// relay is called; called again, it uses what stands there.
    ///
    /// A new key stands in a file beside it until the relay is known to have it: whoever is killed in between
    /// has both keys, and the next sign-up finds out which one the relay takes.
    ///
    /// - Parameter rotates: the key is exchanged for a new one.
    func signUp(rotates: Bool) async throws(CommandFailure) -> OriginUpkeep.Told {
        guard let mail = settings.contact ?? (settings.relay == nil ? "admin@\(hostName)" : nil) else {
            throw CommandFailure(
                .configuration, "The relay wants to know whom to write to: set origin.contact.")
        }
        let file = settings.credentialsFile
        let stored = try OriginCredentials.read(file)
        var next = try OriginCredentials.read(file + Self.nextKey)
        var generator = SystemRandomNumberGenerator()
        let origin: ZulipOrigin
        if let stored {
            origin = stored.origin
            if rotates, next == nil {
                let key = ZulipOrigin.invent(version: OriginCredentials.version, using: &generator).key
                try OriginCredentials.write(origin.id, key, to: file + Self.nextKey)
                next = try OriginCredentials.read(file + Self.nextKey)
            }
        } else {
            let invented = ZulipOrigin.invent(version: OriginCredentials.version, using: &generator)
            try OriginCredentials.write(invented.origin.id, invented.key, to: file)
            origin = invented.origin
        }
        var told = await upkeep.signUp(origin, host: host, mail: mail, newKey: rotates ? next?.key : nil)
        var takesNext = rotates
        if case .refused = told, let next {
            // The answer to an earlier exchange was lost.
            told = await upkeep.signUp(next.origin, host: host, mail: mail)
            takesNext = true
        }
        guard case .told = told else { return told }
        if takesNext, let next {
            try OriginCredentials.write(origin.id, next.key, to: file)
            OriginCredentials.remove(file + Self.nextKey)
        }
        try upkeep.readCredentials()
        return told
    }

    /// Takes this host's name back at the relay, when id and key are lost: the relay gives out a secret, this
    /// server's door shows it, and the relay gives out the id and a new key (§5.2). Those that stood in the
    /// file are replaced. Whoever is killed in between gives the command again.
    func transfer() async throws(CommandFailure) -> OriginUpkeep.Told {
        var generator = SystemRandomNumberGenerator()
        let nobody = ZulipOrigin.invent(version: OriginCredentials.version, using: &generator).origin
        let secret: Secret
        switch await upkeep.transfer(nobody, host: host) {
        case .found(let found): secret = found
        case .not(let told): return told
        }
        let token = door.challenge.show(secret)
        defer { door.challenge.hide() }
        switch await upkeep.verifyChallenge(nobody, host: host, accessToken: token) {
        case .found(let found):
            let file = settings.credentialsFile
            try OriginCredentials.write(found.id, found.key, to: file)
            // It belongs to a key that is over.
            OriginCredentials.remove(file + Self.nextKey)
        case .not(let told): return told
        }
        try upkeep.readCredentials()
        return .told
    }

    private static let nextKey = ".new"

    private var hostName: Substring { host.prefix { $0 != ":" } }

    /// - Returns: the realm; its users' clients have been told what is in force now.
    func require(_ requires: Bool, of name: String) async throws(OriginError) -> OriginRealm {
        let before = people.realms.first { $0.name == name }
        let realm = try await people.set(name) { $0.requiresEncryption = requires }
        func inForce(_ realm: OriginRealm) -> EncryptionRequirement {
            EncryptionRequirement(
                serverRequires: settings.requiresEncryption, realmRequires: realm.requiresEncryption)
        }
        if let before, let event = inForce(realm).event(after: inForce(before)) {
            polls.tell(event, in: realm.uuid)
        }
        return realm
    }
}

extension OriginHouse {
    /// - Throws: `.unknownUser`.
    func rows(of name: String) async throws(OriginError) -> [RegistrationSummary] {
        guard OriginPeople.isName(name), let user = try await people.user(name) else {
            throw OriginError(.unknownUser)
        }
        return try await users.summary(of: user)
    }

    /// - Throws: `.unknownUser`.
    func cloudRows(of name: String) async throws(OriginError) -> [NextcloudUsers.Summary] {
        guard OriginPeople.isName(name), let user = try await people.user(name) else {
            throw OriginError(.unknownUser)
        }
        return try await cloud.summary(of: user)
    }

    /// Removes a device of the other door, with its app password.
    ///
    /// - Returns: whether it was there.
    /// - Throws: `.unknownUser`.
    func drop(cloud number: Int64, of name: String) async throws(OriginError) -> Bool {
        guard OriginPeople.isName(name), let user = try await people.user(name) else {
            throw OriginError(.unknownUser)
        }
        return try await cloud.drop(number, of: user)
    }

    /// Removes one device.
    ///
    /// - Returns: whether it was there.
    /// - Throws: `.unknownUser`.
    func drop(_ device: ZulipQueueItem.Subject, of name: String) async throws(OriginError) -> Bool {
        guard OriginPeople.isName(name), let user = try await people.user(name) else {
            throw OriginError(.unknownUser)
        }
        return try await users.drop(device, of: user)
    }
}

extension OriginHouse {
    /// Removes a user in both of their turns: a call that began before finds nobody, and registers no phone
    /// for whoever is given the name next.
    ///
    /// - Throws: `.unknownUser`.
    func removeUser(_ name: String) async throws(OriginError) {
        try await users.during(name) { () throws(OriginError) in
            try await cloud.during(name) { () throws(OriginError) in try await people.removeUser(name) }
            polls.closeAll(of: name)
        }
    }
}

extension OriginHouse {
    /// Gives a user a new API key, or one more app password. With an API key the phones of the old one go:
    /// whoever asks for it may have lost one.
    ///
    /// - Parameter keepsPhones: they stay.
    /// - Throws: `.unknownUser`, `.tooManyKeys`.
    func renewKey(
        of name: String, _ kind: OriginUser.Credential.Kind, keepsPhones: Bool
    ) async throws(OriginError) -> String {
        let key = try await people.renewKey(of: name, kind)
        guard kind == .apiKey, !keepsPhones, let user = try await people.user(name) else { return key }
        do throws(ZulipUsersRefusal) {
            try await users.change(
                name, realm: user.realm, id: user.id, { registrations in registrations.leave() },
                behind: { _, _ in })
        } catch { throw OriginError(.overloaded) }
        polls.closeAll(of: name)
        return key
    }
}

extension OriginHouse: OriginNotifying {
    func notify(
        _ name: String, id: String, _ content: NotificationContent, beside: @Sendable (Int) -> [Change]
    ) async throws(OriginError) -> Int? {
        let now = world.now()
        let user = try await user(name)
        // First, and known by its id: the answer stands under an application's key only once both are owed,
        // and whoever repeats a call that was cut off in between owes this half once.
        let cloud = try await cloudNotifier.notify(user, id: id, content)
        let owed = try await owe(to: user, id: id, beside: { beside($0 + cloud) }) { user in
            .message(
                ZulipMessage(
                    id: Self.message(id), time: now.seconds, content: ZulipMessage.cut(content.text),
                    senderID: user.id, senderName: content.sender ?? user.name,
                    senderAvatarURL: self.settings.url, recipient: .direct(userIDs: [user.id])))
        }
        return owed.map { $0 + cloud }
    }

    private func user(_ name: String) async throws(OriginError) -> OriginUser {
        guard OriginPeople.isName(name), let user = try await people.user(name) else {
            throw OriginError(.unknownUser)
        }
        return user
    }

    func withdraw(
        _ name: String, _ ids: [String], id: String, beside: @Sendable (Int) -> [Change]
    ) async throws(OriginError) -> Int? {
        let user = try await user(name)
        // It bears repetition: what is gone is not withdrawn again.
        let cloud = try await cloudNotifier.withdraw(user, ids)
        let owed = try await owe(to: user, id: id, beside: { beside($0 + cloud) }) { _ in
            .remove(ids.map(Self.message))
        }
        return owed.map { $0 + cloud }
    }

    /// To see whether encrypted notifications arrive.
    func test(_ name: String) async throws(OriginError) -> (id: String, devices: Int) {
        let id = Hex.encode(world.randomBytes(16))
        let now = world.now()
        return (id, try await owe(to: try await user(name), id: id) { _ in .test(time: now.seconds) } ?? 0)
    }

    func devices(of id: String) async throws(OriginError) -> [NotifiedDevice]? {
        try await notifier.devices(of: id)?.1
    }

    private func owe(
        to user: OriginUser, id: String, beside: @Sendable (Int) -> [Change] = { _ in [] },
        _ body: @Sendable (OriginUser) -> ZulipNotification.Body
    ) async throws(OriginError) -> Int? {
        do throws(ZulipUsersRefusal) {
            return try await notifier.notify(user, id: id, body(user), beside: beside)
        } catch {
            switch error {
            case .origin(let error): throw error
            case .refused: throw OriginError(.overloaded)
            }
        }
    }

    /// The number by which a phone knows a notification, so that it can be taken back: 52 bits, which every
    /// reader of JSON keeps.
    private static func message(_ id: String) -> Int64 { Int64(id.prefix(13), radix: 16) ?? 0 }
}
