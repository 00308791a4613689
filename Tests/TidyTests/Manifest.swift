import Foundation

/// The package's targets and what they depend on, as SwiftPM itself reads `Package.swift`.
struct Manifest: Decodable {
    struct Target: Decodable {
        let name: String
        let type: String
        let dependencies: [Dependency]
    }

    /// A target of ours (`byName`, `target`) or a product of another package.
    struct Dependency: Decodable {
        let name: String
        let isProduct: Bool

        private enum Kind: String, CodingKey { case byName, target, product }

        init(name: String, isProduct: Bool) {
            self.name = name
            self.isProduct = isProduct
        }

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: Kind.self)
            let kind = try container.allKeys.first.unwrapped
            // The array's first element is the name; what follows is of mixed type and not needed.
            var parts = try container.nestedUnkeyedContainer(forKey: kind)
            name = try parts.decode(String.self)
            isProduct = kind == .product
        }
    }

    let targets: [Target]

    /// Runs `swift package dump-package`.
    ///
    /// `swift test` holds the lock of `.build` while it runs us, and a second SwiftPM in the same directory
    /// would wait for it for ever; so this one gets a scratch directory of its own, which it leaves empty
    /// because evaluating a manifest resolves and builds nothing.
    static func load(_ root: URL) throws -> Manifest {
        let scratch = FileManager.default.temporaryDirectory.appending(path: "tidy-\(UUID().uuidString)")
        defer {
            // Left-overs of a temporary directory are the system's to sweep.
            try? FileManager.default.removeItem(at: scratch)
        }
        let out = Pipe()
        // Another test's program that held this open would keep us reading.
        for end in [out.fileHandleForReading, out.fileHandleForWriting] {
            _ = fcntl(end.fileDescriptor, F_SETFD, FD_CLOEXEC)
        }
        let dump = Process()
        dump.executableURL = URL(filePath: "/usr/bin/env")
        dump.arguments = [
            "swift", "package", "--package-path", root.path(), "--scratch-path", scratch.path(),
            "dump-package"
        ]
        dump.standardOutput = out
        dump.standardError = FileHandle.nullDevice
        dump.standardInput = FileHandle.nullDevice
        try dump.run()
        let json = try out.fileHandleForReading.readToEnd() ?? Data()
        dump.waitUntilExit()
        return try JSONDecoder().decode(Manifest.self, from: json)
    }

    /// Everything that `target` stands on: our targets, and products of other packages by name.
    func closure(of target: String) -> Set<String> {
        var seen: Set<String> = []
        var open = [target]
        while let name = open.popLast() {
            for dependency in targets.first(where: { $0.name == name })?.dependencies ?? []
            where seen.insert(dependency.name).inserted && !dependency.isProduct {
                open.append(dependency.name)
            }
        }
        return seen
    }

    /// Server-only products below a protocol target.
    func serverProducts(below target: String) -> Set<String> {
        closure(of: target).filter(Layers.isServerOnly)
    }

    /// Dependencies that point up, or sideways on layer 2.
    func upwardArrows() -> [String] {
        targets.flatMap { target in
            target.dependencies.compactMap { dependency -> String? in
                guard let from = Layers.level[target.name], let to = Layers.level[dependency.name] else {
                    return nil
                }
                let isDown = to < from || (to == from && from != 2)
                return isDown ? nil : "\(target.name) → \(dependency.name)"
            }
        }
    }
}

/// A value that was expected to be there was not.
struct Absent: Error {}

extension Optional {
    fileprivate var unwrapped: Wrapped {
        get throws {
            guard let self else { throw Absent() }
            return self
        }
    }
}
