import Foundation
import NextcloudPush
import PushTesting
import SessionPush
import Testing
import WebClient
import WireFormats
import ZulipPush

@testable import RelayProgram

/// The pages in docs/openapi beside the routes that there are. That of an origin server is held against a
/// running one by `scripts/interop`.
@Suite("OpenAPI pages", .timeLimit(.minutes(30)))
struct OpenAPITests {
    private static func text(_ path: String) throws -> String {
        try String(contentsOf: repositoryRoot().appending(path: path), encoding: .utf8)
    }

    /// The paths of a page, each with its methods.
    private static func paths(_ page: String) throws -> [String: Set<String>] {
        var paths: [String: Set<String>] = [:]
        var current: String?
        for line in try text("docs/openapi/\(page).yaml").split(separator: "\n") {
            if let match = line.wholeMatch(of: #/  (\/\S*):/#) {
                current = String(match.1)
                paths[String(match.1)] = []
            } else if !line.hasPrefix("  ") {
                current = nil
            } else if let current,
                let match = line.wholeMatch(of: #/    (get|head|post|put|patch|delete):/#)
            {
                paths[current, default: []].insert(String(match.1))
            }
        }
        return paths
    }

    @Test("Every public path of a relay is on its page with its methods, and no other")
    func relay() throws {
        var expected: [String: Set<String>] = [:]
        for path in ZulipPath.allCases { expected[path.rawValue] = [path.method.lowercased()] }
        for endpoint in SessionEndpoint.allCases { expected[endpoint.rawValue] = ["post"] }
        for endpoint in NextcloudPath.Endpoint.allCases {
            let methods: Set<String> = endpoint == .devices ? ["post", "delete"] : ["post"]
            expected["/{instance}/\(endpoint.rawValue)"] = methods
        }
        #expect(try Self.paths("relay") == expected)
    }

    @Test("Every path that the sources of the admin listener name is on its page, and no other")
    func admin() throws {
        let folder = repositoryRoot().appending(path: "Sources/Relay/RelayProgram")
        let files = try #require(FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil))
        var named: Set<String> = []
        for case let file as URL in files where file.pathExtension == "swift" {
            let text = try String(contentsOf: file, encoding: .utf8)
            named.formUnion(text.matches(of: #/\.statistics\("(\/[^"]+)"/#).map { String($0.1) })
            guard file.lastPathComponent.contains("Desk") else { continue }
            named.formUnion(text.matches(of: #/static let \w*[pP]ath = "(\/[^"]+)"/#).map { String($0.1) })
            named.formUnion(text.matches(of: #/case \w+ = "(\/[^"]+)"/#).map { String($0.1) })
        }
        let pages = try Self.text("Sources/Ingress/AdminIngress/Pages/AdminFace.swift")
        named.formUnion(pages.matches(of: #/case \.\w+: "(\/[^"]*)"/#).map { String($0.1) })
        #expect(named.count > 30, "the paths were not found")
        #expect(Set(try Self.paths("admin").keys).symmetricDifference(named).sorted() == [])
    }

    @Test("A running relay answers each path by the methods of the page, and with the members that it names")
    func answers() async throws {
        let page = try Self.paths("admin")
        let form = #/\n    Status:\n      type: object\n      required: \[([^\]]*)\]/#
        let members = try #require(try Self.text("docs/openapi/admin.yaml").firstMatch(of: form)?.1)
            .split { $0 == "," || $0.isWhitespace }.map(String.init)
        try await RelayStage.running { relay in
            for (path, methods) in page {
                let answer = try await relay.admin(path)
                #expect((answer.status == 405) == !methods.contains("get"), "\(path): \(answer.status)")
            }
            let status = try JSONValue.parse(try await relay.admin("/status").body)
            #expect(members.count > 8 && members.filter { status[$0] == nil } == [])
            let lane = status["lanes"]?[0]
            #expect(lane?["connections"] != nil && lane?["reason_at"] != nil)
        }
    }

    @Test("All pages are of this version")
    func versions() throws {
        for page in ["admin", "relay", "origin"] {
            let text = try Self.text("docs/openapi/\(page).yaml")
            #expect(text.contains("\n  version: \(Release.version)\n"), "\(page)")
        }
    }
}
