import Foundation
import PushTesting
import Synchronization
import Testing

/// The built program, started as a process of its own.
final class Program: Sendable {
    let pid: Int32
    private let process: Process
    private let folder: String
    private let output = Noted(Output())
    private let ended = Noted<Int32?>(nil)
    /// How many bytes of the output a test has read.
    private let heard = Mutex(0)

    private struct Output {
        var text = ""
        var hasEnded = false
    }

    /// The program lies beside the bundle that holds these tests, unless another is named.
    static let path = ProcessInfo.processInfo.environment["SEALBELL_BIN"] ?? beside("sealbell")
    /// The one with benches and trials.
    static let bench = beside("sealbell-bench")

    /// One at a time: `Process.run()` crashed once in a copy of memory while tests started many programs.
    private static let starts = Mutex(())

    private static func beside(_ name: String) -> String? {
        let folder = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().path
        let place = ["/proc/self/exe"].compactMap {
            try? FileManager.default.destinationOfSymbolicLink(atPath: $0)
        }.map { URL(filePath: $0).deletingLastPathComponent().path }
        return ([folder] + place).map { "\($0)/\(name)" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    /// - Parameters:
    ///   - path: of the program.
    ///   - before: what the shell does last before it becomes the program.
    init(
        _ arguments: [String], of path: String? = Program.path, in folder: String, before: String = ""
    ) throws {
        let process = Process()
        // A shell writes down what it inherits, and becomes the program.
        process.executableURL = URL(filePath: "/bin/sh")
        process.arguments =
            [
                "-c", "readlink /proc/$$/fd/* > inherited; \(before) exec \"$@\"", "sh",
                try #require(path)
            ] + arguments
        process.currentDirectoryURL = URL(filePath: folder)
        process.environment = ["PATH": "/usr/bin:/bin", "HOME": folder]
        let pipe = try PrivatePipe()
        process.standardError = pipe.writing
        process.standardOutput = pipe.writing
        let (output, ended) = (output, ended)
        process.terminationHandler = { process in
            ended.set(
                process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus)
        }
        try Self.starts.withLock { _ in try process.run() }
        try pipe.writing.close()
        Thread.detachNewThread { Self.collect(pipe.reading, into: output, until: { ended.value != nil }) }
        pid = process.processIdentifier
        self.process = process
        self.folder = folder
    }

    /// Reads to the end of the output, or until the program has ended and nothing is left to read: somebody
    /// else's program may have inherited the pipe.
    ///
    /// On a thread of its own. The handler that `FileHandle` offers went without the end of a pipe now and
    /// then, and a test waited for it in vain.
    private static func collect(
        _ pipe: FileHandle, into output: Noted<Output>, until hasEnded: () -> Bool
    ) {
        let descriptor = pipe.fileDescriptor
        var bytes = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            // In this order: what an ended program wrote is there.
            let isLast = hasEnded()
            var look = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            let found = poll(&look, 1, isLast ? 0 : 100)
            if found == 0 {
                if isLast { break }
                continue
            }
            let count = found < 0 ? -1 : read(descriptor, &bytes, bytes.count)
            if count < 0, errno == EINTR { continue }
            if count <= 0 { break }
            output.change { $0.text += String(decoding: bytes[..<count], as: UTF8.self) }
        }
        output.change { $0.hasEnded = true }
    }

    /// What stood behind its descriptors when it began: other tests' sockets too, for they are opened without
    /// `O_CLOEXEC`, and may be while this process was made.
    func inherited() throws -> Set<Substring> {
        Set(try String(contentsOfFile: folder + "/inherited", encoding: .utf8).split(separator: "\n"))
    }

    /// Reads on in what it writes until it has said `words`; false when it ended first.
    func says(_ words: String, file: String = #fileID, line: Int = #line) async -> Bool {
        func place(_ text: String) -> Range<String.Index>? {
            text[text.utf8.index(text.startIndex, offsetBy: heard.withLock(\.self))...].firstRange(of: words)
        }
        await output.until(for: "a program that says “\(words)”", file: file, line: line) { output in
            output.hasEnded || place(output.text) != nil
        }
        let text = output.value.text
        guard let found = place(text) else { return false }
        heard.withLock { $0 = text.utf8.distance(from: text.startIndex, to: found.upperBound) }
        return true
    }

    /// What it has written.
    var text: String { output.value.text }

    /// Returns when it writes no more.
    func silence(file: String = #fileID, line: Int = #line) async {
        await output.until(for: "the end of a program's output", file: file, line: line, \.hasEnded)
    }

    func signal(_ number: Int32) { kill(pid, number) }

    /// Asks it to end, and expects that it ends well.
    func stop(sourceLocation: SourceLocation = #_sourceLocation) async {
        signal(SIGTERM)
        #expect(await status() == 0, "\(text)", sourceLocation: sourceLocation)
    }

    /// How it ended: its exit status, or less than 0 for a signal.
    func status(file: String = #fileID, line: Int = #line) async -> Int32? {
        await ended.until(for: "a program's end", file: file, line: line) { $0 != nil }
        return ended.value
    }
}
