import NIOCore
import PushModel
import SealbellKit

extension Shell {
    /// How long an answer is waited for.
    var wait: Duration { .nanoseconds(patience.nanoseconds) }

    /// What a file holds that an option names; `nil` where it was not given.
    ///
    /// - Throws: `CommandFailure` that names the file.
    func content(of file: String?) throws(CommandFailure) -> Secret? {
        guard let file else { return nil }
        return try CredentialCache.read(joinPath(facts.workingDirectory, file))
    }

    /// The same of standard input, where the option was not given.
    func content(of file: String?, orInputOf limitBytes: Int) throws(CommandFailure) -> Secret {
        try content(of: file) ?? input(limitBytes)
    }
}

/// Does something that a device may refuse.
///
/// - Throws: `CommandFailure` with the device's sentence.
func orFail<Result>(
    _ status: Ending = .failed, _ body: () throws(DeviceError) -> Result
) throws(CommandFailure) -> Result {
    do throws(DeviceError) { return try body() } catch { throw CommandFailure(status, error.sentence) }
}
