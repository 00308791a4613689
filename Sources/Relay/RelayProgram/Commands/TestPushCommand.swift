#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import ArgumentParser
import PushModel
import WireFormats

/// `sealbell test-push`: a visible alert to one device, through the running relay's own connections.
struct TestPushCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "test-push",
        abstract: "Sends a visible test alert to one device token, and prints the push service's answer.",
        discussion: """
            Reads the token from standard input or a file, never from the command line, where other users \
            would see it. The push bypasses the queue and goes through a halted lane too; it is not owed, \
            and ends no registration. iOS shows the alert; on Android it arrives as data (test, title, \
            body), and the app decides whether to show it. Ends with 0 when the service accepted it, 69 \
            when no connection to the service could be made, otherwise 1.
            """)

    @Option(help: ArgumentHelp("The app of the configuration.", valueName: "name"))
    var app: String

    @Option(
        help: ArgumentHelp(
            "The file that holds the device token.", discussion: "Else it is read from standard input.",
            valueName: "file"))
    var device: String?

    @Option(
        help: ArgumentHelp(
            "\(Hosting.standard.serviceChoice); else by the app, or by the token's form.",
            valueName: "service"))
    var service: String?

    @Option(
        help: ArgumentHelp(
            "production or sandbox; else as the app's configuration has it.", valueName: "environment"))
    var environment: String?

    @Option(help: ArgumentHelp("The bundle id; else the app's first.", valueName: "id"))
    var bundle: String?

    @OptionGroup var adminListener: AdminListenerOptions

    func run(_ shell: Shell) async throws -> Ending {
        let token = try readAddress(device, shell)
        let answer = try await adminListener.ask(TestPushDesk.path, shell) { json in
            json.member("app", app)
            json.texts([("service", service), ("environment", environment), ("bundle", bundle)])
            json.member("token", utf8: token)
        }
        let answers = answer["answers"]?.array ?? []
        adminListener.show(answer, shell) { _ in answers.map(Self.line) + Self.hints(answers) }
        let outcomes = answers.map { $0["outcome"]?.string }
        if outcomes.contains("accepted") { return .done }
        return outcomes.last == .some(nil) ? .unavailable : .failed
    }

    /// Apple's word does not tell a wrong token from one of its other environment.
    static func hints(_ answers: [JSONValue]) -> [String] {
        guard answers.count == 1, answers[0]["reason"]?.string == Reason.badDeviceToken.rawValue else {
            return []
        }
        return [
            "A token of Apple's other environment gets this answer too: a build from Xcode has one of the "
                + "sandbox, all others have one of production. With environment: learn both work."
        ]
    }

    private static func line(_ answer: JSONValue) -> String {
        let place = "\(answer["lane"]?.string ?? ""): "
        guard let outcome = answer["outcome"]?.string else {
            return place + "no connection to the push service; sealbell doctor tries the way there."
        }
        return place
            + "\(outcome) (\(answer["reason"]?.string ?? "")) in \(answer["milliseconds"]?.int64 ?? 0) ms, "
            + "reference \(answer["push"]?.string ?? "")"
    }
}

private let noAddress = CommandFailure(
    .usage, "A device token is wanted: one word of at most \(DeskLimits.addressBytes) characters.")

/// A device token from a file, or from standard input; without white space at its ends. It never becomes a
/// `String`.
///
/// - Throws: `CommandFailure(.usage)` when there is none, or it is no visible ASCII.
func readAddress(_ file: String?, _ shell: Shell) throws(CommandFailure) -> Secret {
    let given: Secret
    if let file {
        given = try CredentialCache.read(joinPath(shell.facts.workingDirectory, file))
    } else {
        let most = DeskLimits.addressBytes + DeskLimits.spaceBytes
        given = shell.input(most + 1)
        // There may be more, of which this is the beginning.
        guard given.count <= most else { throw noAddress }
    }
    return try given.reveal { (bytes) throws(CommandFailure) -> Secret in
        func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }
        let start = bytes.firstIndex { !isSpace($0) } ?? bytes.endIndex
        let end = bytes.lastIndex { !isSpace($0) }.map { $0 + 1 } ?? start
        let token = UnsafeRawBufferPointer(rebasing: bytes[start..<end])
        guard (1...DeskLimits.addressBytes).contains(token.count),
            token.allSatisfy({ (0x21...0x7E).contains($0) })
        else { throw noAddress }
        return Secret(copying: token)
    }
}

/// What standard input holds, up to so many bytes; the passing copy is wiped.
func readInput(limitBytes: Int) -> Secret {
    // Else somebody at a terminal would wait for us, and we for them.
    if isatty(STDIN_FILENO) == 1 {
        try? writeAll(STDERR_FILENO, Array("Paste the device token, and end with Enter and Ctrl-D.\n".utf8))
    }
    var bytes = [UInt8](repeating: 0, count: limitBytes)
    defer { bytes.withUnsafeMutableBytes { wipe($0) } }
    var count = 0
    // Ends: each round reads at least a byte, or leaves.
    while count < limitBytes {
        let got = bytes.withUnsafeMutableBytes {
            read(STDIN_FILENO, $0.baseAddress! + count, limitBytes - count)
        }
        if got < 0, errno == EINTR { continue }
        if got <= 0 { break }
        count += got
    }
    return Secret(bytes[..<count])
}
