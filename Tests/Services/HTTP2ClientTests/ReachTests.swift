import DialTesting
import HTTP2Client
import NIOPosix
import PushModel
import PushTesting
import ServiceLifecycle
import Synchronization
import Testing

@Suite("The way to a push service", .timeLimit(.minutes(30)))
struct ReachTests {
    @Test(
        "Addresses that are none are refused",
        arguments: [
            "", "http://a", "https://", "https://a/b", "https://a?b", "https://u@a", "https://a:0",
            "https://a:70000",
            "https://a:b", "https://[::1", "https://a b"
        ])
    func malformed(url: String) {
        #expect(throws: HTTP2Error(.malformedURL)) { try HTTP2Endpoint(url: url) }
    }

    @Test(
        "The authority names the port unless it is 443",
        arguments: [
            ("https://api.push.apple.com", "api.push.apple.com"), ("https://a:443/", "a"),
            ("https://a:2197", "a:2197"),
            ("https://[::1]:8443", "[::1]:8443")
        ])
    func authority(url: String, authority: String) throws {
        #expect(try HTTP2Endpoint(url: url).authority == authority)
    }

    @Test(
        "A CA file without a certificate is refused",
        arguments: ["", "canary", "-----BEGIN CERTIFICATE-----\n"])
    func certificates(text: String) {
        #expect(throws: HTTP2Error(.badCertificateFile)) {
            try HTTP2Endpoint(url: "https://a", certificates: Array(text.utf8))
        }
    }

    @Test("By name, with SNI, and by address")
    func names() async throws {
        let peer = try await RawPeer()
        for host in ["localhost", "127.0.0.1"] {
            let answer = try await Client(port: peer.port, host: host).running {
                try await $0.send($0.request())
            }
            #expect(answer.status == 200)
        }
        try await peer.close()
    }

    @Test("A graceful stop of the process leaves the pool at work, for what drains")
    func gracefulStop() async throws {
        let peer = try await RawPeer()
        let client = try Client(port: peer.port)
        let status = Mutex<Int?>(nil)
        let service = Draining {
            let answer = try await client.running { client in
                try await gracefulShutdown()
                return try await client.send(client.request())
            }
            status.withLock { $0 = answer.status }
        }
        let group = ServiceGroup(services: [service], logger: silentLogger)
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await group.run() }
            await group.triggerGracefulShutdown()
            try await tasks.waitForAll()
        }
        #expect(status.withLock { $0 } == 200)
        try await peer.close()
    }

    private struct Draining: Service {
        let body: @Sendable () async throws -> Void

        func run() async throws { try await body() }
    }

    @Test("Through a proxy that is asked to CONNECT, with its credential")
    func proxy() async throws {
        let peer = try await RawPeer()
        let proxy = try await ConnectProxy()
        let client = try Client(
            port: peer.port, host: "localhost",
            proxy: HTTP2Endpoint.Proxy(host: "127.0.0.1", port: proxy.port, authorization: "Basic dTpw"))
        let answers = try await client.running { try await $0.send(50, width: 10) }
        #expect(answers.count == 50 && answers.allSatisfy { $0.status == 200 })
        let head = try #require(proxy.requests.first).lowercased()
        #expect(head.hasPrefix("connect localhost:\(peer.port) http/1.1\r\n"))
        #expect(head.contains("proxy-authorization: basic dtpw\r\n"))
        try await proxy.close()
        try await peer.close()
    }

    @Test("A proxy that refuses, a certificate of nobody's and a closed port are failures, without a storm")
    func failures() async throws {
        let peer = try await RawPeer()
        let proxy = try await ConnectProxy(
            reply: "HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")
        let closed = try #require(HeldPort(0, isSixth: false))
        let trusted = try TestCertificate.shared.get().pem
        let endpoints = [
            try HTTP2Endpoint(
                url: "https://localhost:\(peer.port)", certificates: trusted,
                proxy: HTTP2Endpoint.Proxy(host: "127.0.0.1", port: proxy.port)),
            try HTTP2Endpoint(url: "https://localhost:\(peer.port)"),
            try HTTP2Endpoint(url: "https://127.0.0.1:\(closed.number)", certificates: trusted)
        ]
        for (endpoint, code) in zip(endpoints, ["unreachable", "tlsFailed", "unreachable"]) {
            try await expectFailure(code, of: endpoint)
        }
        #expect(peer.seen.headerBlocks.isEmpty)
        withExtendedLifetime(closed) {}
        try await proxy.close()
        try await peer.close()
    }

    @Test("A certificate for the address connected to does not do for a named host, nor behind a proxy")
    func addressForName() async throws {
        let peer = try await RawPeer(certificate: TestCertificate.otherName)
        let proxy = try await ConnectProxy()
        let trusted = try TestCertificate.otherName.get().pem
        func endpoint(_ host: String, _ proxy: ConnectProxy?) throws -> HTTP2Endpoint {
            try HTTP2Endpoint(
                url: "https://\(host):\(peer.port)", certificates: trusted,
                proxy: proxy.map { HTTP2Endpoint.Proxy(host: "127.0.0.1", port: $0.port) })
        }
        for proxy in [nil, proxy] {
            try await expectFailure("tlsFailed", of: try endpoint("localhost", proxy))
        }
        #expect(peer.seen.headerBlocks.isEmpty)
        // The certificate is good where the address itself was asked for.
        for proxy in [nil, proxy] {
            let client = try Client(endpoint: try endpoint("127.0.0.1", proxy))
            #expect(try await client.running { try await $0.send($0.request()) }.status == 200)
        }
        try await proxy.close()
        try await peer.close()
    }

    /// Runs a pool through four failures: one at once, and one more whenever the longest wait has passed.
    private func expectFailure(_ code: String, of endpoint: HTTP2Endpoint) async throws {
        let (clock, spy, options) = (ManualClock(), LogSpy(), HTTP2Options.patient)
        let pool = try failingPool(endpoint, clock, spy)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await pool.run() }
            // Waiting callers make it try no oftener.
            for _ in 0..<3 {
                group.addTask { _ = try? await pool.reserve() }  // Cancelled below: that is its end.
            }
            for attempt in 1...4 {
                await spy.until(attempt, contain: code)
                // Its time stands still. Meanwhile others fail at the same endpoint, one behind the other:
                // a pool that did not wait would have failed about as often.
                for _ in 0..<5 { try await failOnce(code, at: endpoint) }
                #expect(pool.snapshot().failed == attempt)
                await clock.sleepers(atLeast: 1)
                if attempt < 4 { clock.advance(by: options.backoffCap) }
            }
            group.cancelAll()
            try await group.waitForAll()
        }
        #expect(pool.snapshot().opened == 0)
        #expect(!spy.contains("localhost") && !spy.contains("127.0.0.1"))
    }

    private func failOnce(_ code: String, at endpoint: HTTP2Endpoint) async throws {
        let spy = LogSpy()
        let pool = try failingPool(endpoint, ManualClock(), spy)
        try await beside(pool.run) { await spy.until(contain: code) }
    }

    private func failingPool(
        _ endpoint: HTTP2Endpoint, _ clock: ManualClock, _ spy: LogSpy
    ) throws -> HTTP2Pool {
        // The sockets' own deadline goes by real time, and would say `unreachable` of whatever is slow.
        try HTTP2Pool(
            endpoint: endpoint, options: .patient, group: MultiThreadedEventLoopGroup.singleton,
            world: clock.world(seed: 1), journal: spy.journal, lane: LaneName("acme-chat/apns/production"))
    }
}
