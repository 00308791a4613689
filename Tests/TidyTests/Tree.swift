import Foundation

/// The repository that these tests were built from.
enum Tree {
    static let root = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// All files with one of these endings below `folder`, by path; none when the folder is not there.
    static func texts(below folder: String, endings: Set<String>) throws -> [(path: String, text: String)] {
        let base = root.appending(path: folder)
        guard let names = FileManager.default.enumerator(atPath: base.path()) else { return [] }
        var found: [(String, String)] = []
        for case let name as String in names where endings.contains((name as NSString).pathExtension) {
            let place = base.appending(path: name)
            guard try place.resourceValues(forKeys: [.isRegularFileKey]).isRegularFile == true else {
                continue
            }
            let text = try String(contentsOf: place, encoding: .utf8)
            found.append(("\(folder)/\(name)", text))
        }
        return found.sorted { $0.0 < $1.0 }
    }

    /// Where targets of ours lie: the kit's in the package that apps take.
    static let sourceFolders = ["Sources", Kit.folder + "/Sources"]

    /// All files of targets with one of these endings.
    static func sourceTexts(endings: Set<String>) throws -> [(path: String, text: String)] {
        try sourceFolders.flatMap { try texts(below: $0, endings: endings) }
    }

    // Many rules read the same files, and blanking their comments takes seconds.
    private static let read = [sourceFolders, ["Tests"]].map { folders in
        Result {
            try folders.flatMap { try texts(below: $0, endings: ["swift"]) }.map {
                SwiftText(path: $0.path, text: $0.text)
            }
        }
    }

    static func sources() throws -> [SwiftText] { try read[0].get() }
    static func tests() throws -> [SwiftText] { try read[1].get() }

    static func exists(_ path: String) -> Bool {
        FileManager.default.fileExists(atPath: root.appending(path: path).path())
    }

    static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }
}
