import ArgumentParser
import PushModel
import WebClient
import WireFormats

/// `sealbell device session send`.
struct DeviceSendSessionCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "send", abstract: "Writes to an account in a sandbox, as somebody's app does.",
        discussion: """
            The text is read from standard input, or from --text-file, and stored as it is at the sandbox's \
            storage nodes; apps encrypt what they write. A storage node tells only who watches the account \
            at that moment, so the command waits until somebody does, and ends with 69 when nobody does. \
            In the real network any Session app writes to the account.
            """)

    /// With its account and in base64, less than the sandbox reads of a request.
    private static let textBytes = 2_048
    /// Between two attempts.
    private static let pause = Duration.milliseconds(100)

    @Option(help: ArgumentHelp("The account's id, as subscribe prints it.", valueName: "account"))
    var to: String

    @Option(help: ArgumentHelp("The state directory of the running sandbox.", valueName: "directory"))
    var sandbox: String

    @Option(help: ArgumentHelp("The file that holds the text.", valueName: "file"))
    var textFile: String?

    func validate() throws {
        guard to.utf8.count == 66, to.utf8.allSatisfy({ Hex.value(ofDigit: $0) != nil }) else {
            throw ValidationError("--to: 66 hexadecimal digits, as sealbell device session subscribe prints.")
        }
    }

    func run(_ shell: Shell) async throws -> Ending {
        let directory = joinPath(shell.facts.workingDirectory, sandbox)
        let control = try SandboxFacts.control(try SandboxFacts.find(directory), directory, shell)
        let text = try shell.content(of: textFile, orInputOf: Self.textBytes + 1)
        guard text.count <= Self.textBytes else {
            throw CommandFailure(.usage, "A text has at most \(Self.textBytes) bytes.")
        }
        let order = order(text)
        let end = shell.world.instant() + shell.wait
        while true {
            if try await told(order, control) > 0 {
                shell.out("stored, and told to the push server")
                return .done
            }
            guard shell.world.instant() < end else { break }
            // Ends early only when cancelled.
            try? await shell.world.sleep(shell.world.instant() + Self.pause)
        }
        throw CommandFailure(
            .unavailable,
            "No push server watches this account there: it is not subscribed, or the relay's configuration "
                + "names an oxend, and so another network.")
    }

    private func order(_ text: Secret) -> Secret {
        var json = JSONWriter(reserving: 4_096)
        json.beginObject()
        json.member("account", to)
        json.member("data", text.reveal { Base64.text(Array($0)) })
        json.endObject()
        return json.takeSecret()
    }

    /// - Returns: to how many connections the storage nodes told the message.
    private func told(_ order: Secret, _ control: LocalCall) async throws(CommandFailure) -> Int64 {
        // Nobody there, and an answer in another form: the sandbox has ended, or is of another version.
        guard let answer = try? await control.ask("POST", "/session/messages", body: order),
            answer.status == 200, let json = try? JSONValue.parse(answer.body, limitBytes: 1_024),
            let told = json["told"]?.int64
        else { throw CommandFailure(.unavailable, "The sandbox does not take the message.") }
        return told
    }
}
