import HTTPIngress
import PushModel
import PushTesting
import Testing

@Suite("Whom X-Forwarded-… is believed", .timeLimit(.minutes(30)), .serialized)
struct ListenerProxyTests {
    /// Answers with key and security, so that a test compares whom the server took for the client.
    private static let face = ProbeFace("probe", [HTTPRoute(.exact("/who"), bodyLimitBytes: 10)]) { inbound in
        whoSaw.set((inbound.client, inbound.isSecure, inbound.isLoopback))
        return .text(200, "ok")
    }
    private static let whoSaw = Noted<(key: ClientKey, secure: Bool, loopback: Bool)>(
        (ClientKey(0), false, false))

    private func who(_ port: Int, _ fields: String) async throws -> (
        key: ClientKey, secure: Bool, loopback: Bool
    ) {
        let client = try await RawClient.connect(port)
        try await client.send(get("/who", fields))
        #expect(try await client.answer().status == 200)
        client.close()
        return Self.whoSaw.value
    }

    @Test("Only a trusted proxy's word counts, read from its end, and a forged beginning changes nothing")
    func forwarded() async throws {
        let proxies = try TrustedProxies(["127.0.0.1", "10.0.0.0/8"], of: configured("public"))
        try await withListener([Self.face], proxies: proxies) { _, port in
            let direct = try await who(port, "")
            let one = try await who(port, "X-Forwarded-For: 192.0.2.1\r\n")
            let other = try await who(port, "X-Forwarded-For: 192.0.2.2\r\n")
            #expect(one.key != other.key && one.key != direct.key)
            #expect(direct.loopback && !one.loopback)
            let same = [
                "x-forwarded-for: 203.0.113.9, 192.0.2.1\r\n",
                "X-Forwarded-For: 127.0.0.1, 192.0.2.1\r\n",
                "X-Forwarded-For: 192.0.2.1, 10.1.2.3\r\n",
                "X-Forwarded-For: 198.51.100.4\r\nX-Forwarded-For: 192.0.2.1\r\n",
                "X-Forwarded-For: 192.0.2.1 ,10.9.9.9\r\nX-Forwarded-For: 10.0.0.1\r\n",
                "X-Forwarded-For: ::ffff:192.0.2.1\r\n"
            ]
            for fields in same { #expect(try await who(port, fields).key == one.key, "\(fields)") }
            #expect(try await who(port, "X-Forwarded-For: unknown\r\n").key == direct.key)
            #expect(try await who(port, "X-Forwarded-Proto: https\r\n").secure)
            #expect(try await !who(port, "X-Forwarded-Proto: https, http\r\n").secure)
            #expect(try await !who(port, "").secure)
        }
    }

    @Test("A client is known however its proxy writes the address, and what names none is counted")
    func writings() async throws {
        let proxies = try TrustedProxies(["127.0.0.1"], of: configured("public"))
        try await withListener([Self.face], proxies: proxies) { listener, port in
            func key(_ value: String) async throws -> ClientKey {
                try await who(port, "X-Forwarded-For: \(value)\r\n").key
            }
            let direct = try await who(port, "").key
            let (v4, v6) = (try await key("203.0.113.7"), try await key("2001:db8::1"))
            #expect(v4 != v6 && v4 != direct && v6 != direct)
            let fours = [
                "203.0.113.7:51234", "\"203.0.113.7:51234\"", "203.0.113.7:_edge",
                "198.51.100.9:1, 203.0.113.7:80", "203.0.113.7, ", "[::ffff:203.0.113.7]:9"
            ]
            for value in fours { #expect(try await key(value) == v4, "\(value)") }
            let sixes = [
                "[2001:db8::1]:4711", "[2001:db8::1]", "\"[2001:db8::1]:4711\"", "2001:db8::1%eth0",
                "[2001:db8::1%eth0]:4711"
            ]
            for value in sixes { #expect(try await key(value) == v6, "\(value)") }
            #expect(listener.unreadClients == 0)
            let unread = [
                "unknown", "_hidden", "203.0.113.7:", "203.0.113.7:port", "203.0.113.7:123456",
                "[2001:db8::1",
                "[2001:db8::1]4711", "[]:1", "\"", "proxy.example:80", "%eth0"
            ]
            for (index, value) in unread.enumerated() {
                let seen = try await who(port, "X-Forwarded-For: \(value)\r\n")
                #expect(seen.key == direct && !seen.loopback, "\(value)")
                #expect(listener.unreadClients == index + 1)
            }
        }
    }

    @Test("Who is no trusted proxy cannot claim an address, a scheme, or loopback")
    func spoofing() async throws {
        let proxies = try TrustedProxies(["10.0.0.0/8"], of: configured("public"))
        try await withListener([Self.face], proxies: proxies) { _, port in
            let direct = try await who(port, "")
            let claim = try await who(port, "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\n")
            #expect(claim.key == direct.key)
            #expect(!claim.secure)
        }
    }

    @Test("IPv6 clients count by their /64")
    func sixtyFour() async throws {
        let proxies = try TrustedProxies(["127.0.0.1"], of: configured("public"))
        try await withListener([Self.face], proxies: proxies) { _, port in
            let one = try await who(port, "X-Forwarded-For: 2001:db8:1:2::1\r\n")
            #expect(try await who(port, "X-Forwarded-For: 2001:db8:1:2:ffff::9\r\n").key == one.key)
            #expect(try await who(port, "X-Forwarded-For: 2001:db8:1:3::1\r\n").key != one.key)
        }
    }

    @Test(
        "A proxy that is no address is a configuration error",
        arguments: ["proxy", "10.0.0.0/33", "::/129", "10/8", ""])
    func malformed(_ text: String) {
        #expect(throws: IngressError(.proxyMalformed)) {
            try TrustedProxies([text], of: configured("public"))
        }
    }
}

@Suite("Addresses", .timeLimit(.minutes(30)))
struct AddressTests {
    @Test(
        "Only public addresses are global",
        arguments: [
            ("8.8.8.8", true), ("1.1.1.1", true), ("192.0.1.1", true), ("172.15.0.1", true),
            ("172.32.0.1", true),
            ("100.63.0.1", true), ("100.128.0.1", true), ("223.255.255.255", true), ("198.20.0.1", true),
            ("0.0.0.0", false), ("0.1.2.3", false), ("10.0.0.1", false), ("100.64.0.1", false),
            ("100.127.255.255", false),
            ("127.0.0.1", false), ("127.255.255.255", false), ("169.254.169.254", false),
            ("172.16.0.1", false),
            ("172.31.255.255", false), ("192.0.0.1", false), ("192.0.2.1", false), ("192.88.99.1", false),
            ("192.168.1.1", false), ("198.18.0.1", false), ("198.19.255.255", false), ("198.51.100.1", false),
            ("203.0.113.1", false), ("224.0.0.1", false), ("239.255.255.255", false), ("240.0.0.1", false),
            ("255.255.255.255", false),
            ("2606:4700:4700::1111", true), ("2a00:1450:4001:81b::200e", true),
            ("2001:4860:4860::8888", true),
            ("::", false), ("::1", false), ("::ffff:127.0.0.1", false), ("::ffff:10.0.0.1", false),
            ("::ffff:8.8.8.8", true), ("::ffff:a9fe:a9fe", false), ("::127.0.0.1", false),
            ("64:ff9b::7f00:1", false),
            ("64:ff9b:1::1", false), ("100::1", false), ("2001::1", false), ("2001:10::1", false),
            ("2001:20::1", false),
            ("2001:db8::1", false), ("2002:7f00:1::", false), ("3fff::1", false), ("fc00::1", false),
            ("fd12:3456::1", false),
            ("fe80::1", false), ("fec0::1", false), ("ff02::1", false), ("4000::1", false)
        ])
    func global(_ text: String, _ isGlobal: Bool) {
        #expect(IPAddress(text)?.isGlobal == isGlobal)
    }

    @Test(
        "Forms on which programs disagree are no addresses",
        arguments: [
            "", "1", "1.2.3", "1.2.3.4.5", "1.2.3.256", "01.2.3.4", "0x7f.0.0.1", "127.1", "2130706433",
            "1.2.3.4 ",
            " 1.2.3.4", "1.2.3.+4", "1..2.3", ":", ":::", "1:2", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9",
            "::1::2", "12345::",
            "g::", "fe80::1%eth0", "[::1]", "1:2:3:4:5:6:7::8", "::1.2.3", "1.2.3.4::", "::ffff:1.2.3.4:5",
            ":1::", "1:",
            "::+1", "1.2.3.4/8", "١.2.3.4"
        ])
    func malformed(_ text: String) {
        #expect(IPAddress(text) == nil)
    }

    @Test("An address and its text are the same address")
    func text() {
        for text in ["0.0.0.0", "1.2.3.4", "255.255.255.255", "0:0:0:0:0:0:0:1", "2001:db8:0:1:0:0:0:ff"] {
            #expect(IPAddress(text)?.text == text)
        }
        #expect(IPAddress("::ffff:1.2.3.4") == IPAddress("1.2.3.4"))
        #expect(IPAddress("2001:DB8::1") == IPAddress("2001:db8:0:0:0:0:0:1"))
        #expect("\(IPAddress(v4: 0x0102_0304))" == "‹address›")
    }

    @Test("Blocks hold what begins like them")
    func blocks() {
        let cases: [(String, String, Bool)] = [
            ("10.0.0.0/8", "10.255.0.1", true), ("10.0.0.0/8", "11.0.0.1", false),
            ("0.0.0.0/0", "1.2.3.4", true),
            ("0.0.0.0/0", "::1", false), ("::/0", "::1", true), ("::/0", "1.2.3.4", true),
            ("fd00::/8", "fdff::1", true),
            ("fd00::/8", "fe00::1", false), ("2001:db8::/64", "2001:db8::ffff:1", true),
            ("2001:db8::/65", "2001:db8::8000:0:0:1", false), ("192.0.2.7", "192.0.2.7", true),
            ("192.0.2.7", "192.0.2.8", false), ("192.0.2.6/31", "192.0.2.7", true), ("::1", "::1", true)
        ]
        for (block, address, holds) in cases {
            let contains = AddressBlock(block).flatMap { block in
                IPAddress(address).map { block.contains($0) }
            }
            #expect(contains == holds, "\(block) \(address)")
        }
    }
}
