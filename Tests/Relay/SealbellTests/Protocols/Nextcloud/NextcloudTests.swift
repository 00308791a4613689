import Foundation
import NextcloudPush
import NIOPosix
import PushModel
import PushTesting
import Simulators
import Testing
import WebClient
import WireFormats

@testable import RelayProgram

/// Device, server and relay over real sockets; Apple and Google are simulated.
@Suite("Nextcloud from end to end", .timeLimit(.minutes(30)))
struct NextcloudTests {
    @Test("An iPhone gets a message as an alert, a call on its VoIP token, a withdrawal in the background")
    func apple() async throws {
        try await RelayStage.running(RelayStage.nextcloud()) { relay in
            for padding in [RSAPadding.oaepSHA1, .pkcs1v15] {
                let cloud = try TestCloud(relay, padding: padding)
                let phone = try await cloud.phone(.talkIOS)
                let alerts = relay.stage.apns.subscribe(token: phone.addresses[0])
                let calls = relay.stage.apns.subscribe(token: phone.addresses[1])
                #expect(try await cloud.notify(TestCloud.message(1, "hello")).outcome == .sent)
                let alert = try await alerts.next("an alert")
                #expect(try phone.subject(alert) == "hello")
                #expect(alert.topic == "org.example.talk" && alert.pushType == .alert)
                #expect(alert.priority == 10 && alert.collapseID == nil)
                let aps = try JSONValue.parse(alert.body)["aps"]
                #expect(aps?["mutable-content"]?.int64 == 1)
                #expect(aps?["alert"]?["loc-key"]?.string == "NEW_NOTIFICATION")
                let ringing = TestCloud.message(2, "ring", type: "call")
                #expect(try await cloud.notify(ringing).outcome == .sent)
                let call = try await calls.next("a call")
                #expect(try phone.subject(call) == "ring")
                #expect(call.topic == "org.example.talk.voip" && call.pushType == .voip)
                #expect(try await cloud.withdraw([1]).outcome == .sent)
                let gone = try await alerts.next("a withdrawal")
                #expect(try phone.open(gone) == .withdrawal([1]))
                #expect(gone.pushType == .background && gone.priority == 5)
                #expect(try JSONValue.parse(gone.body)["aps"]?["content-available"]?.int64 == 1)
            }
        }
    }

    @Test("An Android phone gets data alone, each app by the credentials of its own")
    func google() async throws {
        try await RelayStage.running(RelayStage.nextcloud()) { relay in
            let cloud = try TestCloud(relay)
            for (kind, app) in [(PlayedDevice.Kind.talkAndroid, "spreed"), (.filesAndroid, "files")] {
                let phone = try await cloud.phone(kind)
                let arrivals = relay.stage.fcm.subscribe(address: phone.addresses[0])
                let message = changing(TestCloud.message(1, "hello")) { $0.app = app }
                #expect(try await cloud.notify(message).outcome == .sent)
                let delivery = try await arrivals.next("a delivery")
                #expect(try phone.subject(delivery) == "hello")
                #expect(delivery.priority == (app == "spreed" ? 10 : 5))
                let json = try JSONValue.parse(delivery.body)["message"]
                #expect(json?["notification"] == nil && json?["data"]?.object?.count == 2)
            }
        }
    }

    @Test("A path that names the app stands above the User-Agent")
    func path() async throws {
        try await RelayStage.running(RelayStage.nextcloud()) { relay in
            let cloud = try TestCloud(relay)
            let phone = try await cloud.phone(.talkIOS, at: "/cloud/files")
            let arrivals = relay.stage.apns.subscribe(token: phone.addresses[0])
            #expect(try await cloud.notify(TestCloud.message(1, "hello")).outcome == .sent)
            #expect(try await arrivals.next("an alert").topic == "org.example.files")
        }
    }

    @Test("A token that Apple calls dead is told to the server with its next push, and the row goes")
    func dead() async throws {
        try await RelayStage.running(RelayStage.nextcloud()) { relay in
            let cloud = try TestCloud(relay)
            let phone = try await cloud.phone(.filesIOS)
            var message = TestCloud.message(1, "hello")
            message.app = "files"
            let first = relay.stage.apns.subscribe(token: phone.addresses[0])
            #expect(try await cloud.notify(message).outcome == .sent)
            _ = try await first.next("an alert")
            relay.stage.apns.unregister(phone.addresses[0], since: World.live.now())
            message.id = 2
            #expect(try await cloud.notify(message).outcome == .sent, "nobody waits for Apple")
            try await relay.drained()
            message.id = 3
            let verdict = try await cloud.notify(message)
            #expect(verdict.outcome == .partlyFailed && verdict.deletes == [phone.tokenID])
            #expect(cloud.rows.isEmpty)
            // The phone is started again, with a token that is alive.
            let again = try await cloud.phone(.filesIOS)
            let arrivals = relay.stage.apns.subscribe(token: again.addresses[0])
            message.id = 4
            #expect(try await cloud.notify(message).outcome == .sent)
            #expect(try again.subject(try await arrivals.next("an alert")) == "hello")
        }
    }

