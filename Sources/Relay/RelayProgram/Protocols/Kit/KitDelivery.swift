import ArgumentParser
import PushModel

/// `--file`, `--sandbox`: the push that a played phone opens.
struct KitDelivery: ParsableArguments {
    @Option(help: ArgumentHelp("The file that holds the push.", valueName: "file"))
    var file: String?

    @Option(
        help: ArgumentHelp(
            "The state directory of a running sandbox: the last push that it has delivered to the phone; "
                + "the first one is waited for.",
            valueName: "directory"))
    var sandbox: String?

    func validate() throws {
        guard file == nil || sandbox == nil else { throw ValidationError("Give --file or --sandbox.") }
    }

    /// The push: out of the sandbox or the file, or of standard input where neither was given.
    ///
    /// - Parameters:
    ///   - limitBytes: of standard input; more is not read.
    ///   - token: the phone's; of one that has several, blanks between.
    ///   - isApple: whether it is one of Apple's.
    /// - Throws: `CommandFailure` that names the file or the sandbox.
    func body(
        _ limitBytes: Int, for token: Secret, isApple: Bool, _ shell: Shell
    ) async throws(CommandFailure) -> Secret {
        guard let sandbox else { return try shell.content(of: file, orInputOf: limitBytes) }
        let directory = joinPath(shell.facts.workingDirectory, sandbox)
        return try await SandboxDeliveries(directory, shell).last(for: token, isApple: isApple)
    }
}
