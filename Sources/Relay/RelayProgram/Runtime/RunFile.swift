#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import Foundation

/// `run.json`: where a running server is, for anyone who may read its state directory
/// (docs/guides/operating.md).
///
/// Written when the server is ready, removed when it ends. A file that a killed process left behind is
/// known by its process id and that process's start.
struct RunFile: Codable, Sendable, Equatable {
    static let name = "run.json"
    /// A relay of a thousand listeners stays far below.
    private static let limitBytes = 4 << 20

    var pid: Int32
    /// Clock ticks between the machine's start and the process's; 0 where the system does not tell. With
    /// `pid` it names one process for ever, for process ids are used again.
    var pidStart: UInt64
    /// Listener → base URL. Further listeners (simulators) stand under names of their own.
    var urls: [String: String]
    /// What those of the sandbox's URLs are for that nobody would guess.
    var purposes: [String: String]?
    /// PEM of the authority that signed our certificates, if it was made on the spot.
    var ca: String?
    /// Instance → public keys, in base64, as devices need them.
    var publicKeys: [String: [String]]
    /// Instance → the word of its protocol.
    var protocols: [String: String]?
    /// App → bundle ids and Firebase projects.
    var apps: [String: [String]]
    /// The file of the admin listener's token, where it asks for one: for anyone who may read that too.
    var tokenFile: String?

    /// The last reload; `nil`: there was none since the start.
    var reload: Reload?

    /// What became of a reload: for the command that asked for it.
    struct Reload: Codable, Sendable, Equatable {
        /// From 1, each one more.
        var number: Int
        /// What is wrong, in the words of the log; empty: the new configuration is in force.
        var faults: [String]
    }

    enum CodingKeys: String, CodingKey {
        case pid, urls, purposes, ca, protocols, apps, reload
        case tokenFile = "token_file"
        case pidStart = "pid_start"
        case publicKeys = "public_keys"
    }

    /// The file of this very process.
    init(
        urls: [String: String], ca: String?, publicKeys: [String: [String]], apps: [String: [String]],
        tokenFile: String? = nil, purposes: [String: String]? = nil, protocols: [String: String]? = nil,
        pid: Int32 = getpid()
    ) {
        self.protocols = protocols
        self.tokenFile = tokenFile
        self.purposes = purposes
        self.pid = pid
        pidStart = Self.start(of: pid) ?? 0
        self.urls = urls
        self.ca = ca
        self.publicKeys = publicKeys
        self.apps = apps
    }

    /// Mode 0600, in one step that a crash cannot halve.
    func write(state: String) throws(FileFault) {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .prettyPrinted, .withoutEscapingSlashes]
        let text: Data
        do {
            text = try encoder.encode(self)
        } catch {
            throw .broken
        }
        try writeFile(joinPath(state, Self.name), text + [0x0A], replacing: true)
    }

    /// Removes the file of this process; one that another process has written since stays.
    func remove(state: String) {
        // Unreadable or gone: then there is nothing of ours to take away.
        guard let current = try? Self.stored(state: state), current.pid == pid else { return }
        unlink(joinPath(state, Self.name))
    }

    enum Found: Sendable, Equatable {
        case running(RunFile)
        /// Left behind by a process that is no more.
        case stale(pid: Int32)
        case none
    }

    /// Who serves from this state directory.
    static func find(state: String) throws(FileFault) -> Found {
        let file: RunFile
        do throws(FileFault) {
            file = try stored(state: state)
        } catch .missing {
            return .none
        }
        return file.isRunning ? .running(file) : .stale(pid: file.pid)
    }

    private static func stored(state: String) throws(FileFault) -> RunFile {
        let bytes = try readFile(joinPath(state, name), limitBytes: limitBytes)
        do {
            return try JSONDecoder().decode(RunFile.self, from: Data(bytes))
        } catch {
            throw .broken
        }
    }

    /// Whether the process that wrote this still runs.
    var isRunning: Bool {
        // A process of another user answers EPERM, and is there all the same.
        guard pid > 0, kill(pid, 0) == 0 || errno == EPERM else { return false }
        guard pidStart != 0, let start = Self.start(of: pid) else { return true }
        return start == pidStart
    }

    /// Field 22 of `/proc/PID/stat`, `starttime` (proc(5)); `nil` where there is no such file.
    static func start(of pid: Int32) -> UInt64? {
        guard let bytes = readPseudoFile("/proc/\(pid)/stat"),
            let text = String(validating: bytes, as: UTF8.self), let end = text.lastIndex(of: ")")
        else { return nil }
        // The name in parentheses may hold spaces; 20 fields lie between it and the start.
        let fields = text[text.index(after: end)...].split(separator: " ")
        return fields.count > 19 ? UInt64(fields[19]) : nil
    }
}

/// What the kernel says in a file of `/proc`, up to the limit; `nil` when it says nothing. It gives about a
/// page with each read, however much is asked for.
func readPseudoFile(_ path: String, limitBytes: Int = 4096) -> [UInt8]? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: limitBytes)
    var count = 0
    while count < limitBytes {
        let more = bytes[count...].withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
        guard more > 0 else { break }
        count += more
    }
    return count > 0 ? Array(bytes.prefix(count)) : nil
}
