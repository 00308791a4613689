import Foundation
import PushModel
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

    static func load(_ name: String) throws -> Found {
        let named = ProcessInfo.processInfo.environment["SEALBELL_VECTORS"]
        let own = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Vectors").path
        let path = (named ?? own) + "/" + name
        guard let data = FileManager.default.contents(atPath: path) else {
            if named != nil {
                say("vectors \(name): not in the directory that was named; skipped")
                return .skipped
            }
            throw Fault.noFile
        }
        let json = try JSONValue.parse(Array(data), limitBytes: 64 << 20)
        guard let set = json["set"]?.string, let now = json["now"]?.int64 else { throw Fault.notOurs }
        return .file(VectorFile(json: json, set: set, now: UnixTime(seconds: now)))
    }

    /// A line of the test's own report.
    static func say(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }
}
