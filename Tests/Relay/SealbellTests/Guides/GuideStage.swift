import Crypto
import Foundation
import NextcloudPush
import PushModel
import PushTesting
import RSAKeys
import Testing
import WireFormats
import ZulipPush

@testable import RelayProgram

/// Who stands around the relay of a guide.
extension GuideRehearsal {
    // MARK: nginx

    /// The web server before the relay, with certificates of an authority that this machine trusts.
    ///
    /// - Parameter servers: inside of `http`.
    func nginx(_ servers: String) async throws {
        let folder = "/etc/letsencrypt/live/push.acme.example"
        try place.put(
            "subjectAltName=DNS:push.acme.example,DNS:cloud.acme.example,DNS:chat.acme.example\n", at: "names"
        )
        try await place.prepare(
            """
            set -e; mkdir -p \(folder) /var/log/nginx
            new="-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
            openssl req -x509 $new -keyout ca.key -out ca.pem -days 2 -subj /CN=acme 2>/dev/null
            openssl req $new -keyout \(folder)/privkey.pem -out tls.csr -subj /CN=push 2>/dev/null
            openssl x509 -req -in tls.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names \
                -out \(folder)/fullchain.pem 2>/dev/null
            cat /etc/ssl/certs/ca-certificates.crt ca.pem > all.pem
            cp --remove-destination all.pem /etc/ssl/certs/ca-certificates.crt
            """)
        let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map { "\($0)_temp_path /tmp/nginx-\($0);" }.joined(separator: "\n")
        try place.put(
            """
            user root; daemon off; pid /tmp/nginx.pid; error_log stderr notice;
            events {}
            http {
            access_log off; \(paths)
            ssl_certificate \(folder)/fullchain.pem; ssl_certificate_key \(folder)/privkey.pem;
            \(servers)
            }
            """, at: "nginx.conf")
        try await place.serve("exec nginx -c /mnt/home/nginx.conf", until: "start worker process ")
    }

    /// A server of that name, with what the page has for it, or with all of it handed on.
    static func server(_ name: String, _ inside: String) -> String {
        "server { listen 443 ssl; server_name \(name);\n\(inside)\n}\n"
    }

    // MARK: Zulip

    /// What a Zulip server says to the bouncer, through `curl`.
    func send(_ call: HTTPCall, to url: String) async throws {
        var words = ["curl -s -S -X \(call.method) -o answer -w '%{http_code}' --data-binary @body"]
        for (name, value) in call.headers {
            words.append("-H '\(name): \(value.reveal { String(decoding: $0, as: UTF8.self) })'")
        }
        try place.put(call.body.reveal { String(decoding: $0, as: UTF8.self) }, at: "body")
        let status = try await place.prepare((words + [url + call.url]).joined(separator: " "))
        let answer = try place.folder.read("home/answer")
        #expect(status == "200", "\(call.url): \(answer)")
    }

    /// `chat.acme.example` signs up and reports its realm.
    func signUp(at url: String) async throws -> DemoServer {
        var server = DemoServer()
        server.realm.uuid = "0ec3eedd-6233-4c5e-a000-b9942be3494e"
        try await send(server.origin.signUp(hostname: server.host, mail: server.mail), to: url)
        try await send(server.origin.analytics(realms: [server.realm]), to: url)
        return server
    }

    /// A server signs up at the page's relay, and a phone of its user registers.
    func join() async throws -> (server: DemoServer, phone: DemoApp) {
        try await place.prepare("sealbell origins invite chat.acme.example")
        let server = try await signUp(at: Self.relay)
        return (server, try await phone(of: server))
    }

    /// Another phone of that user registers.
    func phone(of server: DemoServer) async throws -> DemoApp {
        let file = try await place.runFile("/var/lib/sealbell")
        let phone = try DemoApp(.apns, try #require(file.publicKeys["zulip-main"]?.first))
        try await send(server.register(phone), to: Self.relay)
        return phone
    }

    /// The server tells its user of a message.
    func tell(_ phone: DemoApp, by server: DemoServer) async throws {
        for call in try server.notify(phone.notification(DemoApp.message(1, "see you")), [phone]) {
            try await send(call, to: Self.relay)
        }
    }

    /// Where every page has its relay listen.
    private static let relay = "http://127.0.0.1:8480"

    // MARK: Status

    /// The network that the page has one join: a node for the relay and one for clients, at the page's ports.
    func waku() async throws {
        // Without a relay, which would read from the node what the page's relay is to have.
        try await place.serve("exec sealbell sandbox --state network", until: "authority: ")
        let urls = try await place.runFile("network").urls
        let nodes = [8_645: "sandbox-waku", 8_646: "sandbox-waku-client"]
        let servers = try nodes.map { port, name in
            "server { listen 127.0.0.1:\(port); location / { proxy_pass \(try #require(urls[name])); } }\n"
        }
        try await nginx(servers.joined())
    }

    /// The page's commands for two members once more, at the rehearsal's own node.
    func tellBob() async throws {
        let file = try await place.runFile("/tmp/rehearsal")
        let node = try #require(file.urls["sandbox-waku-client"])
        filled["http://127.0.0.1:8646"] = node
        filled["PORT"] = try found(#/\d+$/#, in: file.urls["sandbox-control"] ?? "")
        let steps = page.items.map(\.text).filter { $0.contains("sealbell device status") }
        for step in steps where step.contains(" register --state") { try await run(step, 0) }
        for step in steps where step.contains(" send --state") { try await run(step, 0) }
    }

    // MARK: Nextcloud

    /// A notification for the device that has registered, as the server would hand it to the proxy.
    func write(from cloud: DemoCloud) throws {
        var cloud = cloud
        let device = try PlayedDevice(file: place.folder.file("home/device.json"))
        let digest = SHA512.hash(data: device.token.reveal { Data($0) })
        let body = Form.text([
            ("pushTokenHash", digest.map { String(format: "%02x", $0) }.joined()),
            ("devicePublicKey", try device.device().routine.key.publicKey.pem), ("proxyServer", device.relay)
        ])
        _ = try cloud.answer(
            "POST", userAgent: device.kind.userAgent, body, tokenID: 41, now: World.live.now())
        let entry = try #require(
            try cloud.notify(TestCloud.message(7, "see you"), now: World.live.now()).first)
        try place.put(entry.json.reveal { String(decoding: $0, as: UTF8.self) }, at: "push")
    }

    /// Answers a device's registration as the server of its user does: the same each time.
    func cloud() throws -> DemoCloud {
        var cloud = try DemoCloud("https://cloud.acme.example")
        let body = Form.text([
            ("pushTokenHash", String(repeating: "0", count: 128)),
            ("devicePublicKey", cloud.user.key.publicKey.pem),
            ("proxyServer", "https://push.acme.example/nextcloud-main/acme-talk")
        ])
        let answer = try cloud.answer("POST", userAgent: "", body, tokenID: 41, now: World.live.now())
        try place.put(DemoCloud.capabilitiesText, at: "cloud/ocs/v2.php/cloud/capabilities")
        try place.put(
            answer.body.reveal { String(decoding: $0, as: UTF8.self) },
            at: "cloud/ocs/v2.php/apps/notifications/api/v2/push")
        return cloud
    }
}

extension Form {
    fileprivate static func text(_ fields: [(String, String)]) -> Secret {
        var safe = CharacterSet.alphanumerics
        safe.insert(charactersIn: "-._~")
        let pairs = fields.map { "\($0)=\($1.addingPercentEncoding(withAllowedCharacters: safe) ?? "")" }
        return Secret(pairs.joined(separator: "&").utf8)
    }
}
