import Foundation
import OriginServer
import PushModel
import PushTesting
import Simulators
import Testing
import WebClient
import WireFormats

@testable import RelayProgram

/// Nextcloud's clients at an origin's door, over real sockets: the device of the command line among them.
@Suite("An origin's OCS door", .timeLimit(.minutes(30)))
struct CloudDoorTests {
    static let user = "ada"

    /// - Parameter more: keys of the section `origin`, after a comma.
    private static func text(_ more: String) -> String {
        RelayStage.nextcloud().replacing(
            "listeners:\n", with: "listeners:\n  origin: { bind: \"127.0.0.1:0\" }\n")
            + "origin: { url: \"https://cloud.example.org\"\(more) }\n"
    }

    static func run(
        _ more: String = "",
        _ body: (RunningOrigin, _ password: String) async throws -> Void
    ) async throws {
        try await RelayStage.running(text(more)) { relay in
            let running = RunningOrigin(relay: relay, origin: relay)
            _ = try await running.desk(.addRealm, ["name": "acme"])
            _ = try await running.desk(.addUser, ["name": user])
            let key = try await running.deskJSON(
                .renewKey, #"{"name":"\#(user)","app_password":true}"#)
            try await body(running, try #require(key["key"]?.string))
        }
    }

    static func ask(
        _ running: RunningOrigin, _ password: String?, _ method: String, _ path: String,
        isAPIRequest: Bool = true, body: Secret? = nil
    ) async throws -> (status: Int, json: JSONValue) {
        var headers: [(name: String, value: Secret)] = [("Accept", Secret("application/json".utf8))]
        if body != nil {
            headers.append(("Content-Type", Secret("application/x-www-form-urlencoded".utf8)))
        }
        if isAPIRequest { headers.append(("OCS-APIRequest", Secret("true".utf8))) }
        if let password {
            let pair = Base64.text(Array("\(user):\(password)".utf8))
            headers.append(("Authorization", Secret("Basic \(pair)".utf8)))
        }
        let answer = try await running.origin.door("origin").ask(
            method, path, headers: headers, body: body)
        return (answer.status, (try? JSONValue.parse(answer.body))?["ocs"] ?? .null)
    }

    @Test("A client that logs out ends its app password, and an operator ends one with its device")
    func logout() async throws {
        let path = "/ocs/v2.php/core/apppassword"
        try await Self.run { running, password in
            #expect(try await Self.ask(running, nil, "DELETE", path).status == 401)
            #expect(try await Self.ask(running, password, "GET", path).status == 405)
            #expect(try await Self.ask(running, password, "DELETE", path).status == 200)
            #expect(try await Self.ask(running, password, "GET", "/ocs/v2.php/cloud/user").status == 401)
            // No logging out ends an API key.
            let key = try #require(try await running.desk(.renewKey, ["name": Self.user])["key"]?.string)
            #expect(try await Self.ask(running, key, "DELETE", path).status == 403)
            #expect(try await Self.ask(running, key, "GET", "/ocs/v2.php/cloud/user").status == 200)
            let gone = try await running.deskAnswer(.drop, ["user": Self.user, "device": "cloud 7"])
            #expect(gone.status == 404)
        }
    }

    @Test("A device registers at the door and at the relay, opens what arrives, and takes itself back")
    func life() async throws {
        try await Self.run { running, password in
            let person = try CommandPerson("nextcloud", "device.json")
            let address = "played-0123456789abcdef:APA91b\(HandmadeDevice.token())"
            for (name, text) in [("password", password), ("token", address)] {
                try person.put(text, at: name)
            }
            func device(_ arguments: String..., input: String = "") async -> [String] {
                let run = await person.run(arguments, input: input)
                return run.out + run.err
            }
            func local(_ listener: String) throws -> String {
                try #require(running.origin.urls[listener]).replacing("127.0.0.1", with: "localhost")
            }
            let registered = await device(
                "register", "--server", try local("origin"), "--user", Self.user, "--password-file",
                "password", "--relay", "\(try local("public"))/cloud/files", "--token-file", "token",
                "--app", "files-android")
            #expect(registered == ["server: HTTP 201", "relay: HTTP 200", "registered"])

            let rows = try await running.desk(.registrations, ["user": Self.user])
            let row = try #require(rows["registrations"]?.array?.first)
            #expect(row["device"]?.string?.hasPrefix("cloud ") == true && row["group"]?.string == "nextcloud")

            let arrivals = running.relay.stage.fcm.subscribe(address: address)
            let sent = try await running.desk(.notify, ["user": Self.user, "text": "Dinner is ready"])
            #expect(sent["devices"]?.int64 == 1)
            let delivery = try await arrivals.next("a delivery")
            let opened = await device("open", input: String(decoding: delivery.body, as: UTF8.self))
            #expect(opened.count == 1 && opened.first?.contains("“Dinner is ready”") == true)

            // It reads the whole text at the server, and deletes it there.
            let listed = try await Self.ask(
                running, password, "GET", "/ocs/v2.php/apps/notifications/api/v2/notifications")
            let note = try #require(listed.json["data"]?.array?.first)
            #expect(note["subject"]?.string == "Dinner is ready")
            let id = try #require(note["notification_id"]?.int64)
            let deleted = try await Self.ask(
                running, password, "DELETE", "/ocs/v2.php/apps/notifications/api/v2/notifications/\(id)")
            #expect(deleted.status == 200)
            let removal = try await arrivals.next("a removal")
            let removed = await device("open", input: String(decoding: removal.body, as: UTF8.self))
            #expect(removed.count == 1 && removed.first?.contains("\(id)") == true)

            // Taken back by who sent it.
            let second = try await running.desk(.notify, ["user": Self.user, "text": "Again"])
            _ = try await arrivals.next("a second text")
            let backing = try await running.deskJSON(
                .withdraw, #"{"user":"ada","ids":["\#(second["id"]?.string ?? "")"]}"#)
            #expect(backing["devices"]?.int64 == 1)
            _ = try await arrivals.next("a second removal")

            // What was cut off between its two halves, and comes again, is owed once.
            let house = try #require(
                running.origin.relay.hosted.compactMap { $0 as? OriginInstance }.first
            ).house
            let third = String(repeating: "a", count: 32)
            for expected in [1, 0] {
                let owed = try await house.notify(
                    Self.user, id: third, NotificationContent(text: "Once"), beside: { _ in [] })
                #expect(owed == expected)
            }
            _ = try await arrivals.next("a third text")

            // What one line does not hold stands below it, whole characters each.
            let long = String(repeating: "ż", count: 2_048)
            let content = NotificationContent(text: long, sender: "Kitchen")
            let fourth = String(repeating: "b", count: 32)
            #expect(try await house.notify(Self.user, id: fourth, content, beside: { _ in [] }) == 1)
            _ = try await arrivals.next("a long text")
            let last = try await Self.ask(
                running, password, "GET", "/ocs/v2.php/apps/notifications/api/v2/notifications")
            let whole = try #require(last.json["data"]?.array?.first)
            let line = try #require(whole["subject"]?.string)
            #expect(
                line.hasPrefix("Kitchen: żż") && line.hasSuffix("ż…") && (1_020...1_024) ~= line.utf8.count)
            let below = try #require(whole["message"]?.string)
            #expect(below.hasPrefix("żż") && below.hasSuffix("ż…") && (3_996...4_000) ~= below.utf8.count)

            let gone = await device("unregister")
            #expect(gone == ["server: HTTP 202", "relay: HTTP 200", "unregistered"])
            let nobody = try await running.desk(.notify, ["user": Self.user, "text": "Nobody"])
            #expect(nobody["devices"]?.int64 == 0)
        }
    }

    @Test("Who shows nothing, or something wrong, gets what Nextcloud gives")
    func refusals() async throws {
        try await Self.run { running, password in
            let user = "/ocs/v2.php/cloud/user"
            #expect(try await Self.ask(running, nil, "GET", user).status == 401)
            let wrong = try await Self.ask(running, password + "x", "GET", user)
            #expect(wrong.status == 401)
            #expect(wrong.json["meta"]?["statuscode"]?.int64 == 997)
            #expect(try await Self.ask(running, password, "GET", user, isAPIRequest: false).status == 412)
            #expect(try await Self.ask(running, password, "GET", "/ocs/v2.php/nothing").status == 404)
            #expect(try await Self.ask(running, password, "GET", "/ocs/v1.php/nothing").status == 200)
            #expect(try await Self.ask(running, password, "PUT", user).status == 405)
            #expect(try await Self.ask(running, password, "GET", user).status == 200)
            // A stranger hears that the server is there, and of no notifications.
            let strange = try await Self.ask(running, nil, "GET", "/ocs/v2.php/cloud/capabilities")
            #expect(strange.status == 200)
            #expect(strange.json["data"]?["capabilities"]?["notifications"] == nil)
            let own = try await Self.ask(running, password, "GET", "/ocs/v2.php/cloud/capabilities")
            let words = own.json["data"]?["capabilities"]?["notifications"]?["push"]?.array ?? []
            #expect(words.compactMap(\.string) == ["devices", "object-data", "delete"])
            let push = "/ocs/v2.php/apps/notifications/api/v2/push"
            #expect(try await Self.ask(running, password, "POST", push).status == 400)
            #expect(try await running.origin.owed() == 0)
        }
    }
}
