import ArgumentParser
import PushModel
import Secp256k1Keys

/// `sealbell keys new status`: makes the key of a push notification server, and says the public half.
struct KeysNewStatusCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Makes the key of a Status push notification server.",
        discussion: """
            Prints the public key, which goes into your build of the app. An existing file is never \
            overwritten: devices have registered with the server of its public key, and with no other.
            """)

    @Option(help: ArgumentHelp("The key file.", valueName: "file"))
    var file: String

    @Flag(help: "Answer in JSON.")
    var json = false

    func run(_ shell: Shell) async throws -> Ending {
        let path = joinPath(shell.facts.workingDirectory, file)
        let pair = Secp256k1KeyPair.generate(shell.world)
        do throws(FileFault) {
            let text = StatusKeyFile.text(pair)
            try text.reveal { raw throws(FileFault) in try writeFile(path, raw, replacing: false) }
        } catch {
            throw CommandFailure(.failed, "\(path): \(error.sentence)")
        }
        let key = StatusKeyFile.publicText(pair.point)
        shell.out(json ? try jsonText(["public_key": key, "file": path]) : key)
        return .done
    }
}
