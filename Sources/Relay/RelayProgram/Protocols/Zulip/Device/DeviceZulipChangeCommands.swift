import ArgumentParser
#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import PushModel
import ZulipPush

/// `sealbell device zulip repeat`.
struct DeviceRepeatZulipCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "repeat", abstract: "Registers once more, with the same id and keys.",
        discussion: """
            An app does so every 30 days. A server that has exactly this already may do nothing; one that \
            refused before is asked again.
            """)

    @OptionGroup var options: PlayedZulipOptions

    func run(_ shell: Shell) async throws -> Ending {
        let phone = try options.place.phone(shell)
        let index = try options.index(await phone.played)
        try await options.begin(phone, index, shell)
        try await phone.expectState(index)
        // Where its day had come, it has just been done.
        if await phone.registrations == 0 { try await phone.registerAgain(index) }
        let told = await phone.registrations > 0
        let status = try await phone.settle(index)
        if !told { await phone.say(index, "nothing was told: see what it says below") }
        await phone.sayStatus(index)
        options.place.next("status", shell)
        return told ? status.ending() : .failed
    }
}

/// `sealbell device zulip token`.
struct DeviceTokenZulipCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "token", abstract: "Gives the phone another device token, and tells its servers.",
        discussion: """
            As when a push service exchanges it. Without a token one is made up. In the account form the \
            phone gets a fresh id, and the former one is forgotten when the new one is active; what still \
            arrives for it opens for 30 days.
            """)

    @Argument(
        help: ArgumentHelp(
            "The token. Others on this machine can see it; --token-file hides it.", valueName: "new"))
    var new: String?

    @Option(help: ArgumentHelp("The file that holds the token.", valueName: "file"))
    var tokenFile: String?

    @OptionGroup var place: PlayedZulipPlace

    func validate() throws {
        guard new == nil || tokenFile == nil else { throw ValidationError("Give a token, or --token-file.") }
    }

    func run(_ shell: Shell) async throws -> Ending {
        var played = try PlayedZulip(file: place.path(shell))
        played.token =
            try shell.content(of: tokenFile)?.trimmed ?? new.map { Secret($0.utf8) }
            ?? shell.world.inventToken(isApple: played.service == .apns)
        let indices = played.accounts.indices.filter { !played.accounts[$0].isForgotten }
        let phone = try place.phone(played, shell)
        // Nothing is written before the library has taken the token.
        var ending = Ending.done
        for index in indices {
            try await phone.start(index)
            let status = try await phone.settle(index)
            await phone.sayStatus(index)
            if ending == .done { ending = status.ending() }
        }
        try await phone.keep()
        shell.out("the phone has another token")
        place.next("status", shell)
        return ending
    }
}

/// `sealbell device zulip forget`.
struct DeviceForgetZulipCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "forget", abstract: "Has a server forget the phone's registration; the account stays.",
        discussion: "Its id and keys are gone from the phone. join registers it anew.")

    @OptionGroup var options: PlayedZulipOptions

    func run(_ shell: Shell) async throws -> Ending {
        let phone = try options.place.phone(shell)
        let index = try options.index(await phone.played)
        let account = await phone.played.accounts[index]
        guard !account.isForgotten else { throw CommandFailure(.failed, "It is forgotten already.") }
        let ending = try await options.forget(phone, index)
        try await phone.keep()
        options.place.next("join \(account.url) --user \(account.user)", shell)
        return ending
    }
}

extension PlayedZulipOptions {
    /// Tells a server to forget an account's registration, and puts a device of no registration in its place.
    func forget(_ phone: ZulipPhone, _ index: Int) async throws(CommandFailure) -> Ending {
        let told = try await phone.forget(index)
        let spoken = await phone.played.accounts[index].spoken
        if told.isEmpty { await phone.say(index, "the server was told nothing") }
        // Servers of v11 have no such call, and find the token dead at their next push.
        let isHeard = told.allSatisfy { $0 == 200 || spoken == .v11 && $0 == 404 }
        await phone.say(index, isHeard ? "forgotten" : "gone from the phone; the server may still send")
        return isHeard ? .done : .unavailable
    }
}

/// `sealbell device zulip restore`.
struct DeviceRestoreZulipCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore", abstract: "Does what a phone does whose data came out of a backup.",
        discussion: """
            Removes the marker, which is in no backup, and starts: the phone takes the data for another \
            phone's, and registers with a fresh id and fresh keys. What the other phone has registered is \
            left alone.
            """)

    @OptionGroup var options: PlayedZulipOptions

    func run(_ shell: Shell) async throws -> Ending {
        let path = options.place.path(shell)
        let played = try PlayedZulip(file: path)
        let indices = try options.indices(played).filter { !played.accounts[$0].isForgotten }
        guard !indices.isEmpty else {
            throw CommandFailure(.failed, "No account is registered: sealbell device zulip join.")
        }
        let marker = PlayedMarker.path(beside: path)
        guard unlink(marker) == 0 || errno == ENOENT else {
            throw CommandFailure(.failed, "\(marker): \(FileFault(errno: errno).sentence)")
        }
        let phone = try options.place.phone(played, shell)
        var ending = Ending.done
        for index in indices {
            let former = played.accounts[index].registration
            try await phone.start(index)
            let status = try await phone.settle(index)
            if let registration = await phone.played.accounts[index].registration, registration != former {
                await phone.say(
                    index,
                    "a fresh id and fresh keys: \(registration); "
                        + (former.map { "\($0) is left alone" } ?? "there was none"))
            }
            await phone.sayStatus(index)
            if ending == .done { ending = status.ending() }
        }
        options.place.next("status", shell)
        return ending
    }
}

/// `sealbell device zulip leave`.
struct DeviceLeaveZulipCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "leave", abstract: "Logs an account out: its server forgets the registration.",
        discussion: "With the last account the state file goes, and the marker.")

    @OptionGroup var options: PlayedZulipOptions

    func run(_ shell: Shell) async throws -> Ending {
        let path = options.place.path(shell)
        let phone = try options.place.phone(shell)
        let index = try options.index(await phone.played)
        var ending = Ending.done
        if await !phone.played.accounts[index].isForgotten {
            ending = try await options.forget(phone, index)
        }
        await phone.say(index, "left")
        await phone.remove(index)
        guard await phone.played.accounts.isEmpty else {
            try await phone.keep()
            return ending
        }
        for file in [path, PlayedMarker.path(beside: path)] {
            guard unlink(file) == 0 || errno == ENOENT else {
                throw CommandFailure(.failed, "\(file): \(FileFault(errno: errno).sentence)")
            }
        }
        return ending
    }
}
