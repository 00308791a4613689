import OriginServer
import PushModel
import PushTesting
import Testing
import WebClient
import WireFormats
import ZulipPush

@testable import RelayProgram

/// What an origin's door refuses, and what stays over a restart; over real sockets.
@Suite("An origin's door", .timeLimit(.minutes(30)))
struct OriginDoorTests {
    private struct Call: Sendable, CustomTestStringConvertible {
        let method: String
        let path: String
        var body: String?
        let status: Int
        let code: String
        var testDescription: String { "\(method) \(path) \(body ?? "")" }
    }

    private static let calls = [
        Call(method: "GET", path: "/api/v1/nothing", status: 404, code: "BAD_REQUEST"),
        Call(method: "GET", path: "/api/v1/register", status: 405, code: ""),
        Call(method: "POST", path: "/api/v1/events", body: "", status: 405, code: ""),
        Call(method: "GET", path: "/api/v1/mobile_push/register", status: 405, code: ""),
        Call(method: "GET", path: "/api/v1/events", status: 400, code: "REQUEST_VARIABLE_MISSING"),
        Call(
            method: "GET", path: "/api/v1/events?queue_id=a", status: 400, code: "REQUEST_VARIABLE_MISSING"),
        Call(
            method: "GET", path: "/api/v1/events?queue_id=a&last_event_id=x", status: 400,
            code: "BAD_REQUEST"),
        Call(
            method: "GET", path: "/api/v1/events?queue_id=a&last_event_id=-1", status: 400,
            code: "BAD_EVENT_QUEUE_ID"),
        Call(
            method: "GET", path: "/api/v1/events?queue_id=%&last_event_id=-1", status: 400,
            code: "REQUEST_VARIABLE_MISSING"),
        Call(
            method: "DELETE", path: "/api/v1/events?queue_id=a", status: 400, code: "BAD_EVENT_QUEUE_ID"),
        Call(
            method: "POST", path: "/api/v1/users/me/apns_device_token", body: "token=ab", status: 400,
            code: "BAD_REQUEST"),
        Call(
            method: "DELETE", path: "/api/v1/users/me/android_gcm_reg_id", body: "token=ab", status: 400,
            code: "BAD_REQUEST"),
        Call(
            method: "POST", path: "/api/v1/mobile_push/register", body: "device_id=1", status: 400,
            code: "BAD_REQUEST"),
        Call(
            method: "POST", path: "/api/v1/mobile_push/e2ee/test_notification", body: "", status: 400,
            code: "NO_ACTIVE_PUSH_DEVICE"),
        Call(
            method: "POST", path: "/api/v1/remove_client_device", body: "device_id=9223372036854775807",
            status: 400, code: "BAD_REQUEST"),
        Call(
            method: "POST", path: "/api/v1/remove_client_device", body: "device_id=9223372036854775808",
            status: 400, code: "BAD_REQUEST"),
        Call(
            method: "POST", path: "/api/v1/register", body: "event_types=%22x%22", status: 400,
            code: "BAD_REQUEST")
    ]

    @Test("What is wrong with a call has one answer, and nothing is owed for it")
    func refusals() async throws {
        try await RunningOrigin.run(inOneProcess: true) { running, key in
            for call in Self.calls {
                let answer = try await running.ask(
                    RunningOrigin.user, key, call.method, call.path, call.body.map { Secret($0.utf8) })
                let json = try JSONValue.parse(answer.body)
                #expect(answer.status == call.status, "\(call)")
                #expect(json["code"]?.string ?? "" == call.code, "\(call)")
                #expect(json["result"]?.string == "error", "\(call)")
            }
            #expect(try await running.origin.owed() == 0)
        }
    }

    @Test("Nobody without a user's key gets as far as that, and a wrong one tells nothing of users")
    func credentials() async throws {
        try await RunningOrigin.run(inOneProcess: true) { running, key in
            func ask(_ fields: [String]) async throws -> LocalCall.Answer {
                try await running.origin.door("origin").ask(
                    "POST", "/api/v1/register",
                    headers: fields.map { ("Authorization", Secret($0.utf8)) }, body: Secret([]))
            }
            func basic(_ user: String, _ key: String) -> String {
                "Basic " + Base64.text(Array("\(user):\(key)".utf8))
            }
            let good = basic(RunningOrigin.user, key)
            #expect(try await ask([good]).status == 200)
            for fields in [
                [], ["Basic"], ["Basic !"], ["Bearer \(key)"], [good, good], [basic("", key)],
                [basic(RunningOrigin.user, "")], [basic(RunningOrigin.user, key + "0")],
                [basic(RunningOrigin.user.uppercased(), key)]
            ] {
                #expect(try await ask(fields).status == 401, "\(fields.count)")
            }
            let wrongKey = try await ask([basic(RunningOrigin.user, String(key.reversed()))])
            let wrongUser = try await ask([basic("nobody@example.org", key)])
            #expect(wrongKey.body == wrongUser.body && wrongKey.status == wrongUser.status)

            // A new key ends the old one.
            let renewed = try await running.desk(.renewKey, ["name": RunningOrigin.user])
            #expect(try await ask([good]).status == 401)
            #expect(try await ask([basic(RunningOrigin.user, renewed["key"]?.string ?? "")]).status == 200)
        }
    }

