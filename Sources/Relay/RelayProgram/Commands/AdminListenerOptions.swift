import ArgumentParser
import PushModel
import WebClient
import WireFormats

/// Which relay, and with what right.
struct AdminListenerOptions: ParsableArguments {
    @OptionGroup var server: RunningServerOptions

    @Option(
        help: ArgumentHelp(
            "The file with the admin listener's token; by default the one that the running relay names.",
            valueName: "file"))
    var tokenFile: String?

    @Option(
        name: .customLong("ca"),
        help: ArgumentHelp(
            "PEM file of the certificate authority for the admin listener, if the system does not trust it.",
            valueName: "file"))
    var authorityFile: String?

    @Flag(help: "Answer in JSON.")
    var json = false

    /// Asks the admin listener of the running relay.
    ///
    /// - Parameter write: writes the members of the JSON object that is sent; `nil`: GET.
    /// - Throws: `CommandFailure` with the relay's own sentence when it refuses.
    func ask(
        _ path: String, _ shell: Shell, _ write: ((inout JSONWriter) -> Void)? = nil
    ) async throws(CommandFailure) -> JSONValue {
        let (door, named) = try place(shell)
        var headers: [(name: String, value: Secret)] = [("Content-Type", Secret("application/json".utf8))]
        if let file = tokenFile ?? named { headers.append(("Authorization", try bearer(file, shell))) }
        let answer: LocalCall.Answer
        do throws(AdminDoor.Fault) {
            answer = try await door.ask(
                write == nil ? "GET" : "POST", path, headers: headers, body: write.map(body))
        } catch {
            throw CommandFailure(.unavailable, door.sentence(error))
        }
        guard answer.status == 200 else {
            // The relay's own words; they hold nothing that a peer sent.
            let sentence = answer.text.filter { $0.isASCII && !$0.isNewline }
            throw CommandFailure(answer.status == 503 ? .unavailable : .failed, sentence)
        }
        // No JSON where JSON was promised: another program listens there.
        guard let json = try? JSONValue.parse(answer.body, limitBytes: LocalCall.answerLimitBytes) else {
            throw CommandFailure(
                .unavailable, "The admin listener's answer is not from a relay of this version.")
        }
        return json
    }

    /// Asks with a query, of which members without a value are left out. None of them may need an escape.
    func ask(
        _ path: String, query: [(name: String, value: String?)], _ shell: Shell
    ) async throws(CommandFailure) -> JSONValue {
        let members = query.compactMap { name, value in value.map { "\(name)=\($0)" } }
        return try await ask(members.isEmpty ? path : "\(path)?\(members.joined(separator: "&"))", shell)
    }

    /// The answer as it came with `--json`, else these lines.
    func show(_ answer: JSONValue, _ shell: Shell, _ lines: (JSONValue) -> [String]) {
        if json {
            shell.out(String(decoding: answer.serialized(), as: UTF8.self))
        } else {
            lines(answer).forEach(shell.out)
        }
    }

    private func body(_ write: (inout JSONWriter) -> Void) -> Secret {
        var writer = JSONWriter()
        writer.beginObject()
        write(&writer)
        writer.endObject()
        return writer.takeSecret()
    }

    /// - Returns: the listener, and the file of the token that it asks for, if the server names one.
    private func place(_ shell: Shell) throws(CommandFailure) -> (door: AdminDoor, tokenFile: String?) {
        let file = try server.find(shell)
        guard let url = file.urls["admin"] else {
            throw CommandFailure(
                .unavailable, "That relay has no admin listener: add listeners.admin to its configuration.")
        }
        let authority = try authorityFile.map { (path) throws(CommandFailure) in
            try CredentialCache.read(joinPath(shell.facts.workingDirectory, path)).reveal { Array($0) }
        }
        guard let door = AdminDoor(url, pid: file.pid, authority: authority, shell) else {
            throw CommandFailure(.failed, "The admin listener's URL or the CA file cannot be used.")
        }
        return (door, file.tokenFile)
    }

    private func bearer(_ path: String, _ shell: Shell) throws(CommandFailure) -> Secret {
        try CredentialCache.read(joinPath(shell.facts.workingDirectory, path)).reveal { token in
            var bytes = Array("Bearer ".utf8) + token
            defer { bytes.withUnsafeMutableBytes { wipe($0) } }
            // Without the line break at the end that editors leave.
            let end = bytes.count - bytes.reversed().prefix { $0 == 0x0A || $0 == 0x0D || $0 == 0x20 }.count
            return Secret(bytes[..<end])
        }
    }
}

/// Which instance of the relay.
struct InstanceOption: ParsableArguments {
    @Option(help: ArgumentHelp("The instance; needed only if there are several.", valueName: "name"))
    var instance: String?

    func write(_ json: inout JSONWriter) {
        guard let instance else { return }
        json.member("instance", instance)
    }
}

/// Which origin of which instance.
struct OriginArgument: ParsableArguments {
    @Argument(help: ArgumentHelp("The origin's host name or id, as the list gives it.", valueName: "origin"))
    var origin: String

    @OptionGroup var place: InstanceOption

    func write(_ json: inout JSONWriter) {
        place.write(&json)
        json.key(UUIDText(origin) == nil ? "host" : "id")
        json.string(origin)
    }
}
