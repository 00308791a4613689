import ArgumentParser
import MarmotPush
import PushModel
import Secp256k1Keys
import WireFormats

/// `sealbell device marmot join`.
struct DeviceJoinMarmotCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "join", abstract: "Takes a phone into a group, and tells its token there.",
        discussion: """
            The first time it needs --relay and --server, or --sandbox, and makes an account; later the \
            state file has them. --sandbox takes them, and the authority, from a running sandbox. Without \
            --group a group is made; its code, which is printed, takes others in. The device token is made \
            up, and fits the simulators of serve --sandbox, unless --token-file names one. A phone that is \
            in the group already tells its token once more where that is another one.
            """)

    @Option(
        help: ArgumentHelp(
            "The notification server's public key, as sealbell keys new nostr prints it.", valueName: "key"))
    var server: String?

    @Option(
        help: ArgumentHelp(
            "The format of tokens: \(TokenFormat.allCases.map(\.rawValue).listed("or")); "
                + "\(TokenFormat.pushV1.rawValue) where nothing is said.",
            valueName: "format"))
    var format: String?

    @Option(
        help: ArgumentHelp(
            "The push service: \(PlayedMarmot.Service.allCases.map(\.rawValue).listed("or")); apns where "
                + "nothing is said.",
            valueName: "service"))
    var service: String?

    @Option(help: ArgumentHelp("The file that holds a device token.", valueName: "file"))
    var tokenFile: String?

    @Option(help: ArgumentHelp("The state directory of a running sandbox.", valueName: "directory"))
    var sandbox: String?

    @OptionGroup var place: PlayedMarmotOptions

    func validate() throws {
        // Before anything is written: what is wrong would be kept, and fail every later call.
        guard server.map({ XOnlyKey(hex: $0) != nil }) ?? true else {
            throw ValidationError("--server: A public key, as sealbell keys new nostr prints it.")
        }
        guard format.map({ TokenFormat(rawValue: $0) != nil }) ?? true else {
            throw ValidationError("There is no such format.")
        }
        guard service.map({ PlayedMarmot.Service(rawValue: $0) != nil }) ?? true else {
            throw ValidationError("There is no such service.")
        }
    }

    func run(_ shell: Shell) async throws -> Ending {
        var talk = try place.talk(try phone(shell), shell)
        let (index, isNew) = try group(&talk.phone, shell)
        let joined = talk.phone.groups[index]
        // Kept before anybody hears of it.
        try talk.phone.write()
        // In a group of its own making nobody has said anything.
        if place.group != nil || !isNew {
            for line in try await talk.hear(index, answers: false) { shell.out(line) }
        }
        if isNew {
            try await talk.say([talk.event(PlayedGroup.Kind.joined, "", index)], index)
        }
        let said = try await talk.work(index)
        let code = joined.pair.secret.hexDigits.reveal { String(decoding: $0, as: UTF8.self) }
        shell.out("group \(joined.name), leaf \(joined.leaf(of: talk.phone.pair.publicKey))")
        if place.group == nil { shell.out("code \(code)") }
        let words = talk.phone.service == .none ? "asked" : "told its token"
        shell.out(said.told == 0 ? "told nothing new" : words)
        return .done
    }

    /// The phone of the state file, changed where options say so; a new one where there is no file.
    private func phone(_ shell: Shell) throws(CommandFailure) -> PlayedMarmot {
        let path = place.path(shell)
        let token = try shell.content(of: tokenFile)?.trimmed
        var (relay, key) = (place.relay, server.flatMap { XOnlyKey(hex: $0) })
        if let file = try SandboxFacts.find(option: sandbox, shell) {
            if relay == nil { relay = try SandboxFacts.url("sandbox-nostr", file, option: "--relay") }
            if key == nil {
                let text = try SandboxFacts.key(of: "marmot", file, option: "--server")
                key = XOnlyKey(hex: text)
            }
        }
        let named = (service.flatMap(PlayedMarmot.Service.init), format.flatMap(TokenFormat.init))
        var phone: PlayedMarmot
        if PlayedMarmot.isThere(path) {
            phone = try PlayedMarmot(file: path)
            if let relay { phone.relay = relay }
            if let key { phone.server = key }
            if let service = named.0 { phone.service = service }
            if let format = named.1 { phone.format = format }
            if let token { phone.token = token }
        } else {
            guard let relay, let key else {
                throw CommandFailure(
                    .usage, "\(path) is not there yet: give --relay and --server, or --sandbox.")
            }
            phone = PlayedMarmot(
                named.0 ?? .apns, relay: relay, server: key, format: named.1 ?? .pushV1, token: token,
                HeldFile(path), shell.world)
        }
        if let sandbox {
            phone.authority = SandboxFacts.authority(of: joinPath(shell.facts.workingDirectory, sandbox))
        }
        do throws(DeviceError) {
            var device = try phone.device(in: nil)
            try device.use(token: try phone.deviceToken())
        } catch {
            throw CommandFailure(.usage, "The file holds no token of this service: \(error.sentence)")
        }
        return phone
    }

    /// The group of the option, or a new one.
    private func group(
        _ phone: inout PlayedMarmot, _ shell: Shell
    ) throws(CommandFailure) -> (index: Int, isNew: Bool) {
        // One that it is not in yet is to be joined.
        if place.group != nil, let known = try? place.index(phone) { return (known, false) }
        guard phone.groups.count < PlayedMarmot.groups else {
            throw CommandFailure(.failed, "The phone is in \(PlayedMarmot.groups) groups, and in no more.")
        }
        let pair: Secp256k1KeyPair
        if let code = place.group {
            guard let scalar = Secret(code.lowercased().utf8).fromHex,
                // What is wrong with it is of no matter.
                let named = try? Secp256k1KeyPair(secret: scalar)
            else { throw CommandFailure(.usage, "--group: A code, as join prints it to those inside.") }
            pair = named
        } else {
            pair = .generate(shell.world)
        }
        phone.groups.append(PlayedGroup(pair))
        return (phone.groups.count - 1, true)
    }
}
