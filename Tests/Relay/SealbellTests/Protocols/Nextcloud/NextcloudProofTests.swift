import HTTPIngress
import NextcloudPush
import PushModel
import PushTesting
import RSAKeys
import Simulators
import Synchronization
import Testing
import WebClient

@testable import RelayProgram

/// Two keys for one device: who proves which is right, and who is asked for it.
@Suite("Nextcloud identity proofs over sockets", .timeLimit(.minutes(30)))
struct NextcloudProofTests {
    /// A relay with one device of a user registered, and the Nextcloud server that the user is at.
    private struct Scene {
        let relay: RunningRelay
        let cloud: NextcloudSandboxPeer
        let user: String
        /// Of the first key.
        let first: HandmadeDevice
        let token = HandmadeDevice.token()

        init(_ relay: RunningRelay, user: String, at server: String? = nil) async throws {
            self.relay = relay
            cloud = try #require(relay.stage.sandbox.peer(NextcloudSandboxPeer.self))
            self.user = user
            first = try HandmadeDevice(#"["\#(user)@\#(server ?? cloud.authority)",41]"#)
            #expect(try await relay.post("/cloud/devices", first.form(token)).status == 200)
        }

        /// The same device with another key.
        func other() throws -> HandmadeDevice { try HandmadeDevice(first.preimage) }

        func register(
            _ device: HandmadeDevice, cloudID: String? = nil, from client: String = "203.0.113.1"
        ) async throws -> LocalCall.Answer {
            try await relay.post(
                "/cloud/devices", device.form(token, cloudID: cloudID),
                headers: [("X-Forwarded-For", Secret(client.utf8))])
        }

        /// Whether the relay still believes the first key.
        func holdsFirst() async throws -> Bool {
            let answer = try await relay.post(
                "/cloud/notifications", HandmadeDevice.batch([try first.entry(token)]))
            return answer.failed == 0
        }
    }

    @Test("A second key is a 409; the instance's word for it makes it the key, and the first one none")
    func proof() async throws {
        try await RelayStage.running(RelayStage.nextcloud()) { relay in
            let scene = try await Scene(relay, user: "ada")
            let second = try scene.other()
            #expect(try await scene.register(second).status == 409)
            #expect(try await scene.holdsFirst())
            #expect(scene.cloud.asked.isEmpty, "nobody was named")
            scene.cloud.set("ada", .key(second.user.publicKey.pem))
            let cloudID = "ada@\(scene.cloud.authority)"
            #expect(try await scene.register(second, cloudID: cloudID).status == 200)
            #expect(
                scene.cloud.asked == [
                    "GET /ocs/v2.php/identityproof/key/ada?format=json HTTP/1.1"
                ])
            let arrivals = relay.stage.apns.subscribe(token: scene.token)
            let body = HandmadeDevice.batch([try second.entry(scene.token)])
            #expect(try await relay.post("/cloud/notifications", body).failed == 0)
            _ = try await arrivals.next("a push by the new key")
            #expect(try await !scene.holdsFirst())
        }
    }

    @Test("An attacker's key is refused by the instance's word, and so is one of a user it does not know")
    func attackers() async throws {
        try await RelayStage.running(RelayStage.nextcloud()) { relay in
            for (user, answer) in [
                ("grace", NextcloudSandboxPeer.Answer.key(try RSAPrivateKey.generate().publicKey.pem)),
                ("edith", .status(404))
            ] {
                let scene = try await Scene(relay, user: user)
                scene.cloud.set(user, answer)
                let attacker = try scene.other()
                let refused = try await scene.register(
                    attacker, cloudID: "\(user)@\(scene.cloud.authority)")
                #expect(refused.status == 403)
                #expect(try await scene.holdsFirst())
            }
        }
    }

    @Test("A redirect is not followed, and an instance in trouble leaves the first key in force")
    func trouble() async throws {
        try await RelayStage.running(RelayStage.nextcloud()) { relay in
            let inside = try #require(relay.urls["admin"])
            for (user, answer) in [
                ("mary", NextcloudSandboxPeer.Answer.redirect("\(inside)/status")),
                ("joan", .status(503)), ("ruth", .key("no key at all"))
            ] {
                let scene = try await Scene(relay, user: user)
                scene.cloud.set(user, answer)
                let asked = scene.cloud.asked.count
                let held = try await scene.register(
                    scene.other(), cloudID: "\(user)@\(scene.cloud.authority)",
                    from: "203.0.113.\(asked + 10)")
                #expect((400...499).contains(held.status) && held.status != 429, "\(user)")
                #expect(scene.cloud.asked.count == asked + 1)
                #expect(try await scene.holdsFirst())
            }
        }
    }

