import Foundation
import Testing

/// The manifest of the package that apps take, and ours, which names the same folders
/// (docs/decisions/0141-two-manifests-one-source.md).
enum Kit {
    static let folder = "Packages/SealbellKit"
    /// What the kit may ask for. On Apple hosts packages bring the C libraries too.
    static var packages: Set<String> {
        #if os(macOS)
        ["swift-crypto", "swift-sodium", "swift-secp256k1"]
        #else
        ["swift-crypto"]
        #endif
    }

    /// Its manifest as SwiftPM reads it; a run reads it once.
    static let json = Result { try Manifest.dump(Tree.root.appending(path: folder)) }

    /// What `swift package dump-package` wrote, as far as it is compared.
    private struct Dump {
        let whole: [String: Any]

        init(_ json: Data) throws {
            guard let whole = try JSONSerialization.jsonObject(with: json) as? [String: Any] else {
                throw Absent()
            }
            self.whole = whole
        }

        func rows(_ key: String) -> [String: [String: Any]] {
            let rows = whole[key] as? [[String: Any]] ?? []
            return Dictionary(rows.map { ($0["name"] as? String ?? "", $0) }) { first, _ in first }
        }

        /// The lowest version that is allowed of each package.
        func packages() -> [String: String] {
            var versions: [String: String] = [:]
            for row in whole["dependencies"] as? [[String: Any]] ?? [] {
                let kinds = row.values.compactMap { ($0 as? [[String: Any]])?.first }
                for package in kinds {
                    let requirement = package["requirement"] as? [String: Any]
                    let range = (requirement?["range"] as? [[String: Any]])?.first
                    let exact = (requirement?["exact"] as? [String])?.first
                    versions[package["identity"] as? String ?? "?"] =
                        range?["lowerBound"] as? String ?? exact ?? "any"
                }
            }
            return versions
        }
    }

    /// Where the two disagree about what both have, and what the kit has beyond what it may; empty when they agree.
    static func differences(ours: Data, kit: Data) throws -> [String] {
        let (ours, kit) = (try Dump(ours), try Dump(kit))
        var found: [String] = []
        for key in ["platforms", "swiftLanguageVersions", "toolsVersion", "cLanguageStandard"]
        where try !same(ours.whole[key], kit.whole[key]) {
            found.append("\(key) differ")
        }
        let (shared, targets) = (
            ours.rows("targets").filter { ($0.value["path"] as? String ?? "").hasPrefix(folder + "/") },
            kit.rows("targets").mapValues { target in
                target.merging(["path": "\(folder)/\(target["path"] as? String ?? "")"]) { $1 }
            }
        )
        found += try differences(shared, targets, "target")
        let products = ours.rows("products").filter { product in
            (product.value["targets"] as? [String] ?? []).allSatisfy { targets[$0] != nil }
        }
        found += try differences(products, kit.rows("products"), "product")
        let versions = ours.packages()
        for (package, version) in kit.packages().sorted(by: { $0.key < $1.key }) {
            if !packages.contains(package) { found.append("the kit asks for \(package)") }
            if versions[package] != version { found.append("\(package) \(version)") }
        }
        return found
    }

    private static func differences(
        _ ours: [String: [String: Any]], _ kit: [String: [String: Any]], _ kind: String
    ) throws -> [String] {
        try Set(ours.keys).union(kit.keys).sorted().flatMap { name throws -> [String] in
            guard let one = ours[name], let other = kit[name] else {
                return ["\(kind) \(name) stands in one manifest alone"]
            }
            return try Set(one.keys).union(other.keys).sorted().filter { try !same(one[$0], other[$0]) }
                .map {
                    "\(kind) \(name): \($0) differ"
                }
        }
    }

    /// As text, because values of JSON are of many types.
    private static func same(_ one: Any?, _ other: Any?) throws -> Bool {
        func text(_ value: Any?) throws -> Data {
            try JSONSerialization.data(withJSONObject: [value ?? NSNull()], options: .sortedKeys)
        }
        return try text(one) == text(other)
    }

    /// What a manifest says for Apple hosts and for the others: the half that this host does not read too.
    static func hosts(_ manifest: String) -> [String] {
        manifest.matches(of: #/(?ms)^\#if os\(macOS\)\n.*?^\#endif\n/#).map { String($0.output) }
    }
}

@Suite("The kit's manifest", .timeLimit(.minutes(30)))
struct KitManifestTests {
    @Test("It says what ours says of the same targets, and asks for no package but swift-crypto")
    func agrees() throws {
        let (ours, kit) = (try Manifest.oursJSON.get(), try Kit.json.get())
        let found = try Kit.differences(ours: ours, kit: kit)
        #expect(found.isEmpty, "\(found.joined(separator: "\n"))")
        let manifest = try JSONDecoder().decode(Manifest.self, from: kit)
        // And on Linux two system libraries: decision 0141 says how many.
        #expect(manifest.targets.filter { $0.type != "system" }.count == 12)
        let closure = manifest.targets.reduce(into: Set<String>()) {
            $0.formUnion(manifest.closure(of: $1.name))
        }
        #expect(closure.subtracting(manifest.targets.map(\.name)).isEmpty)
    }

    @Test(
        "A manifest that says something else is found",
        arguments: [
            (
                "InferIsolatedConformances", "ImplicitOpenExistentials",
                "target SealbellKit: settings differ"
            ),
            ("libsodium-dev", "libsodium-old", "target Clibsodium: providers differ"),
            ("\"RSAKeys\"", "\"KeysOfRSA\"", "target RSAKeys stands in one manifest alone"),
            ("Protocols/ZulipPush", "Protocols/Zulip", "target ZulipPush: path differ"),
            ("\"SealbellKit\",", "\"PushModel\",", "target ZulipPush: dependencies differ"),
            ("swift-crypto", "swift-nio", "the kit asks for swift-nio"),
            ("15.0", "26.0", "platforms differ")
        ])
    func differs(_ word: String, _ other: String, _ finding: String) throws {
        let kit = try #require(String(data: Kit.json.get(), encoding: .utf8))
        let changed = Data(kit.replacing(word, with: other).utf8)
        let found = try Kit.differences(ours: Manifest.oursJSON.get(), kit: changed)
        #expect(found.contains(finding), "\(found)")
    }

    @Test("Of Apple hosts, which nothing here reads, it says letter by letter the same")
    func hosts() throws {
        let ours = Kit.hosts(try Tree.text("Package.swift"))
        let kit = Kit.hosts(try Tree.text(Kit.folder + "/Package.swift"))
        #expect(kit.count == 1 && kit.first?.contains("#else") == true)
        #expect(ours == kit)
    }
}
