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

    /// The file of the directory that was named, else our own.
    ///
    /// - Returns: `nil`, and a printed line, when a directory was named and has other files only.
    package static func load(_ name: String) throws -> VectorFile? {
        guard let named else { return try read(own("Vectors/" + name)) }
        let files = FileManager.default
        guard files.fileExists(atPath: named + "/" + name) else {
            // A directory that holds no vectors at all was named by mistake.
            // A protocol's file has one word and its ending.
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
        // A protocol that knows no time has none in its file: any will do.
        let now = (json["now"] ?? json["conventions"]?["now"])?.int64 ?? 1_800_000_000
        return VectorFile(json: json, set: set, now: UnixTime(seconds: now))
    }

    /// A file that is others', and that nobody may copy into this repository: in the directory that was named
    /// or our own, else in `../shared/vectors` beside the tree.
    ///
    /// - Returns: `nil`, and a printed line, where it is nowhere.
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
