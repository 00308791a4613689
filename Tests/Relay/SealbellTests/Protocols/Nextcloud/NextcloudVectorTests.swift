import Foundation
import PushModel
import PushTesting
import Testing
import WebClient
import WireFormats

@testable import RelayProgram

/// Requests of real apps and servers, byte for byte, over real sockets. What a push service gets is looked at
/// where the relay's role is tested; here it is what comes back.
@Suite("Nextcloud's own requests, over sockets", .timeLimit(.minutes(30)))
struct NextcloudVectorTests {
    private struct Case {
        let name: String
        let setup: [JSONValue]
        let request: JSONValue
        /// Any of these is right.
        let outcomes: [JSONValue]
    }

    /// Those for which no Nextcloud server has to answer.
    private static func cases(_ json: JSONValue) -> [Case] {
        let devices = json["devices"]?.array ?? []
        func device(_ name: String) -> JSONValue? { devices.first { $0["name"]?.string == name } }
        return (devices + (json["notifications"]?.array ?? [])).compactMap { row in
            let setup = (row["setup"]?.array ?? []).compactMap(\.string).compactMap { device($0)?["request"] }
            guard row["identity_proof"] == nil, let request = row["request"], let name = row["name"]?.string,
                let expected = row["expect"]
            else { return nil }
            return Case(
                name: name, setup: setup, request: request,
                outcomes: row["accept_any_of"]?.array ?? [expected])
        }
    }

    /// Every case has an instance of its own, so that none sees another's devices.
    private static func text(_ count: Int) -> String {
        let names = (0..<count).map { "case-\($0)" }
        let apps = RelayStage.nextcloudApps.replacing(
            "[cloud]", with: "[\(names.joined(separator: ", "))]")
        return names.reduce(apps) {
            $0 + "  \($1): { protocol: nextcloud, apps: [talk, files], clients: { nextcloud-talk: talk, "
                + "nextcloud-ios: files, nextcloud-android: files } }\n"
        }
    }

    private static func play(
        _ request: JSONValue, at instance: Int, _ relay: RunningRelay
    ) async throws -> LocalCall.Answer {
        let headers = (request["headers"]?.object?.members ?? []).compactMap { header in
            header.value.string.map { (name: header.name, value: Secret($0.utf8)) }
        }
        let body = request["body"]?.string.map { Secret($0.utf8) }
        return try await relay.door().ask(
            try #require(request["method"]?.string),
            "/case-\(instance)" + (try #require(request["path"]?.string)), headers: headers, body: body)
    }

    private static func fits(_ answer: LocalCall.Answer, _ outcome: JSONValue) -> Bool {
        guard Int64(answer.status) == outcome["status"]?.int64 else { return false }
        guard let json = outcome["json"] else { return true }
        let unknown = Set((json["unknown"]?.array ?? []).compactMap(\.string))
        return answer.failed == json["failed"]?.int64 && Set(answer.unknown ?? []) == unknown
    }

    @Test("Each is answered as its vector says")
    func all() async throws {
        guard let json = try VectorFile.load("nextcloud.json")?.json else { return }
        let cases = Self.cases(json)
        #expect(cases.count > 90)
        try await RelayStage.running(Self.text(cases.count)) { relay in
            for (index, one) in cases.enumerated() {
                for request in one.setup { _ = try await Self.play(request, at: index, relay) }
                let answer = try await Self.play(one.request, at: index, relay)
                let isRight = one.outcomes.contains { Self.fits(answer, $0) }
                #expect(isRight, "\(one.name): \(answer.status) \(answer.text)")
            }
        }
    }
}