    @Test("The server is never told a token")
    func tokenHash() async throws {
        try await RelayStage.running(RelayStage.nextcloud()) { relay in
            let cloud = try TestCloud(relay)
            let phone = try await cloud.phone(.talkIOS)
            _ = try await cloud.notify(TestCloud.message(1, "hello"))
            let heard = cloud.heard
            #expect(!heard.isEmpty)
            for address in phone.addresses {
                for canary in try Canary.hex("token", address) {
                    for text in heard { #expect(!canary.isIn(Data(text))) }
                }
            }
        }
    }

    @Test("A phone that unregisters at server and relay is known to neither, and can come back")
    func unregister() async throws {
        try await RelayStage.running(RelayStage.nextcloud()) { relay in
            let cloud = try TestCloud(relay)
            let phone = try await cloud.phone(.talkAndroid)
            #expect(try await cloud.unregister(phone) == [202, 200])
            #expect(cloud.rows.isEmpty)
            #expect(try await cloud.register(phone) == .active)
            let arrivals = relay.stage.fcm.subscribe(address: phone.addresses[0])
            #expect(try await cloud.notify(TestCloud.message(1, "hello")).outcome == .sent)
            _ = try await arrivals.next("a delivery")
        }
    }

    @Test("A reload changes keys and paths, keeps registrations, and leaves what stood when it fails")
    func reload() async throws {
        try await RelayStage.running(RelayStage.nextcloud(), prepare: NextcloudFaceTests.keys) { relay in
            let cloud = try TestCloud(relay)
            let phone = try await cloud.phone(.talkAndroid)
            let arrivals = relay.stage.fcm.subscribe(address: phone.addresses[0])
            try relay.relay.reload(
                relay.stage.configuration(RelayStage.nextcloud(", subscription_keys: keys", bare: true)))
            #expect(try await relay.post("/devices", Secret([])).status == 400)
            #expect(try await cloud.notify(TestCloud.message(1, "hello")).outcome == .refused)
            #expect(cloud.rows.count == 1)
            let broken = try relay.stage.configuration(RelayStage.nextcloud(", subscription_keys: none"))
            #expect(throws: CommandFailure.self) { try relay.relay.reload(broken) }
            #expect(try await relay.post("/devices", Secret([])).status == 400, "what stood stays")
            try relay.relay.reload(relay.stage.configuration(RelayStage.nextcloud()))
            #expect(try await relay.post("/devices", Secret([])).status == 404)
            #expect(try await cloud.notify(TestCloud.message(2, "again")).outcome == .sent)
            #expect(try phone.subject(try await arrivals.next("a delivery")) == "again")
        }
    }

    @Test("forget address removes a device by its token, and the server hears that it is gone")
    func forget() async throws {
        try await RelayStage.running(RelayStage.nextcloud()) { relay in
            let cloud = try TestCloud(relay)
            let person = try Operator(relay)
            let phone = try await cloud.phone(.filesIOS)
            let forgotten = await person.run("forget", "address", input: phone.addresses[0])
            #expect(forgotten.status == .done)
            #expect(forgotten.out == ["Forgotten: 1 device, 0 environments."])
            let message = changing(TestCloud.message(1, "hello")) { $0.app = "files" }
            #expect(try await cloud.notify(message).deletes == [phone.tokenID])
            #expect(relay.stage.apns.counters.received == 0)
            let android = try await cloud.phone(.talkAndroid)
            let other = await person.run("forget", "address", input: android.addresses[0])
            #expect(other.out == ["Forgotten: 1 device, 0 environments."])
        }
    }

    @Test("The demo's phones open a message and a call")
    func demo() async throws {
        try await RelayStage.running(RelayStage.nextcloud()) { relay in
            let demo = try Demo(.standard, on: relay.stage.demoStage(relay))
            let reports = await demo.run(["nextcloud"])
            #expect(
                reports.map(\.conversation) == [
                    "nextcloud (APNs)", "nextcloud (call, APNs)", "nextcloud (FCM)"
                ])
            for report in reports { #expect(report.opened, "\(report.fault ?? "")") }
        }
    }
}
