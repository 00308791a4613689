import ArgumentParser
import PushModel
import WireFormats
import ZulipPush

/// `sealbell device zulip status`.
struct DeviceStatusZulipCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Says how each account stands with its server.",
        discussion: """
            Starts the phone as an app starts, which registers what is due, and looks at what the server \
            shows. Prints the sentence that an app would show.
            """)

    @Flag(help: "Answer in JSON.")
    var json = false

    @OptionGroup var options: PlayedZulipOptions

    func run(_ shell: Shell) async throws -> Ending {
        // With --json one line is all that is printed.
        let phone = try options.place.phone(json ? shell.silent : shell)
        let indices = try options.indices(await phone.played)
        var ending = Ending.done
        var faults: [Int: CommandFailure] = [:]
        for index in indices {
            if await phone.played.accounts[index].isForgotten { continue }
            do throws(CommandFailure) {
                try await phone.start(index)
                try await phone.expectState(index)
                await phone.close(index)
                if ending == .done { ending = try await phone.status(index).ending() }
            } catch {
                // The status is of what is kept, then.
                faults[index] = error
                if ending == .done { ending = error.status }
            }
        }
        if json {
            try await shell.out(json(phone, indices, shell.world.now()))
        } else {
            for index in indices { try await tell(phone, index, shell) }
        }
        for fault in faults.values { fault.lines.forEach(shell.err) }
        return ending
    }

    private func tell(_ phone: ZulipPhone, _ index: Int, _ shell: Shell) async throws(CommandFailure) {
        let account = await phone.played.accounts[index]
        let head = "\(account.user) at \(account.url)"
        guard !account.isForgotten else {
            shell.out("\(head): not registered")
            return options.place.next("join \(account.url) --user \(account.user)", shell)
        }
        let status = try await phone.status(index)
        let profile = account.spoken.map { ", profile \($0.rawValue)" } ?? ""
        let id = account.registration.map { ", id \($0)" } ?? ""
        let age = ZulipWords.age(Self.age(status, shell.world.now()))
        shell.out("\(head): \(status.state.rawValue) for \(age)\(profile)\(id)")
        if let code = status.detail { shell.out("  code \(code)") }
        shell.out("  \(ZulipWords.sentence(status))")
        switch status.advice {
        case .none where status.state == .active: options.place.next("listen", shell)
        case .none, .wait: options.place.next("status", shell)
        case .retrying, .tellAdmin: options.place.next("repeat", shell)
        case .logInAgain:
            options.place.next("join \(account.url) --user \(account.user) --key-file FILE", shell)
        case .updateApp:
            options.place.next("join \(account.url) --user \(account.user) --bouncer-key KEY", shell)
        case .giveToken, .unsupported: break
        }
    }

    private static func age(_ status: DeviceStatus, _ now: UnixTime) -> Duration {
        max(.zero, now.since(status.since ?? now))
    }

    private func json(
        _ phone: ZulipPhone, _ indices: [Int], _ now: UnixTime
    ) async throws(CommandFailure) -> String {
        var writer = JSONWriter(reserving: 1 << 12)
        writer.beginObject()
        writer.beginArray("accounts")
        for index in indices {
            let account = await phone.played.accounts[index]
            let status = try await phone.status(index)
            writer.beginObject()
            for (name, text) in [
                ("url", account.url), ("user", account.user), ("profile", account.spoken?.rawValue),
                ("id", account.registration), ("state", status.state.rawValue),
                ("error_code", status.detail), ("advice", status.advice.rawValue),
                ("sentence", account.isForgotten ? nil : ZulipWords.sentence(status))
            ] {
                writer.key(name)
                if let text { writer.string(text) } else { writer.null() }
            }
            writer.member("age_seconds", Self.age(status, now).components.seconds)
            writer.member("is_quiet", status.isQuiet)
            writer.member("is_registered", !account.isForgotten)
            writer.endObject()
        }
        writer.endArray()
        writer.endObject()
        return writer.takeSecret().reveal { String(decoding: $0, as: UTF8.self) }
    }
}
