#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import Foundation
import Synchronization
import Testing

/// The built program, started as a process of its own.
final class Program: Sendable {
    let pid: Int32
    private let process: Process
    private let folder: String
    private let stream: AsyncStream<String>
    private let written = Mutex("")
    private let ended: AsyncStream<Int32>

    /// The program lies beside the bundle that holds these tests, unless another is named.
    static let path: String? = {
        if let named = ProcessInfo.processInfo.environment["SEALBELL_BIN"] { return named }
        let folder = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().path
        let place = ["/proc/self/exe"].compactMap {
            try? FileManager.default.destinationOfSymbolicLink(atPath: $0)
        }.map { URL(filePath: $0).deletingLastPathComponent().path }
        return ([folder] + place).map { $0 + "/sealbell" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }()

    /// - Parameter before: what the shell does last before it becomes the program.
    init(_ arguments: [String], in folder: String, before: String = "") throws {
        let process = Process()
        // A shell writes down what it inherits, and becomes the program.
        process.executableURL = URL(filePath: "/bin/sh")
        process.arguments =
            [
                "-c", "readlink /proc/$$/fd/* > inherited; \(before) exec \"$@\"", "sh",
                try #require(Self.path)
            ] + arguments
        process.currentDirectoryURL = URL(filePath: folder)
        process.environment = ["PATH": "/usr/bin:/bin", "HOME": folder]
        let pipe = Pipe()
        process.standardError = pipe
        process.standardOutput = pipe
        let (stream, continuation) = AsyncStream.makeStream(of: String.self)
        self.stream = stream
        pipe.fileHandleForReading.readabilityHandler = { handle in
            let data = handle.availableData
            guard !data.isEmpty else {
                handle.readabilityHandler = nil
                continuation.finish()
                return
            }
            continuation.yield(String(decoding: data, as: UTF8.self))
        }
        let (ended, end) = AsyncStream.makeStream(of: Int32.self)
        self.ended = ended
        process.terminationHandler = { process in
            end.yield(
                process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus)
            end.finish()
        }
        try process.run()
        pid = process.processIdentifier
        self.process = process
        self.folder = folder
    }

    /// What stood behind its descriptors when it began: other tests' sockets too, for they are opened without
    /// `O_CLOEXEC`, and may be while this process was made.
    func inherited() throws -> Set<Substring> {
        Set(try String(contentsOfFile: folder + "/inherited", encoding: .utf8).split(separator: "\n"))
    }

    /// Reads what it writes until it has said `words`; false when it ended first.
    func says(_ words: String) async -> Bool {
        var text = ""
        for await piece in stream {
            text += piece
            written.withLock { $0 += piece }
            if text.contains(words) { return true }
        }
        return false
    }

    /// What it wrote, as far as ``says(_:)`` and ``silence()`` have read it.
    var text: String { written.withLock { $0 } }

    /// Reads on until it ends.
    func silence() async { for await piece in stream { written.withLock { $0 += piece } } }

    func signal(_ number: Int32) { kill(pid, number) }

    /// How it ended: its exit status, or less than 0 for a signal.
    func status() async -> Int32? {
        for await status in ended { return status }
        return nil
    }
}
