import DialTesting
import Dialling
import HTTP2Client
import PushModel
import PushTesting
import Simulators
import Testing
import WebClient
import ZulipPush

@testable import RelayProgram

/// A relay on a machine where every name has two addresses, of which one is dead.
@Suite("A relay whose services have two addresses", .timeLimit(.minutes(30)))
struct TwoAddressTests {
    private static let kinds: [DeadAddress.Kind] = [.sixth, .swallowing, .silent]

    @Test(
        "Pushes, tokens of FCM and test pushes go to the good one, and the doctor names the dead family",
        arguments: kinds, [true, false])
    func relay(_ kind: DeadAddress.Kind, _ isDeadFirst: Bool) async throws {
        try await RelayStage.with { stage in
            stage.callServices("localhost")
            let port = try #require(try stage.configuration().apps[0].apns?.url?.port)
            let dead = try DeadAddress(kind, port: port)
            let addresses = isDeadFirst ? [dead.address, .here] : [.here, dead.address]
            let names = NamedAddresses(addresses)
            var dialling = DialOptions.swift(addresses)
            dialling.resolver = names
            let options = dialling
            try await stage.run(spans: { around in
                around.spans.pushServices.dialling = options
                around.web.resolver = names
                around.web.attemptDelay = .milliseconds(20)
            }) { relay in
                let person = try Operator(relay)
                for (token, service) in [(DemoApp.token(.apns), "apns"), (DemoApp.token(.fcm), "fcm")] {
                    let sent = await person.run("test-push", "--app", "acme", input: token)
                    #expect(sent.status == .done && sent.out.last?.contains("accepted") == true, "\(service)")
                }
                let (server, phone) = try await relay.join(.apns)
                _ = try await server.notify(.test(time: 1), [phone], relay)
                try await relay.drained()
            }
            #expect(Set(names.asked) == ["localhost"])
            let findings = await ReachChecks(try stage.configuration(), dialling: options).check()
            #expect(findings.allSatisfy { $0.severity != .fault }, "\(findings)")
            #expect(findings.contains { $0.severity == .warning && $0.subject == "IPv6" } == (kind == .sixth))
        }
    }
}
