import Bench
import Foundation
import PushModel
import RelayProgram
import PushTesting

/// Runs a trial in a directory of its own, which is removed afterwards, and reports why it could not be made.
///
/// - Parameter kept: the caller's own directory, which is kept.
func inTrialDirectory(
    _ name: String, kept: String? = nil, _ shell: Shell,
    _ trial: (_ directory: String) async throws -> Ending
) async throws -> Ending {
    let directory =
        kept.map { joinPath(shell.facts.workingDirectory, $0) }
        ?? FileManager.default.temporaryDirectory
        .appending(component: "sealbell-\(name)-\(shell.facts.processID)").path
    do {
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch {
        throw CommandFailure(.failed, "\(directory): The directory could not be made.")
    }
    defer {
        // If it cannot be removed, the system's own cleaning does it.
        if kept == nil { try? FileManager.default.removeItem(atPath: directory) }
    }
    return try await explained { try await trial(directory) }
}

/// Runs a measurement or trial, and reports why it could not be made.
func explained(_ run: () async throws -> Ending) async throws -> Ending {
    do {
        return try await run()
    } catch let error as BenchError {
        throw failure(error)
    } catch let fault as PostgresClusterFault {
        throw CommandFailure(.unavailable, "PostgreSQL: \(fault)")
    } catch let error as any PushError {
        throw CommandFailure(.failed, "\(error.sentence) [\(error.codeText)]")
    }
}

/// A small input file of a trial, as text.
func trialFile(_ name: String, _ shell: Shell) throws(CommandFailure) -> String {
    let path = joinPath(shell.facts.workingDirectory, name)
    do throws(FileFault) {
        return String(decoding: try readFile(path, limitBytes: 1 << 20), as: UTF8.self)
    } catch {
        throw CommandFailure(.failed, "\(path): \(error.sentence)")
    }
}

/// The relay's program: `SEALBELL_BIN`, else `sealbell` in this program's directory.
func relayExecutable(_ shell: Shell) throws(CommandFailure) -> String {
    if let named = shell.facts.environment["SEALBELL_BIN"], !named.isEmpty {
        return joinPath(shell.facts.workingDirectory, named)
    }
    do throws(BenchError) {
        let own = try RelayPlan.ownExecutable()
        return own.prefix(through: own.lastIndex(of: "/") ?? own.startIndex) + "sealbell"
    } catch {
        throw failure(error)
    }
}
