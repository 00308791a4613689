import ArgumentParser
import PushModel
import WireFormats

/// `sealbell origins`: who has signed up at a running relay, and who may.
struct OriginsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "origins", abstract: "Lists, invites, suspends and resumes origins of a running relay.",
        discussion: "They ask the relay itself, at its admin door; name its state directory with --at.",
        subcommands: [
            OriginsListCommand.self, OriginsInviteCommand.self, OriginsSuspendCommand.self,
            OriginsResumeCommand.self
        ])
}

/// Which relay, which instance, and with what right.
struct AdminDoorOptions: ParsableArguments {
    @OptionGroup var server: RunningServerOptions

    @Option(help: ArgumentHelp("The instance; where there is one alone, it is meant.", valueName: "name"))
    var instance: String?

    @Option(
        help: ArgumentHelp(
            "The file of the admin door's token, where that door asks for one.", valueName: "file"))
    var tokenFile: String?

    @Option(
        name: .customLong("ca"),
        help: ArgumentHelp(
            "PEM file of the authority behind the admin door's certificate, if not the system's.",
            valueName: "file"))
    var authorityFile: String?

    @Flag(help: "Answer in JSON.")
    var json = false

    /// Asks the admin door of the running relay.
    ///
    /// - Parameter members: of the JSON object that is sent; `nil`: GET.
    /// - Throws: `CommandFailure` with the relay's own sentence when it refuses.
    func ask(
        _ path: String, _ members: [(name: StaticString, value: String)]? = nil, _ shell: Shell
    ) async throws(CommandFailure) -> JSONValue {
        let call = try door(shell)
        var headers: [(name: String, value: Secret)] = [("Content-Type", Secret("application/json".utf8))]
        if let tokenFile { headers.append(("Authorization", try bearer(tokenFile, shell))) }
        let answer: LocalCall.Answer
        do throws(LocalCall.Fault) {
            answer = try await call.ask(
                members == nil ? "GET" : "POST", path, headers: headers, body: members.map(body))
        } catch {
            throw CommandFailure(.unavailable, "The relay's admin door does not answer.")
        }
        guard answer.status == 200 else {
            // The relay's own words; they hold nothing that a peer sent.
            let sentence = answer.text.filter { $0.isASCII && !$0.isNewline }
            throw CommandFailure(answer.status == 503 ? .unavailable : .failed, sentence)
        }
        // No JSON where JSON was promised: another program listens there.
        guard let json = try? JSONValue.parse(answer.body, limitBytes: LocalCall.answerLimitBytes) else {
            throw CommandFailure(.unavailable, "What answers at the admin door is no relay of this version.")
        }
        return json
    }

    private func body(_ members: [(name: StaticString, value: String)]) -> Secret {
        var writer = JSONWriter()
        writer.beginObject()
        if let instance {
            writer.key("instance")
            writer.string(instance)
        }
        for member in members {
            writer.key(member.name)
            writer.string(member.value)
        }
        writer.endObject()
        return writer.takeSecret()
    }

    private func door(_ shell: Shell) throws(CommandFailure) -> LocalCall {
        let file: RunFile
        do {
            file = try server.find(shell.facts)
        } catch let failure as CommandFailure {
            throw failure
        } catch {
            throw CommandFailure(.software, "The run file could not be looked for.")
        }
        guard let url = file.urls["admin"] else {
            throw CommandFailure(
                .unavailable, "That relay has no admin door: add listeners.admin to its configuration.")
        }
        let authority = try authorityFile.map { (path) throws(CommandFailure) in
            try CredentialShelf.read(joinPath(shell.facts.workingDirectory, path)).reveal { Array($0) }
        }
        guard let call = LocalCall(url: url, authority: authority) else {
            throw CommandFailure(.failed, "The admin door's URL or the authority's file cannot be used.")
        }
        return call
    }

    private func bearer(_ path: String, _ shell: Shell) throws(CommandFailure) -> Secret {
        try CredentialShelf.read(joinPath(shell.facts.workingDirectory, path)).reveal { token in
            var bytes = Array("Bearer ".utf8) + token
            defer { bytes.withUnsafeMutableBytes { wipe($0) } }
            // Without the line break at the end that editors leave.
            let end = bytes.count - bytes.reversed().prefix { $0 == 0x0A || $0 == 0x0D || $0 == 0x20 }.count
            return Secret(bytes[..<end])
        }
    }
}

/// `sealbell origins list`.
struct OriginsListCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Lists the origins that have signed up.")

    @OptionGroup var door: AdminDoorOptions

    func run(_ shell: Shell) async throws -> Ending {
        var origins: [String: JSONValue] = [:]
        var order: [String] = []
        var after = "0"
        // Ends: the numbers rise, and the relay's records are finite.
        while true {
            let instance = door.instance.map { "&instance=\($0)" } ?? ""
            let page = try await door.ask("\(OriginsDesk.listPath)?after=\(after)\(instance)", nil, shell)
            for origin in page["origins"]?.array ?? [] {
                guard let id = origin["id"]?.string else { continue }
                // One that was written while we paged comes again, and newer.
                if origins.updateValue(origin, forKey: id) == nil { order.append(id) }
            }
            guard let next = page["next"]?.string, next != after else { break }
            after = next
        }
        let listed = order.compactMap { origins[$0] }
        if door.json {
            shell.out(String(decoding: JSONValue.array(listed).serialized(), as: UTF8.self))
        } else {
            for origin in listed {
                let words = ["id", "standing", "host", "contact"].map { origin[$0]?.string ?? "" }
                shell.out(words.joined(separator: "  "))
            }
        }
        return .done
    }
}

/// `sealbell origins invite HOST`.
struct OriginsInviteCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "invite", abstract: "Admits one sign-up of a host name within 7 days.")

    @Argument(help: ArgumentHelp("The host name of the server, without https://.", valueName: "host"))
    var host: String

    @OptionGroup var door: AdminDoorOptions

    func run(_ shell: Shell) async throws -> Ending {
        let answer = try await door.ask(OriginsDesk.invitePath, [("host", host)], shell)
        let end = answer["expires_at"]?.int64.map { timestamp(UnixTime(seconds: $0)) } ?? ""
        shell.out(
            door.json ? try jsonText(["host": host, "expires_at": end]) : "\(host) may sign up until \(end).")
        return .done
    }
}

/// `sealbell origins suspend UUID`.
struct OriginsSuspendCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "suspend",
        abstract: "Refuses an origin from now on; it keeps its name and devices.",
        discussion: "To the origin it looks as if its registration had been deactivated.")

    @Argument(help: ArgumentHelp("The origin's id, as the list gives it.", valueName: "uuid"))
    var id: String

    @OptionGroup var door: AdminDoorOptions

    func run(_ shell: Shell) async throws -> Ending {
        _ = try await door.ask(OriginsDesk.suspendPath, [("id", id)], shell)
        shell.out(door.json ? try jsonText(["id": id, "standing": "suspended"]) : "\(id) is suspended.")
        return .done
    }
}

/// `sealbell origins resume UUID`.
struct OriginsResumeCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume", abstract: "Lifts a suspension.")

    @Argument(help: ArgumentHelp("The origin's id, as the list gives it.", valueName: "uuid"))
    var id: String

    @OptionGroup var door: AdminDoorOptions

    func run(_ shell: Shell) async throws -> Ending {
        _ = try await door.ask(OriginsDesk.resumePath, [("id", id)], shell)
        shell.out(door.json ? try jsonText(["id": id, "standing": "active"]) : "\(id) is active.")
        return .done
    }
}