    @Test("A queue is its user's alone; a poll ends when it is closed, and a second poll takes its place")
    func queues() async throws {
        try await RunningOrigin.run(inOneProcess: true) { running, key in
            let other = try await running.desk(.addUser, ["name": "eve@example.org"])
            let evesKey = try #require(other["key"]?.string)
            let queue = try await running.openQueue(key)
            let path = "/api/v1/events?queue_id=\(queue)&last_event_id=-1"
            func poll(_ user: String, _ key: String) async throws -> JSONValue {
                try JSONValue.parse(try await running.ask(user, key, "GET", path).body)
            }
            #expect(try await poll("eve@example.org", evesKey)["code"]?.string == "BAD_EVENT_QUEUE_ID")
            let heartbeat = try JSONValue.parse(
                try await running.ask(RunningOrigin.user, key, "GET", path + "&dont_block=true").body)
            #expect(heartbeat["events"]?.array?.first?["type"]?.string == "heartbeat")

            async let first = poll(RunningOrigin.user, key)
            try await asked(for: "a poll that waits") { try running.polls.waitingCount == 1 }
            async let second = poll(RunningOrigin.user, key)
            #expect(try await first["events"]?.array?.first?["type"]?.string == "heartbeat")
            try await asked(for: "the second poll") { try running.polls.waitingCount == 1 }
            let closed = try await running.ask(
                RunningOrigin.user, key, "DELETE", "/api/v1/events?queue_id=\(queue)")
            #expect(closed.status == 200)
            #expect(try await second["code"]?.string == "BAD_EVENT_QUEUE_ID")
        }
    }

    @Test(
        "A queue that makes room ends its poll, and a poll anew takes its own place where there is one only")
    func room() async throws {
        let limits = ", limits: { queues_per_user: 1, waiting_polls: 1 }"
        try await RunningOrigin.run(inOneProcess: true, limits) { running, key in
            func ask(_ method: String, _ path: String) async throws -> JSONValue {
                try JSONValue.parse(
                    try await running.ask(RunningOrigin.user, key, method, path, Secret([])).body)
            }
            func open() async throws -> String {
                "/api/v1/events?queue_id=\(try await running.openQueue(key))&last_event_id=-1"
            }
            let former = try await open()
            async let first = ask("GET", former)
            try await asked(for: "a poll that waits") { try running.polls.waitingCount == 1 }
            let path = try await open()
            #expect(try await first["code"]?.string == "BAD_EVENT_QUEUE_ID")

            async let second = ask("GET", path)
            try await asked(for: "the next queue's poll") { try running.polls.waitingCount == 1 }
            async let third = ask("GET", path)
            #expect(try await second["events"]?.array?.first?["type"]?.string == "heartbeat")
            try await asked(for: "the poll in its place") { try running.polls.waitingCount == 1 }
            try running.polls.closeAll(of: RunningOrigin.user)
            #expect(try await third["code"]?.string == "BAD_EVENT_QUEUE_ID")
        }
    }

