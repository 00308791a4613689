import Foundation

/// The package's targets and what they depend on, as SwiftPM itself reads `Package.swift`.
struct Manifest: Decodable {
    struct Target: Decodable {
        let name: String
        let type: String
        /// From the package's folder.
        let path: String
        let dependencies: [Dependency]

        var isTest: Bool { type == "test" }
        var isProgram: Bool { type == "executable" }

        /// `Packages/SealbellKit/Sources/Protocols/ZulipPush` → `Protocols`, `Sources/Delivery` → `Delivery`.
        var folder: String {
            let parts = path.split(separator: "/")
            let top = parts.lastIndex(of: "Sources") ?? parts.startIndex
            return parts[top...].dropFirst().first.map(String.init) ?? ""
        }
        /// Its layer's index in `Layers.rows`; `nil` beside them.
        var row: Int? { Layers.rows.firstIndex { $0.contains(folder) } }
    }

    /// A target of ours (`byName`, `target`) or a product of another package.
    struct Dependency: Decodable {
        let name: String
        let isProduct: Bool

        /// As an import writes it: `sealbell-bench` is the module `sealbell_bench`.
        var module: String { name.replacing("-", with: "_") }

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

    /// This package's; a run reads it once.
    static let oursJSON = Result { try dump(Tree.root) }
    static let ours = Result { try JSONDecoder().decode(Manifest.self, from: oursJSON.get()) }

    /// What `swift package dump-package` writes.
    ///
    /// `swift test` holds the lock of `.build` while it runs us, and a second SwiftPM in the same directory
    /// would wait for it for ever; so this one gets a scratch directory of its own, which it leaves empty
    /// because evaluating a manifest resolves and builds nothing.
    static func dump(_ root: URL) throws -> Data {
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
        return json
    }

    subscript(name: String) -> Target? { targets.first { $0.name == name } }

    /// The target that a file of the package belongs to.
    func target(of path: String) -> Target? {
        targets.filter { path.hasPrefix($0.path + "/") }.max { $0.path.count < $1.path.count }
    }

    // MARK: arrows

    /// Products of other packages that `target` stands on, directly or not.
    func products(below target: String) -> Set<String> {
        var products: Set<String> = []
        var seen: Set<String> = []
        var open = [target]
        while let name = open.popLast() {
            for dependency in self[name]?.dependencies ?? [] where seen.insert(dependency.name).inserted {
                if dependency.isProduct {
                    products.insert(dependency.name)
                } else {
                    open.append(dependency.name)
                }
            }
        }
        return products
    }

    /// Targets of ours that `target` stands on, directly or not.
    func closure(of target: String) -> Set<String> {
        var seen: Set<String> = []
        var next = [target]
        while let name = next.popLast() {
            for dependency in self[name]?.dependencies ?? []
            where !dependency.isProduct && seen.insert(dependency.name).inserted {
                next.append(dependency.name)
            }
        }
        return seen
    }

    /// What a protocol stands on and no phone has, as `protocol ⇢ product`.
    func serverProducts() -> [String] {
        targets.filter { !$0.isTest && $0.folder == Layers.protocols }.flatMap { target in
            products(below: target.name).subtracting(Layers.phoneProducts).sorted().map {
                "\(target.name) ⇢ \($0)"
            }
        }
    }

    /// Targets of ours in a folder that is of no layer.
    func strangers() -> [String] {
        targets.filter { !$0.isTest && $0.row == nil && $0.folder != Layers.beside }.map(\.name)
    }

    /// Dependencies that point up, or sideways between neighbours.
    func wrongArrows() -> [String] {
        targets.filter { !$0.isTest }.flatMap { target in
            target.dependencies.filter { dependency in
                if target.name == Layers.bottom { return true }
                guard !dependency.isProduct, let below = self[dependency.name] else { return false }
                return !Self.mayPoint(from: target, to: below)
            }.map { "\(target.name) → \($0.name)" }
        }
    }

    private static func mayPoint(from target: Target, to below: Target) -> Bool {
        // A program is run, and nobody's part.
        if below.isProgram { return false }
        let top = Layers.rows.count - 1
        switch (target.row, below.row) {
        case (nil, nil): return true
        // What stands beside the relay sees all below its wiring; programs see that too.
        case (nil, let to?): return to < top || target.isProgram
        case (let from?, nil): return from == top && Layers.inProduct.contains(below.name)
        case (let from?, let to?):
            if to != from { return to < from }
            return from != Layers.neighbours
                || (target.folder == below.folder && Layers.shared.contains(below.name))
        }
    }

    // MARK: imports

    /// What a file may import. Tests may use the whole toolchain.
    private func allowed(_ target: Target) -> Set<String> {
        var allowed = Layers.toolchain.union(target.dependencies.map(\.module))
        if target.isTest || Layers.foundation.contains(target.name) {
            allowed.formUnion(["Foundation", "FoundationEssentials"])
        }
        if target.isTest { allowed.formUnion(["FoundationXML", "Testing"]) }
        return allowed
    }

    /// Imports that the file's target does not declare.
    func undeclared(_ file: SwiftText) -> [Violation] {
        guard let target = target(of: file.path) else {
            return [Violation(rule: "layers", path: file.path, line: 1, text: "a file of no target")]
        }
        let allowed = allowed(target)
        return file.imports.filter { !allowed.contains($0.module) }.map {
            Violation(
                rule: "import", path: file.path, line: $0.line, text: "\(target.name) imports \($0.module)")
        }
    }

    /// Dependencies that a target declares and none of its files imports or, in C, includes by a header of the
    /// target's name. Programs are named to be built.
    func unused(_ files: [SwiftText], c: [(path: String, text: String)] = []) -> [String] {
        var imported: [String: Set<String>] = [:]
        for file in c {
            guard let target = target(of: file.path) else { continue }
            imported[target.name, default: []].formUnion(
                file.text.matches(of: /(?m)^#include "(\w+)\.h"/).map { String($0.output.1) })
        }
        for file in files {
            guard let target = target(of: file.path) else { continue }
            imported[target.name, default: []].formUnion(file.imports.map(\.module))
        }
        return targets.flatMap { target in
            target.dependencies.filter { dependency in
                imported[target.name]?.contains(dependency.module) != true
                    && self[dependency.name]?.isProgram != true
            }.map { "\(target.name) declares \($0.name)" }
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
