import Foundation
import PushModel
import PushTesting
import WireFormats

/// The vectors of this protocol, from `SEALBELL_VECTORS` or from our own copy.
struct VectorFile {
    let json: JSONValue
    let set: String
    let now: UnixTime

    enum Found {
        case file(VectorFile)
        /// A directory was named and has no such file.
        case skipped
    }

    enum Fault: Error { case noFile, notOurs }

    /// The files that a directory of vectors may hold.
    private static let names = [
        "zulip.json", "nextcloud.json", "session.json", "status.json", "marmot.json"
    ]

    static var isNamed: Bool { ProcessInfo.processInfo.environment["SEALBELL_VECTORS"] != nil }

    /// The directory that was named, else our own.
    static func load(_ name: String) throws -> Found {
        guard let named = ProcessInfo.processInfo.environment["SEALBELL_VECTORS"] else {
            return .file(try read(own("Vectors/" + name)))
        }
        let files = FileManager.default
        guard files.fileExists(atPath: named + "/" + name) else {
            // A directory that holds no vectors at all was named by mistake.
            guard names.contains(where: { files.fileExists(atPath: named + "/" + $0) }) else {
                throw Fault.noFile
            }
            say("vectors \(name): not in the directory that was named; skipped")
            return .skipped
        }
        return .file(try read(named + "/" + name))
    }

    /// The path of a file below `Tests/`.
    static func own(_ path: String) -> String {
        repositoryRoot().path + "/Tests/" + path
    }

    static func read(_ path: String) throws -> VectorFile {
        guard let data = FileManager.default.contents(atPath: path) else { throw Fault.noFile }
        let json = try JSONValue.parse(Array(data), limitBytes: 64 << 20)
        guard let set = json["set"]?.string, let now = json["now"]?.int64 else { throw Fault.notOurs }
        return VectorFile(json: json, set: set, now: UnixTime(seconds: now))
    }

    /// A line of the test's own report.
    static func say(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }
}
