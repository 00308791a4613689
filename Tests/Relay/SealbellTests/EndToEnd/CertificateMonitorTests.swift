import AdminIngress
import Foundation
import PushModel
import PushTesting
import Simulators
import Testing
import WebClient

@testable import RelayProgram

@Suite("The end of a listener's certificate", .timeLimit(.minutes(30)))
struct CertificateMonitorTests {
    private static let day: Int64 = 86_400
    /// Simulated authorities issue for ten years from an hour before their now.
    private static let lifeDays: Int64 = 3650

    private static func put(_ authority: CertificateAuthority, _ folder: String) throws {
        let issued = try authority.issue()
        try writeFile(folder + "/a.pem", Array(issued.certificatePEM.utf8), replacing: true)
        try writeFile(folder + "/a.key", Array(issued.privateKeyPEM.utf8), replacing: true)
    }

    /// An authority whose certificates end about so many days from a moment.
    private static func authority(endingIn days: Int64, from now: UnixTime) throws -> CertificateAuthority {
        var world = World.live
        world.now = { UnixTime(seconds: now.seconds + (days - lifeDays) * day) }
        return try CertificateAuthority(world: world)
    }

    private func configuration(_ folder: TemporaryFolder, tls: Bool) throws -> RelayConfiguration {
        let door = tls ? "tls: { cert: a.pem, key: a.key }" : "trusted_proxies: [127.0.0.1]"
        return try ConfigurationLoader.read(
            minimal(
                appending: "listeners: { soon: { bind: \"127.0.0.1:0\", serves: [zulip-main], \(door) } }"),
            file: folder.path + "/sealbell.yaml",
            ConfigurationRequest(state: folder.path + "/state", settings: ["store.keys=\(folder.path)/k"]),
            facts())
    }

    @Test("It is told fourteen days before and when it comes, and is over with a fresh one or without TLS")
    func watch() async throws {
        let folder = try TemporaryFolder()
        let clock = ManualClock()
        let port = AlertPort(
            ways: AlertWays(), journal: .silent, metrics: PrometheusMetrics(), world: clock.world(seed: 1))
        let watch = CertificateMonitor(port, clock.world(seed: 1))
        let name = try #require(ConfiguredName("soon"))
        try Self.put(Self.authority(endingIn: 16, from: clock.now), folder.path)
        let configuration = try configuration(folder, tls: true)
        watch.adopt(configuration)
        #expect(port.raised.isEmpty && watch.days().map(\.days) == [16])
        try await beside(watch.run) {
            await clock.sleepers(atLeast: 1)
            clock.advance(by: .seconds(2 * Self.day))
            await clock.sleepers(atLeast: 1)
            #expect(port.raised.map(\.sentence) == [Alert.certificateExpiring(name, days: 14).sentence])
            clock.advance(by: .seconds(14 * Self.day))
            await clock.sleepers(atLeast: 1)
            #expect(port.raised.map(\.sentence) == [Alert.certificateExpiring(name, days: 0).sentence])
        }
        // On the disk alone a fresh one helps nobody.
        try Self.put(Self.authority(endingIn: 90, from: clock.now), folder.path)
        watch.look()
        #expect(port.raised.count == 1)
        watch.adopt(configuration)
        #expect(port.raised.isEmpty)
        try Self.put(Self.authority(endingIn: 1, from: clock.now), folder.path)
        watch.adopt(configuration)
        #expect(port.raised.map(\.sentence) == [Alert.certificateExpiring(name, days: 1).sentence])
        watch.adopt(try self.configuration(folder, tls: false))
        #expect(port.raised.isEmpty)
    }

    @Test("A reload puts certificate and ways of alerts in force: the mail goes out, and the end is told too")
    func reload() async throws {
        let text = RelayStage.text.replacing("  public:", with: "  soon:").replacing(
            "trusted_proxies: [127.0.0.1] }", with: "tls: { cert: a.pem, key: a.key } }")
        let now = World.live.now()
        let fresh = try Self.authority(endingIn: 300, from: now)
        try await RelayStage.running(text, prepare: { try Self.put(fresh, $0) }) { relay in
            let mail = relay.stage.folder.path + "/mail"
            /// Each look is a request of its own, so nothing spins.
            func arrived(_ words: String) async throws {
                while true {
                    let bytes = FileManager.default.contents(atPath: mail) ?? Data()
                    if String(decoding: bytes, as: UTF8.self).contains(words) { return }
                    _ = try await relay.admin("/health/live")
                }
            }
            let mailing =
                text
                + "alerts: { mail: { command: [/usr/bin/tee, -a, \(mail)], to: ops@acme.example } }\n"
            try Self.put(try Self.authority(endingIn: 5, from: now), relay.stage.folder.path)
            try relay.relay.reload(relay.stage.configuration(mailing))
            try await arrived("certificate_expiring raised")
            try await arrived("To: ops@acme.example")
            try await arrived("the listener soon expires within 5 days")
            let metrics = String(decoding: try await relay.admin("/metrics").body, as: UTF8.self)
            #expect(
                metrics.contains("sealbell_alert{alert=\"certificate_expiring\",subject=\"soon\"} 1"))
            try Self.put(fresh, relay.stage.folder.path)
            try relay.relay.reload(relay.stage.configuration(mailing))
            try await arrived("certificate_expiring cleared")
        }
    }
}
