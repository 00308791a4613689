import Foundation
package import PushModel
import Synchronization

/// Gives notices to an operator's command, such as `sendmail -t`, as a whole message on its standard input.
///
/// The command runs without a shell, with the arguments as configured; a run longer than the deadline is
/// ended.
package struct MailCommandSink: AlertSink {
    private static let deadline = Duration.seconds(30)

    private let path: String
    private let arguments: [String]
    private let recipient: String
    private let world: World

    /// - Parameter recipient: what the `To` field says; from the configuration.
    package init(path: String, arguments: [String], recipient: String, world: World) {
        self.path = path
        self.arguments = arguments
        self.recipient = recipient
        self.world = world
    }

    package let way = NoteCode("mail")

    package func tell(_ notice: AlertNotice) async -> AlertDelivery {
        let command = Process()
        command.executableURL = URL(fileURLWithPath: path)
        command.arguments = arguments
        command.standardOutput = FileHandle.nullDevice
        command.standardError = FileHandle.nullDevice
        let input = Pipe()
        // A program that is started meanwhile would keep it open, and reading would go on until that program
        // ended.
        for end in [input.fileHandleForReading, input.fileHandleForWriting] {
            _ = fcntl(end.fileDescriptor, F_SETFD, FD_CLOEXEC)
        }
        command.standardInput = input
        let ending = Ending()
        command.terminationHandler = { process in
            let isKilled = process.terminationReason == .uncaughtSignal
            let status = Int(process.terminationStatus)
            ending.ended(isKilled ? Self.killed : status == 0 ? .told : .refused(status: status))
        }
        // Whatever keeps the command from starting is the same to the caller; the path stays out of the log.
        do { try command.run() } catch { return .failed(ErrorCode("command-not-started")) }
        // Far below the 64 KiB that a pipe takes without a reader, so this cannot block. A command that has
        // ended already does not read, which its exit status tells.
        try? input.fileHandleForWriting.write(contentsOf: Data(message(notice).utf8))
        try? input.fileHandleForWriting.close()
        let running = Running(command)
        return await withTaskGroup(of: Void.self) { group in
            let end = world.instant() + Self.deadline
            let world = world
            group.addTask {
                // Cancelled when the command has ended by itself.
                do { try await world.sleep(end) } catch { return }
                running.kill()
            }
            let outcome = await ending.wait()
            group.cancelAll()
            return outcome
        }
    }

    /// Ended by us when its time was over, or by somebody else.
    private static let killed = AlertDelivery.failed(ErrorCode("command-killed"))

    private func message(_ notice: AlertNotice) -> String {
        """
        To: \(recipient)
        Subject: [sealbell] \(notice.subject.kind.rawValue) \(notice.phase.rawValue)
        Content-Type: text/plain; charset=utf-8

        \(notice.sentence)

        """
    }

    private final class Running: @unchecked Sendable {
        // Safety: `Process` is started before it comes here, and only its process id is read afterwards.
        private let command: Process
        init(_ command: Process) { self.command = command }
        func kill() {
            if command.isRunning { Foundation.kill(command.processIdentifier, SIGKILL) }
        }
    }

    /// The command's end, whichever comes first: the end or somebody who waits for it.
    private final class Ending: Sendable {
        private typealias Waiter = CheckedContinuation<AlertDelivery, Never>
        private let state = Mutex<(outcome: AlertDelivery?, waiter: Waiter?)>((nil, nil))

        func ended(_ outcome: AlertDelivery) {
            let waiter = state.withLock { state -> Waiter? in
                state.outcome = outcome
                defer { state.waiter = nil }
                return state.waiter
            }
            waiter?.resume(returning: outcome)
        }

        func wait() async -> AlertDelivery {
            await withCheckedContinuation { continuation in
                let outcome = state.withLock { state -> AlertDelivery? in
                    if state.outcome == nil { state.waiter = continuation }
                    return state.outcome
                }
                if let outcome { continuation.resume(returning: outcome) }
            }
        }
    }
}
