import ArgumentParser
import PushModel
import WireFormats
import ZulipPush

/// `sealbell device zulip join`.
struct DeviceJoinZulipCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "join", abstract: "Logs a phone in at a server, and registers it for notifications.",
        discussion: """
            The first time it needs --user, a key, and --sandbox or --bouncer-key; later the state file has \
            them. A further account may be joined to the same phone. With --sandbox the relay's key and the \
            app's id are those of a running sandbox (serve --sandbox), whose simulators take the device \
            token that is made up, and listen and open fetch from there what was delivered. Ends when the \
            registration is confirmed, with 69 when that takes too long; with --listen it goes on as listen \
            does.
            """)

    @Argument(help: ArgumentHelp("The server, such as https://chat.example.org.", valueName: "url"))
    var url: String

    @Option(help: ArgumentHelp("The user, by the name that the API takes: an address.", valueName: "name"))
    var user: String?

    @Option(
        help: ArgumentHelp(
            "The user's API key. Others on this machine can see it; --key-file hides it.",
            valueName: "key"))
    var key: String?

    @Option(help: ArgumentHelp("The file that holds the API key.", valueName: "file"))
    var keyFile: String?

    @Option(
        help: ArgumentHelp(
            "The user's number, for a server without the call users/me.", valueName: "number"))
    var userID: Int64?

    @Option(
        help: ArgumentHelp(
            "The only profile that the app speaks; else the server's first of "
                + "\(ZulipProfile.preference.map(\.rawValue).listed("and")).",
            valueName: "profile"))
    var profile: String?

    @Flag(
        name: .customLong("require-e2ee"),
        help: "The user's setting: no notifications but encrypted ones.")
    var requiresEncryption = false

    @Option(
        help: ArgumentHelp(
            "The relay's public key, as sealbell keys new zulip prints it.", valueName: "key"))
    var bouncerKey: String?

    @Option(
        help: ArgumentHelp(
            "The push service: \(TokenKind.allCases.map(\.rawValue).listed("or")); apns where nothing is "
                + "said.", valueName: "service"))
    var service: String?

    @Option(
        name: .customLong("app-id"),
        help: ArgumentHelp("The app's bundle id, for apns.", valueName: "id"))
    var appID: String?

    @Option(help: ArgumentHelp("The file that holds a device token.", valueName: "file"))
    var tokenFile: String?

    @Option(help: ArgumentHelp("The state directory of a running sandbox.", valueName: "directory"))
    var sandbox: String?

    @Flag(help: "Goes on, and opens what arrives, until it is interrupted.")
    var listen = false

    @OptionGroup var span: ListenSpan
    @OptionGroup var place: PlayedZulipPlace

    func validate() throws {
        guard profile.map({ ZulipProfile(rawValue: $0) != nil }) ?? true else {
            throw ValidationError("There is no such profile.")
        }
        guard service.map({ TokenKind(rawValue: $0) != nil }) ?? true else {
            throw ValidationError("There is no such service.")
        }
        // Whatever is wrong with it, it is none.
        guard bouncerKey.map({ (try? ZulipAppBuild(bouncerKey: $0)) != nil }) ?? true else {
            throw ValidationError("--bouncer-key: A public key, as sealbell keys new zulip prints it.")
        }
        guard key == nil || keyFile == nil else { throw ValidationError("Give --key or --key-file.") }
        guard listen || span.isEndless else { throw ValidationError("--for and --count go with --listen.") }
    }

    func run(_ shell: Shell) async throws -> Ending {
        let url = try ZulipLine.address(url)
        let path = place.path(shell)
        let isNew = !PlayedZulip.isThere(path)
        var played = try isNew ? newPhone(shell) : PlayedZulip(file: path)
        if !isNew { try change(&played, shell) }
        let index = try await account(url, &played, shell)
        let phone = try place.phone(played, shell)
        // What makes no device is not kept, and what does is, before a server hears of it.
        _ = try await phone.status(index)
        try await phone.keep()
        let route = try await phone.start(index)
        guard route != nil else {
            throw CommandFailure(.unavailable, "The phone is not registered; give the command again later.")
        }
        guard case .encrypted(let spoken) = route else {
            await phone.sayStatus(index)
            return .failed
        }
        let status = try await phone.settle(index, thenListens: listen)
        await phone.say(index, "joined, profile \(spoken.rawValue)")
        await phone.sayStatus(index)
        guard status.state == .active || listen && status.ending() != .failed else {
            await phone.close(index)
            return status.ending()
        }
        notifyNext(await phone.played.accounts[index], shell)
        guard listen else {
            place.next("listen", shell)
            return .done
        }
        return try await ZulipListening(phone, [index], span).run(started: true)
    }

    /// Where the sandbox has an origin beside it, the next command notifies this user.
    private func notifyNext(_ account: PlayedZulip.Account, _ shell: Shell) {
        guard let sandbox else { return }
        // As given: the line is to be typed in the same directory.
        let directory = (sandbox.hasSuffix("/") ? sandbox : sandbox + "/") + "origin"
        // Without one there is nothing to say.
        guard case .running? = try? RunFile.find(state: joinPath(shell.facts.workingDirectory, directory))
        else { return }
        shell.out("next: sealbell origin notify \(account.user) \"Dinner is ready\" --at \(directory)")
    }

    // MARK: the phone

    private func newPhone(_ shell: Shell) throws(CommandFailure) -> PlayedZulip {
        let file = try sandbox.map { (name) throws(CommandFailure) in
            try SandboxFacts.find(joinPath(shell.facts.workingDirectory, name))
        }
        guard user != nil, key != nil || keyFile != nil, bouncerKey != nil || file != nil else {
            throw CommandFailure(
                .usage,
                "\(place.file) is not there yet: give --user, --key-file, and --sandbox or --bouncer-key.")
        }
        let service = service.flatMap(TokenKind.init) ?? .apns
        var played = PlayedZulip(
            service, token: shell.world.inventToken(isApple: service == .apns), appID: nil,
            bouncerKey: bouncerKey ?? "", HeldFile(place.path(shell)))
        if bouncerKey == nil, let file {
            played.bouncerKey = try SandboxFacts.key(of: "zulip", file, option: "--bouncer-key")
        }
        if service == .apns, appID == nil {
            guard let file else { throw CommandFailure(.usage, "With apns, give --app-id too.") }
            played.appID = try SandboxFacts.bundle(file, option: "--app-id")
        }
        try change(&played, shell)
        return played
    }

    /// What the options say of a phone.
    private func change(_ played: inout PlayedZulip, _ shell: Shell) throws(CommandFailure) {
        let token = try shell.content(of: tokenFile)?.trimmed
        if let appID { played.appID = appID }
        if let bouncerKey { played.bouncerKey = bouncerKey }
        if let sandbox { played.sandbox = joinPath(shell.facts.workingDirectory, sandbox) }
        if let kind = service.flatMap(TokenKind.init), kind != played.service {
            played.service = kind
            played.token = shell.world.inventToken(isApple: kind == .apns)
        }
        if let token { played.token = token }
        guard played.service == .fcm || played.appID != nil else {
            throw CommandFailure(.usage, "With apns, give --app-id too.")
        }
    }

    // MARK: the account

    /// The account of that server and user, changed where options say so, or a new one.
    private func account(
        _ url: String, _ played: inout PlayedZulip, _ shell: Shell
    ) async throws(CommandFailure) -> Int {
        let given = try shell.content(of: keyFile)?.trimmed ?? key.map { Secret($0.utf8) }
        let known = played.accounts.firstIndex { $0.url == url && (user == nil || $0.user == user) }
        guard let user = user ?? known.map({ played.accounts[$0].user }),
            let apiKey = given ?? known.map({ played.accounts[$0].apiKey })
        else {
            throw CommandFailure(.usage, "The phone has no account there yet: give --user and --key-file.")
        }
        guard !user.contains(":"), user.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
            throw CommandFailure(.usage, "--user: No name that a server could take.")
        }
        let (realmURL, userID) = try await logIn(url, user, apiKey, shell)
        guard let known else {
            guard played.accounts.count < PlayedZulip.accounts else {
                throw CommandFailure(
                    .failed, "The phone has \(PlayedZulip.accounts) accounts, and takes no more.")
            }
            played.accounts.append(
                PlayedZulip.Account(
                    url: url, user: user, apiKey: apiKey,
                    profile: profile.flatMap { ZulipProfile(rawValue: $0) },
                    requiresEncryption: requiresEncryption, realmURL: realmURL, userID: userID))
            return played.accounts.count - 1
        }
        played.accounts[known].apiKey = apiKey
        if let profile { played.accounts[known].profile = ZulipProfile(rawValue: profile) }
        if requiresEncryption { played.accounts[known].requiresEncryption = true }
        played.accounts[known].isForgotten = false
        // The server may have become another's.
        if played.accounts[known].realmURL != realmURL || played.accounts[known].userID != userID {
            played.accounts[known].kept = nil
            (played.accounts[known].realmURL, played.accounts[known].userID) = (realmURL, userID)
        }
        return known
    }

    /// Asks the server whose key this is, before anything is written.
    private func logIn(
        _ url: String, _ user: String, _ apiKey: Secret, _ shell: Shell
    ) async throws(CommandFailure) -> (realmURL: String, userID: Int64) {
        let line = ZulipLine(url, user: user, apiKey: apiKey, try place.wire(shell))
        let settings = await line.settings()
        guard let facts = settings.success(limitBytes: ZulipLine.answerBytes) else {
            throw CommandFailure(.unavailable, "server: \(settings.words) when asked what it can do.")
        }
        let me = await line.me()
        // Once: Swift 6.3.1 crashes on a second look at it in this function, when it optimises.
        let status = me.status ?? 0
        guard status != 401 else {
            throw CommandFailure(.failed, "The server does not take this user and key.")
        }
        let number = me.success(limitBytes: ZulipLine.answerBytes)?["user_id"]?.int64
        guard let userID = userID ?? number else {
            let words = "server: \(me.words) when asked who this is"
            guard status == 404 || status == 405 else {
                throw CommandFailure(.unavailable, words + ".")
            }
            throw CommandFailure(.usage, words + ": give --user-id.")
        }
        // Notifications name the organization by it; a server of old says nothing.
        return (facts["realm_url"]?.string ?? url, userID)
    }
}
