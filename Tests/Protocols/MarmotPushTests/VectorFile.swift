import Foundation
import PushModel
import PushTesting
import WireFormats

/// The vectors of this protocol, from `SEALBELL_VECTORS` or from our own copy; the official ones of NIP-44
/// are others' and are read where they lie.
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
        guard let data = FileManager.default.contents(atPath: (named ?? tests + "/Vectors") + "/" + name)
        else {
            if named != nil {
                say("vectors \(name): not in the directory that was named; skipped")
                return .skipped
            }
            throw Fault.noFile
        }
        let json = try JSONValue.parse(Array(data), limitBytes: 64 << 20)
        guard let set = json["set"]?.string, let now = json["conventions"]?["now"]?.int64 else {
            throw Fault.notOurs
        }
        return .file(VectorFile(json: json, set: set, now: UnixTime(seconds: now)))
    }

    /// `nip44.vectors.json`: in the directory that was named or our own, else in `../shared/vectors` beside
    /// the tree. `nil`, and a line that says so, where it is nowhere: nobody may copy it into this
    /// repository.
    static func official() throws -> JSONValue? {
        let named = ProcessInfo.processInfo.environment["SEALBELL_VECTORS"]
        for directory in [named ?? tests + "/Vectors", tests + "/../../shared/vectors"] {
            if let data = FileManager.default.contents(atPath: directory + "/nip44.vectors.json") {
                return try JSONValue.parse(Array(data), limitBytes: 64 << 20)
            }
        }
        say("vectors nip44.vectors.json: neither with the vectors nor in ../shared/vectors; skipped")
        return nil
    }

    private static let tests = repositoryRoot().path + "/Tests"

    /// A line of the test's own report.
    static func say(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }
}