    @Test("Who is removed is heard and registered no more, whoever has the name next")
    func removal() async throws {
        try await RunningOrigin.run(inOneProcess: true) { running, key in
            _ = try await OriginPhone(.apns, .zap, running, key: key)
            let queue = try await running.openQueue(key)
            async let poll = running.ask(
                RunningOrigin.user, key, "GET", "/api/v1/events?queue_id=\(queue)&last_event_id=-1")
            try await asked(for: "a poll that waits") { try running.polls.waitingCount == 1 }
            _ = try await running.desk(.removeUser, ["name": RunningOrigin.user])
            let ended = try JSONValue.parse(try await poll.body)
            #expect(ended["code"]?.string == "BAD_EVENT_QUEUE_ID")

            let next = try await running.desk(.addUser, ["name": RunningOrigin.user])
            #expect(next["key"]?.string != nil && next["key"]?.string != key)
            let rows = try await running.desk(.registrations, ["user": RunningOrigin.user])
            #expect(rows["registrations"]?.array?.isEmpty == true)
            // A call that proved itself before, and comes to its turn only now.
            let house = try running.house
            let realm = try #require(house.people.realms.first?.uuid)
            await #expect(throws: ZulipUsersRefusal.self) {
                try await house.users.change(
                    RunningOrigin.user, realm: realm, id: 1, { _ in ZulipStep() }, behind: { _, _ in })
            }
            try await house.users.change(
                RunningOrigin.user, realm: realm, id: 2, { _ in ZulipStep() }, behind: { _, _ in })
        }
    }

    @Test("A new key removes the phones of the old one, unless they are to stay", arguments: [false, true])
    func renewal(_ keepsPhones: Bool) async throws {
        try await RunningOrigin.run(inOneProcess: true) { running, key in
            _ = try await OriginPhone(.apns, .zap, running, key: key)
            let renewed = try await running.deskJSON(
                .renewKey, #"{"name":"\#(RunningOrigin.user)","keep_phones":\#(keepsPhones)}"#)
            #expect(renewed["key"]?.string != key)
            let rows = try await running.desk(.registrations, ["user": RunningOrigin.user])
            #expect(rows["registrations"]?.array?.count == (keepsPhones ? 1 : 0))
            _ = try await running.notify("Are you there?", devices: keepsPhones ? 1 : 0)
            let asked = try await running.ask(
                RunningOrigin.user, key, "POST", "/api/v1/register", Secret([]))
            #expect(try JSONValue.parse(asked.body)["code"]?.string == "INVALID_API_KEY")
        }
    }

    @Test("A realm that comes to require encryption tells its clients, and goes when it has no users")
    func realms() async throws {
        try await RunningOrigin.run(inOneProcess: true) { running, key in
            func ask(_ method: String, _ path: String) async throws -> JSONValue {
                try JSONValue.parse(
                    try await running.ask(RunningOrigin.user, key, method, path, Secret([])).body)
            }
            let opened = try await ask("POST", "/api/v1/register")
            #expect(opened["realm_require_e2ee_push_notifications"]?.bool == false)
            let queue = try #require(opened["queue_id"]?.string)
            _ = try await running.deskJSON(.setRealm, #"{"name":"acme","require_e2ee":true}"#)
            let events = try await ask("GET", "/api/v1/events?queue_id=\(queue)&last_event_id=-1")
            let event = try #require(events["events"]?.array?.first)
            #expect(event["type"]?.string == "realm")
            #expect(event["property"]?.string == "require_e2ee_push_notifications")
            #expect(event["value"]?.bool == true)
            let now = try await ask("POST", "/api/v1/register")
            #expect(now["realm_require_e2ee_push_notifications"]?.bool == true)
            // The same again changes nothing, and tells nobody.
            _ = try await running.deskJSON(.setRealm, #"{"name":"acme","require_e2ee":true}"#)
            let quiet = try await ask(
                "GET", "/api/v1/events?queue_id=\(queue)&last_event_id=0&dont_block=true")
            #expect(quiet["events"]?.array?.first?["type"]?.string == "heartbeat")

            _ = try await ask("POST", "/api/v1/users/me/apns_device_token")
            let status = try JSONValue.parse(
                try await running.origin.admin(OriginDesk.Path.status.rawValue).body)
            #expect(status["legacy_refused"]?.int64 == 1 && status["realms_requiring"]?.int64 == 1)

            #expect(try await running.deskAnswer(.removeRealm, ["name": "acme"]).status == 409)
            #expect(try await running.deskAnswer(.removeRealm, ["name": "other"]).status == 404)
            _ = try await running.desk(.removeUser, ["name": RunningOrigin.user])
            #expect(try await ask("POST", "/api/v1/register")["code"]?.string == "INVALID_API_KEY")
            _ = try await running.desk(.removeRealm, ["name": "acme"])
            let settings = try await running.origin.door("origin").ask("GET", "/api/v1/server_settings")
            #expect(settings.status == 404)
        }
    }

    @Test(
        "Whenever a process was killed that exchanged its key, the next sign-up has the right one",
        arguments: [false, true])
    func rotation(_ hadReachedRelay: Bool) async throws {
        try await RunningOrigin.run(inOneProcess: false) { running, _ in
            let house = try #require(running.origin.relay.hosted.compactMap { $0 as? OriginInstance }.first)
                .house
            let file = house.settings.credentialsFile
            let old = try #require(try OriginCredentials.read(file))
            var random = SystemRandomNumberGenerator()
            let key = ZulipOrigin.invent(version: "12.0", using: &random).key
            // As far as a process came that was killed then.
            try OriginCredentials.write(old.origin.id, key, to: file + ".new")
            if hadReachedRelay {
                let told = await house.upkeep.signUp(
                    old.origin, host: house.host, mail: "ops@acme.example", newKey: key)
                guard case .told = told else {
                    Issue.record("the relay has not exchanged the key: \(told)")
                    return
                }
            }
            _ = try await running.deskJSON(.signUp, #"{"rotate":true}"#)
            #expect(try #require(try OriginCredentials.read(file)).key == key)
            #expect(try OriginCredentials.read(file + ".new") == nil)
            let realm = try await running.desk(.addRealm, ["name": "second"])
            #expect(realm["relay"]?.string == "told")
            // Without a word of rotation it stays as it is.
            _ = try await running.desk(.signUp, [:])
            #expect(try #require(try OriginCredentials.read(file)).key == key)
        }
    }

    @Test("A host that takes its name back shows the relay's secret to whoever knows the path, and no longer")
    func challenge() async throws {
        try await RunningOrigin.run(inOneProcess: false) { running, _ in
            let challenge = try running.house.door.challenge
            func ask(_ path: String, _ method: String = "GET") async throws -> LocalCall.Answer {
                try await running.origin.door("origin").ask(method, "/api/v1/zulip-services/verify/" + path)
            }
            let secret = Secret("5ec2e7".utf8)
            let token = challenge.show(secret).reveal { String(decoding: $0, as: UTF8.self) }
            for path in [token + "/", token] {
                let answer = try await ask(path)
                #expect(answer.status == 200)
                #expect(try #require(ZulipTransfer.secret(in: Secret(answer.body))) == secret)
            }
            for path in ["", "/", "x/", String(token.dropLast()) + "/", token + "//"] {
                let answer = try await ask(path)
                #expect(answer.status == 400, "\(path.count)")
                #expect(
                    try JSONValue.parse(answer.body)["code"]?.string
                        == "REMOTE_SERVER_VERIFICATION_SECRET_NOT_PREPARED")
            }
            #expect(try await ask(token + "/", "POST").status == 405)
            // One that comes later takes its place.
            let next = challenge.show(Secret("0ther".utf8)).reveal { String(decoding: $0, as: UTF8.self) }
            #expect(try await ask(token + "/").status == 400)
            challenge.hide()
            #expect(try await ask(next + "/").status == 400)
        }
    }

    @Test("A transfer that the relay does not grant leaves id and key as they were")
    func refusedTransfer() async throws {
        try await RunningOrigin.run(inOneProcess: false) { running, _ in
            let file = try running.house.settings.credentialsFile
            let old = try #require(try OriginCredentials.read(file))
            // The relay asks by https, at a public address, where nobody answers for this one.
            let body = Secret(#"{"transfer":true}"#.utf8)
            let answer = try await running.origin.door("admin").ask(
                "POST", OriginDesk.Path.signUp.rawValue,
                headers: [("Content-Type", Secret("application/json".utf8))], body: body)
            #expect(answer.status == 502)
            #expect(try #require(try OriginCredentials.read(file)).key == old.key)
            _ = try await running.desk(.signUp, [:])
            let both = Secret(#"{"transfer":true,"rotate":true}"#.utf8)
            let refused = try await running.origin.door("admin").ask(
                "POST", OriginDesk.Path.signUp.rawValue,
                headers: [("Content-Type", Secret("application/json".utf8))], body: both)
            #expect(refused.status == 400)
        }
    }

    @Test("A poll that waits is answered when the server stops, and does not hold it")
    func stop() async throws {
        var answered: Task<Int, any Error>?
        try await RelayStage.running(RunningOrigin.both()) { relay in
            let running = RunningOrigin(relay: relay, origin: relay)
            let key = try await running.begin()
            let queue = try await running.openQueue(key)
            answered = Task {
                try await running.ask(
                    RunningOrigin.user, key, "GET", "/api/v1/events?queue_id=\(queue)&last_event_id=-1"
                ).status
            }
            try await asked(for: "a poll that waits") { try running.polls.waitingCount == 1 }
        }
        #expect(try await answered?.value == 200)
    }

    @Test("Users, registrations and what is owed stay over a restart; queues do not")
    func restart() async throws {
        try await RelayStage.with(RunningOrigin.both()) { stage in
            var kept: (phone: OriginPhone, key: String, poll: String)?
            try await stage.run { relay in
                let running = RunningOrigin(relay: relay, origin: relay)
                let key = try await running.begin()
                let phone = try await OriginPhone(.fcm, .zap, running, key: key)
                let queue = try await running.openQueue(key)
                kept = (phone, key, "/api/v1/events?queue_id=\(queue)&last_event_id=-1")
            }
            var (phone, key, poll) = try #require(kept)
            try await stage.run { relay in
                let running = RunningOrigin(relay: relay, origin: relay)
                #expect(try await running.ask(RunningOrigin.user, key, "GET", poll).status == 400)
                try await phone.move(to: running)
                #expect(try await phone.played.status(0).state == .active)
                try await phone.played.expectState(0)
                _ = try await running.notify("Still here")
                #expect(try await phone.opened(1).count == 1)
                #expect(try await running.deskAnswer(.addUser, ["name": RunningOrigin.user]).status == 409)
                #expect(
                    try await running.ask(RunningOrigin.user, key, "GET", "/api/v1/server_settings")
                        .status == 200)
            }
        }
    }
}
