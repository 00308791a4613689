#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import Foundation
import PushModel
import Synchronization

/// A process of a trial: started, killed, waited for.
///
/// Its standard input is a pipe that nobody writes to and that ends with this process, however that ends: a
/// child that watches it outlives its parent by no more than its own way of stopping. (The kernel's means,
/// PR_SET_PDEATHSIG, goes by the thread that started the child, and threads of a pool come and go.)
package final class ChildProcess: @unchecked Sendable {
    // Safety: `process` is configured before it runs; afterwards only its id is read, and `state` is locked.
    // `lifeline` is closed when it is released.

    private struct State {
        var status: Int32?
        var waiters: [CheckedContinuation<Int32, Never>] = []
    }

    private let process = Process()
    /// The end of the pipe that this process alone holds.
    private let lifeline: FileHandle
    private let state = Mutex(State())

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - executable: absolute path.
    ///   - environment: the whole environment of the program.
    ///   - log: file that takes its standard output and error; appended to.
    ///   - socket: a listening socket that it is handed in the way of service managers, as `public`.
    /// - Throws: `.processFault`, `.fileFault`.
    package init(
        _ executable: String, _ arguments: [String], environment: [String: String], log: String,
        handing socket: CInt? = nil
    ) throws(BenchError) {
        let descriptor = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw BenchError(.fileFault) }
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else {
            close(descriptor)
            throw BenchError(.processFault)
        }
        // Closed in whatever program is started here next, because it would keep the pipe open. A trial
        // starts its programs one behind the other, so none is started between these lines.
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        lifeline = FileHandle(fileDescriptor: ends[1], closeOnDealloc: true)
        let output = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        process.executableURL = URL(fileURLWithPath: socket == nil ? executable : "/bin/sh")
        process.arguments = socket == nil ? arguments : ["-c", Self.handOver, "sh", executable] + arguments
        process.environment = environment
        process.standardInput = FileHandle(fileDescriptor: ends[0], closeOnDealloc: true)
        process.standardOutput = output
        process.standardError =
            socket.map { FileHandle(fileDescriptor: $0, closeOnDealloc: false) } ?? output
        process.terminationHandler = { [weak self] ended in
            let status = ended.terminationReason == .exit ? ended.terminationStatus : -ended.terminationStatus
            self?.ended(status)
        }
        do { try Self.unblocked { try process.run() } } catch { throw BenchError(.processFault) }
    }

    /// No other descriptor than the first three reaches a child, and nobody knows its number before it runs.
    private static let handOver = """
        exec 3>&2 2>&1
        LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=public exec "$@"
        """

    /// A child inherits the mask of the thread that starts it, and a pool's threads block nearly every
    /// signal: a program that sets no mask of its own would then outlive its SIGTERM.
    private static func unblocked(_ body: () throws -> Void) rethrows {
        var (none, before) = (sigset_t(), sigset_t())
        sigemptyset(&none)
        pthread_sigmask(SIG_SETMASK, &none, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        try body()
    }

    package var pid: Int32 { process.processIdentifier }
    package var hasEnded: Bool { state.withLock { $0.status != nil } }

    /// Sends a signal, unless the process has ended.
    package func signal(_ number: Int32) {
        if !hasEnded { kill(pid, number) }
    }

    /// - Returns: the exit status; the negative number of the signal that ended it.
    package func wait() async -> Int32 {
        await withCheckedContinuation { continuation in
            let status = state.withLock { state -> Int32? in
                if state.status == nil { state.waiters.append(continuation) }
                return state.status
            }
            if let status { continuation.resume(returning: status) }
        }
    }

    private func ended(_ status: Int32) {
        let waiters = state.withLock { state in
            state.status = status
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume(returning: status) }
    }
}
