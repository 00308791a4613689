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
    /// - Parameter rotates: the key is exchanged for a new one.
    func signUp(rotates: Bool) async throws(CommandFailure) -> OriginUpkeep.Told {
        guard let mail = settings.contact ?? (settings.relay == nil ? "admin@\(hostName)" : nil) else {
            throw CommandFailure(
                .configuration, "The relay wants to know whom to write to: set origin.contact.")
        }
        let file = settings.credentialsFile
        let stored = try OriginCredentials.read(file)
        var generator = SystemRandomNumberGenerator()
        let old: ZulipOrigin
        if let stored {
            old = stored.origin
        } else {
            let invented = ZulipOrigin.invent(version: OriginCredentials.version, using: &generator)
            try OriginCredentials.write(invented.origin.id, invented.key, to: file)
            old = invented.origin
        }
        var newKey: Secret?
        if rotates, stored != nil {
            let key = ZulipOrigin.invent(version: OriginCredentials.version, using: &generator).key
            // Beside the old one until the relay has said yes.
            try OriginCredentials.write(old.id, key, to: file + ".new")
            newKey = key
        }
        let told = await upkeep.signUp(old, host: host, mail: mail, newKey: newKey)
        guard case .told = told else { return told }
        if let newKey { try OriginCredentials.write(old.id, newKey, to: file) }
        try upkeep.readCredentials()
        return told
    }

    private var hostName: Substring { host.prefix { $0 != ":" } }

    /// - Returns: the realm; its users' clients have been told what is in force now.
    func require(_ requires: Bool, of name: String) async throws(OriginError) -> OriginRealm {
        try await people.set(name) { $0.requiresEncryption = requires }
    }

    /// Owes a text to all devices of a user.
    ///
    /// - Returns: its id, and how many devices there are.
    /// - Throws: `.unknownUser`, `.tooMuchContent`, `.overloaded`.
    func notify(_ name: String, text: String) async throws(OriginError) -> (id: String, devices: Int) {
        guard let user = try await people.user(name) else { throw OriginError(.unknownUser) }
        let id = Hex.encode(world.randomBytes(16))
        let now = world.now()
        let message = ZulipMessage(
            id: now.milliseconds, time: now.seconds, content: ZulipMessage.cut(text), senderID: user.id,
            senderName: user.name, senderAvatarURL: settings.url, recipient: .direct(userIDs: [user.id]))
        do throws(ZulipUsersRefusal) {
            return (id, try await notifier.notify(user, id: id, .message(message)))
        } catch {
            switch error {
            case .origin(let error): throw error
            case .refused: throw OriginError(.overloaded)
            }
        }
    }
}
