import Foundation
import PushModel
import PushTesting
import Simulators
import Testing
import WebClient

@testable import RelayProgram

@Suite("What push services say to credentials, asked by the doctor", .timeLimit(.minutes(30)))
struct LiveDoctorTests {
    /// `acme/apns/production org.acme.chat` → verdict and sentence.
    private func look(
        _ stage: RelayStage, _ change: (inout RelayConfiguration) -> Void = { _ in }
    ) async throws -> [String: Finding] {
        var configuration = try stage.configuration()
        change(&configuration)
        let web = WebOptions(allowed: ["127.0.0.0/8"].compactMap { AddressBlock($0) })
        let found = await LiveChecks(
            configuration, .live, web: web, limits: .patient, options: RelaySpans.patient.pushServices
        ).check()
        return Dictionary(found.map { ($0.subject, $0) }, uniquingKeysWith: { $1 })
    }

    private static let production = "acme/apns/production org.acme.chat"
    private static let sandbox = "acme/apns/sandbox org.acme.chat"
    private static let google = "acme/fcm/production"

    /// As the real services do.
    private static func forget(_ stage: RelayStage) {
        for apple in [stage.apns, stage.sandboxAPNs] { apple.turn { $0.learnsDevices = false } }
        stage.fcm.turn { $0.learnsDevices = false }
    }

    @Test("Where all is well, each service refuses the device alone, and nobody gets anything")
    func well() async throws {
        try await RelayStage.with { stage in
            Self.forget(stage)
            let found = try await look(stage)
            #expect(Set(found.keys) == [Self.production, Self.sandbox, Self.google])
            for finding in found.values {
                #expect(finding.severity == .good && finding.area == .live, "\(finding)")
                #expect(finding.sentence.contains("refuses only the device"))
            }
            #expect(stage.apns.deliveries().isEmpty && stage.fcm.deliveries().isEmpty)
        }
    }

    @Test("Key, topic, environment and project are told apart, and each has its cure")
    func faults() async throws {
        try await RelayStage.with { stage in
            Self.forget(stage)
            let topic = try await look(stage) { $0.apps[0].apns?.bundles = ["org.acme.chat", "org.other"] }
            #expect(topic[Self.production]?.severity == .good)
            let key = try await look(stage) { $0.apps[0].apns?.keyID = "Z9Z9Z9Z9Z9" }
            #expect(key[Self.production]?.severity == .fault)
            #expect(key[Self.production]?.sentence.contains("key_id and team belong together") == true)
            #expect(key[Self.google]?.severity == .good)
            let team = try await look(stage) { $0.apps[0].apns?.team = "Z9Z9Z9Z9Z9" }
            #expect(team[Self.production]?.sentence.contains("belong together") == true)
            #expect(Findings(Array(key.values)).status == .failed)
            // In words of their own, whatever a service answers.
            let (settings, google) = (
                try #require(try stage.configuration().apps[0].apns),
                try #require(try stage.configuration().apps[0].fcm)
            )
            func apple(_ reason: Reason) -> TrialVerdict {
                settings.verdict(on: Answer(.rejected, reason, sentAt: .distantPast))
            }
            func sentence(_ verdict: TrialVerdict) -> String? {
                if case .fault(let sentence) = verdict { sentence } else { nil }
            }
            #expect(sentence(apple(.topicDisallowed))?.contains("bundle id") == true)
            #expect(sentence(apple(.badEnvironmentKeyInToken))?.contains("environment") == true)
            #expect(sentence(apple(.expiredProviderToken))?.contains("clock") == true)
            // A clock that is ahead has no word of its own at Apple's, and at Google's first refusal none either.
            #expect(sentence(apple(.invalidProviderToken))?.contains("clock") == true)
            #expect(sentence(apple(.badDeviceToken)) == nil)
            func firebase(_ outcome: Outcome, _ reason: Reason) -> String? {
                sentence(google.verdict(on: Answer(outcome, reason, sentAt: .distantPast)))
            }
            #expect(firebase(.misconfigured(.credential), .permissionDenied)?.contains("role") == true)
            #expect(firebase(.misconfigured(.credential), .notFound)?.contains("project_id") == true)
            #expect(
                firebase(.misconfigured(.credential), .credentialUnavailable)?.contains("deleted") == true)
            #expect(firebase(.retry(after: nil), .credentialUnavailable)?.contains("clock") == true)
            #expect(firebase(.retry(after: nil), .unavailable) == nil, "it says nothing of credentials")
        }
    }

    @Test("A service that takes what nobody can have is told, and one that is away is no wrong key")
    func strange() async throws {
        try await RelayStage.with { stage in
            for apple in [stage.apns, stage.sandboxAPNs] { apple.turn { $0.learnsDevices = true } }
            stage.fcm.turn { $0.unavailableShare = 1 }
            let found = try await look(stage)
            #expect(found[Self.production]?.severity == .warning)
            #expect(found[Self.production]?.sentence.contains("no service of phones") == true)
            #expect(found[Self.google]?.severity == .warning)
            #expect(found[Self.google]?.sentence.contains("asks for time (UNAVAILABLE)") == true)
        }
    }
}
