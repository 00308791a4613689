#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import Foundation
import PushModel
import PushTesting
import Testing

@testable import Bench

@Suite("Processes of a trial", .timeLimit(.minutes(30)))
struct ChildProcessTests {
    private func start(_ program: String, _ arguments: [String] = []) throws -> (ChildProcess, log: String) {
        let log = FileManager.default.temporaryDirectory.path + "/child-\(UUID().uuidString)"
        return (try ChildProcess(program, arguments, environment: ["A": "b"], log: log), log)
    }

    @Test("Its output and its exit status are kept, and the environment is what it was given")
    func life() async throws {
        let (child, log) = try start("/bin/sh", ["-c", "echo $A; echo $HOME; exit 7"])
        defer { try? FileManager.default.removeItem(atPath: log) }  // Litter in a folder for litter.
        #expect(await child.wait() == 7)
        #expect(child.hasEnded)
        #expect(await child.wait() == 7, "whoever asks later is told too")
        #expect(try String(contentsOfFile: log, encoding: .utf8) == "b\n\n")
        child.signal(SIGKILL)
    }

    @Test("A signal's end is its negative number")
    func signal() async throws {
        // It waits for input, and nobody writes any.
        let (child, log) = try start("/bin/cat")
        defer { try? FileManager.default.removeItem(atPath: log) }  // As above.
        #expect(!child.hasEnded)
        child.signal(SIGKILL)
        #expect(await child.wait() == -SIGKILL)
    }

    @Test("It hears SIGTERM though the thread that started it does not")
    func mask() async throws {
        let (child, log) = try masked { try start("/bin/cat") }
        defer { try? FileManager.default.removeItem(atPath: log) }  // As above.
        child.signal(SIGTERM)
        #expect(await child.wait() == -SIGTERM)
    }

    /// Runs on a thread that blocks SIGTERM, as those of a pool do.
    private func masked<Result>(_ body: () throws -> Result) rethrows -> Result {
        var (term, before) = (sigset_t(), sigset_t())
        sigemptyset(&term)
        sigaddset(&term, SIGTERM)
        pthread_sigmask(SIG_BLOCK, &term, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        return try body()
    }

    @Test("Its input ends with whoever holds it, though another child was started meanwhile")
    func lifeline() async throws {
        var held: ChildProcess? = try start("/bin/cat").0
        let other = try start("/bin/cat").0
        let pid = try #require(held?.pid)
        held = nil
        // `cat` ends at the end of its input, and in no other way.
        #expect(await watchOutside { kill(pid, 0) == -1 && errno == ESRCH })
        #expect(!other.hasEnded)
        other.signal(SIGKILL)
        #expect(await other.wait() == -SIGKILL)
    }

    @Test("A program that is not there, and a log that cannot be, are told apart")
    func faults() {
        #expect(throws: BenchError(.processFault)) { try start("/nowhere/program") }
        #expect(throws: BenchError(.fileFault)) {
            try ChildProcess("/bin/true", [], environment: [:], log: "/nowhere/log")
        }
    }
}
