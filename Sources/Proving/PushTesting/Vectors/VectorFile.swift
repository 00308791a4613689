import Foundation
package import PushModel
package import WireFormats

/// A file of a protocol's vectors, from `SEALBELL_VECTORS` or from our own copy.
package struct VectorFile: Sendable {
    package let json: JSONValue
    package let set: String
    package let now: UnixTime

    package enum Fault: Error { case noFile, notOurs }

    package init(json: JSONValue, set: String, now: UnixTime = .distantPast) {
        self.json = json
        self.set = set
        self.now = now
    }

    private static var named: String? { ProcessInfo.processInfo.environment["SEALBELL_VECTORS"] }
    package static var isNamed: Bool { named != nil }

    /// The file from the named directory, else our own.
    ///
    /// - Returns: `nil`, with a printed line, if a directory was named and has only other files.
    package static func load(_ name: String) throws -> VectorFile? {
        guard let named else { return try read(own("Vectors/" + name)) }
        let files = FileManager.default
        guard files.fileExists(atPath: named + "/" + name) else {
            // A directory without any vectors was named by mistake. The name of a protocol's file is one word
            // and the extension.
            let others = try files.contentsOfDirectory(atPath: named).filter { $0.hasSuffix(".json") }
            guard others.contains(where: { $0.split(separator: ".").count == 2 }) else { throw Fault.noFile }
            say("vectors \(name): not in the directory that was named; skipped")
            return nil
        }
        return try read(named + "/" + name)
    }

    /// The path of a file below `Tests/`.
    package static func own(_ path: String) -> String { repositoryRoot().path + "/Tests/" + path }

    package static func read(_ path: String) throws -> VectorFile {
        let json = try parse(path)
        guard let set = json["set"]?.string else { throw Fault.notOurs }
        // The file of a protocol without times has none; then any time will do.
        let now = (json["now"] ?? json["conventions"]?["now"])?.int64 ?? 1_800_000_000
        return VectorFile(json: json, set: set, now: UnixTime(seconds: now))
    }

    /// Somebody else's file, which may not be copied into this repository: in the named directory or our own,
    /// else in `../shared/vectors` beside the tree.
    ///
    /// - Returns: `nil`, with a printed line, if it is not found.
    package static func foreign(_ name: String) throws -> JSONValue? {
        let places = [named ?? own("Vectors"), own("../../shared/vectors")].map { $0 + "/" + name }
        guard let path = places.first(where: { FileManager.default.fileExists(atPath: $0) }) else {
            say("vectors \(name): neither with the vectors nor in ../shared/vectors; skipped")
            return nil
        }
        return try parse(path)
    }

    private static func parse(_ path: String) throws -> JSONValue {
        guard let data = FileManager.default.contents(atPath: path) else { throw Fault.noFile }
        return try JSONValue.parse(Array(data), limitBytes: 64 << 20)
    }

    /// A line of the test's own report.
    package static func say(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }
}