    @Test("A cloud id that points inside, by whatever name, makes the relay connect to nobody")
    func inside() async throws {
        try await RelayStage.with(RelayStage.nextcloud()) { stage in
            // As a relay is outside of tests: public addresses alone.
            try await stage.run(spans: { $0.web = WebOptions() }) { relay in
                let cloud = try #require(stage.sandbox.peer(NextcloudSandboxPeer.self))
                let port = cloud.authority.split(separator: ":").last.map(String.init) ?? ""
                let admin =
                    (try #require(relay.urls["admin"])).split(separator: ":").last.map(String.init) ?? ""
                let servers = [
                    "127.0.0.1:\(port)", "[::1]:\(port)", "localhost:\(admin)", "localhost", "LOCALHOST:22",
                    "169.254.169.254", "10.0.0.1", "192.168.1.1:8443", "[fd00::1]",
                    "[::ffff:127.0.0.1]:\(port)",
                    "2130706433", "0x7f000001", "127.1"
                ]
                for (number, server) in servers.enumerated() {
                    let scene = try await Scene(relay, user: "u\(number)", at: server)
                    let second = try scene.other()
                    cloud.set("u\(number)", .key(second.user.publicKey.pem))
                    let answer = try await scene.register(
                        second, cloudID: "u\(number)@\(server)", from: "198.51.100.\(number)")
                    // One that no resolver knows may be known in a moment.
                    #expect([400, 403, 409].contains(answer.status), "\(server): \(answer.status)")
                    #expect(try await scene.holdsFirst(), "\(server)")
                }
                #expect(cloud.asked.isEmpty)
            }
        }
    }

    /// Notes what it is asked for.
    private final class Asked: WebFetch {
        private let noted = Mutex<[WebRequest]>([])
        var requests: [WebRequest] { noted.withLock(\.self) }

        func fetch(_ request: WebRequest) async throws(WebError) -> WebAnswer {
            noted.withLock { $0.append(request) }
            return WebAnswer(status: 404, retryAfter: nil, body: Secret([]))
        }
    }

    @Test("Hosts of private_hosts alone, at the port named, are asked wherever they are")
    func ways() async throws {
        let (general, own) = (Asked(), Asked())
        let hosts: Set = [
            HTTPSBase(host: "cloud.internal", port: 443), HTTPSBase(host: "10.0.0.7", port: 8443)
        ]
        let web = ProofWeb(general: general, own: own, hosts: hosts)
        func ask(_ url: String) async throws {
            let request = WebRequest(
                .get, url: url, answerLimitBytes: 1, deadline: .seconds(1), publicAddressesOnly: true)
            _ = try await web.fetch(request)
        }
        for url in ["https://cloud.internal/x", "https://CLOUD.internal:443/x", "https://10.0.0.7:8443/x"] {
            try await ask(url)
        }
        #expect(own.requests.count == 3 && general.requests.isEmpty)
        #expect(own.requests.allSatisfy { !$0.publicAddressesOnly })
        for url in [
            "https://cloud.internal:8443/x", "https://10.0.0.7/x", "https://other.cloud.internal/x",
            "https://cloud.internal.example.org/x"
        ] {
            try await ask(url)
        }
        #expect(own.requests.count == 3 && general.requests.count == 4)
        #expect(general.requests.allSatisfy { $0.publicAddressesOnly })
        for url in [
            "https://cloud.internal@example.org/x", "http://cloud.internal/x", "https://cloud.internal\\x"
        ] {
            await #expect(throws: WebError(.malformedURL)) { try await ask(url) }
        }
        #expect(own.requests.count == 3 && general.requests.count == 4)
    }

    @Test("With proof, only users of the servers named register, and each by a proof from the first time on")
    func proofAlways() async throws {
        try await RelayStage.with(RelayStage.nextcloud()) { stage in
            let cloud = try #require(stage.sandbox.peer(NextcloudSandboxPeer.self))
            let text = RelayStage.nextcloud(", proof: [\"\(cloud.authority)\"]")
            try await stage.run(text) { relay in
                let device = try HandmadeDevice(#"["ada@\#(cloud.authority)",41]"#)
                func register(_ cloudID: String?) async throws -> Int {
                    let form = device.form(HandmadeDevice.token(), cloudID: cloudID)
                    return try await relay.post("/cloud/devices", form).status
                }
                #expect(try await register(nil) == 409)
                #expect(try await (400...499).contains(register("ada@cloud.example.org")))
                #expect(cloud.asked.isEmpty)
                cloud.set("ada", .key(device.user.publicKey.pem))
                #expect(try await register("ada@\(cloud.authority)") == 200)
            }
        }
    }
}
