import HTTPIngress
import NIOCore
import NIOSSL
import PushModel
import PushTesting
import Simulators
import Testing

@Suite("What changes while the listener runs", .timeLimit(.minutes(30)))
struct SwapTests {
    @Test("Routers are swapped under load: no request fails, and the next one meets the new face")
    func hotSwap() async throws {
        func face(_ text: String) -> ProbeFace {
            ProbeFace { _ in
                await Task.yield()
                return .text(200, text)
            }
        }
        try await withListener([face("0")]) { listener, port in
            let isOver = Noted(false)
            let answered = try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<8 {
                    group.addTask {
                        let client = try await RawClient.connect(port)
                        var count = 0
                        while !isOver.value {
                            try await client.send(post("/echo", "x"))
                            #expect(try await client.answer().status == 200)
                            count += 1
                        }
                        client.close()
                        return count
                    }
                }
                let probe = try await RawClient.connect(port)
                for round in 1...50 {
                    listener.install(try HTTPRouter([face("\(round)")]))
                    try await probe.send(get("/echo"))
                    #expect(try await probe.answer().text == "\(round)\n")
                }
                isOver.set(true)
                probe.close()
                return try await group.reduce(0, +)
            }
            #expect(answered > 0)
        }
    }

    @Test("A request whose face is taken away meanwhile is still answered by it")
    func pinned() async throws {
        let gate = Gate()
        let old = ProbeFace { _ in
            await gate.wait()
            return .text(200, "old")
        }
        let load = Signal()
        try await withClient([old], load: load) { listener, client in
            try await client.send(get("/echo"))
            await load.until { listener.load.requests == 1 }
            listener.install(try HTTPRouter([]))
            gate.open()
            #expect(try await client.answer().text == "old\n")
            try await client.send(get("/echo"))
            #expect(try await client.answer().status == 404)
        }
    }

    @Test("Two instances that want one path are a configuration error that names both")
    func clash() throws {
        let pairs: [(HTTPRoute.Pattern, HTTPRoute.Pattern, Bool)] = [
            (.exact("/a"), .exact("/a"), true), (.prefix("/a/"), .prefix("/a/b/"), true),
            (.prefix("/a/b/"), .prefix("/a/"), true), (.prefix("/a/"), .exact("/a/b"), true),
            (.exact("/a/b"), .prefix("/a/"), true), (.exact("/a"), .prefix("/a/"), false),
            (.exact("/a"), .exact("/b"), false), (.prefix("/a/"), .prefix("/b/"), false)
        ]
        for (left, right, clashes) in pairs {
            let faces = [
                ProbeFace("left", [HTTPRoute(left, bodyLimitBytes: 1)]),
                ProbeFace("right", [HTTPRoute(right, bodyLimitBytes: 1)])
            ]
            do throws(IngressError) {
                _ = try HTTPRouter(faces)
                #expect(!clashes, "\(left) \(right)")
            } catch {
                #expect(clashes && error.code == .routeClash, "\(left) \(right)")
                #expect(error.names.map(\.text) == ["left", "right"])
                #expect(error.sentence.contains("left and right"))
            }
        }
    }

    @Test("Within one face an exact path wins over a prefix, and the longest prefix over a shorter one")
    func precedence() async throws {
        let face = ProbeFace(
            "probe",
            [
                HTTPRoute(.prefix("/"), bodyLimitBytes: 1, tag: 1),
                HTTPRoute(.prefix("/a/"), bodyLimitBytes: 1, tag: 2),
                HTTPRoute(.exact("/a/b"), bodyLimitBytes: 1, tag: 3)
            ]
        ) { .text(200, "\($0.tag)") }
        try await withClient([face]) { _, client in
            for (path, tag) in [("/x", 1), ("/a/", 2), ("/a/bc", 2), ("/a/b", 3), ("/a", 1)] {
                try await client.send(get(path))
                #expect(try await client.answer().text == "\(tag)\n")
            }
        }
    }

    @Test("A reload shows the new certificate to new connections, keeps old ones, and survives broken files")
    func tlsReload() async throws {
        let folder = try TemporaryFolder()
        let files = TLSFiles(certificateChain: folder.file("chain.pem"), privateKey: folder.file("key.pem"))
        let firstShown = try folder.writeCertificate()
        try await withListener(tls: files) { listener, port in
            let first = Noted<[UInt8]?>(nil)
            let old = try await RawClient.connect(port) { try tlsClient { first.set($0) } }
            try await old.send(post("/echo", "1"))
            #expect(try await old.answer().text == "1")
            #expect(first.value == firstShown)

            let secondShown = try folder.writeCertificate()
            try listener.reloadTLS()
            let second = Noted<[UInt8]?>(nil)
            let new = try await RawClient.connect(port) { try tlsClient { second.set($0) } }
            try await new.send(post("/echo", "2"))
            #expect(try await new.answer().text == "2")
            #expect(second.value == secondShown && secondShown != firstShown)
            try await old.send(post("/echo", "3"))
            #expect(try await old.answer().text == "3")

            try folder.write("no PEM", to: "chain.pem")
            #expect(throws: IngressError(.tlsUnusable)) { try listener.reloadTLS() }
            let third = Noted<[UInt8]?>(nil)
            let still = try await RawClient.connect(port) { try tlsClient { third.set($0) } }
            try await still.send("POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 9999\r\n\r\n")
            #expect(try await still.answer().status == 400, "a refusal arrives over TLS too")
            #expect(await still.end() == [])
            #expect(third.value == secondShown)
            for client in [old, new, still] { client.close() }
        }
        folder.remove()
    }

    @Test("A TLS handshake that never comes ends at the head's deadline; plain HTTP at a TLS port ends too")
    func silentHandshake() async throws {
        let folder = try TemporaryFolder()
        _ = try folder.writeCertificate()
        let files = TLSFiles(certificateChain: folder.file("chain.pem"), privateKey: folder.file("key.pem"))
        let (clock, load) = (ManualClock(), Signal())
        let limits = patientLimits {
            $0.head = .seconds(1)
            $0.linger = .seconds(1)
            // Were it the idle connection's deadline that holds, nothing would end here.
            $0.idle = .seconds(1000)
        }
        try await withListener(limits: limits, tls: files, world: clock.world(seed: 1), load: load) {
            listener, port in
            let silent = try await RawClient.connect(port)
            await load.until { listener.load.connections == 1 }
            try await clock.pass(.milliseconds(980))
            let plain = try await RawClient.connect(port)
            try await plain.send(get("/echo"))
            let told = String(decoding: await plain.end(), as: UTF8.self)
            #expect(!told.contains("HTTP"), "nothing is answered in the clear")
            await load.until { listener.load.connections < 2 }
            #expect(listener.load.connections == 1, "the silent one stands until its deadline")
            try await clock.pass(.milliseconds(20))
            // A refusal cannot be said before the handshake: it ends when it has lingered.
            try await clock.pass(.seconds(1))
            _ = await silent.end()
            await load.until { listener.load.connections == 0 }
            #expect(listener.load.connections == 0)
            silent.close()
            plain.close()
        }
        folder.remove()
    }
}

/// A TLS client that believes anybody and reports the leaf it was shown, as DER.
private func tlsClient(_ seen: @escaping @Sendable ([UInt8]) -> Void) throws -> NIOSSLClientHandler {
    var settings = TLSConfiguration.makeClientConfiguration()
    settings.certificateVerification = .noHostnameVerification
    return try NIOSSLClientHandler(
        context: NIOSSLContext(configuration: settings), serverHostname: nil,
        customVerificationCallback: { chain, promise in
            seen(chain.first.flatMap { try? $0.toDERBytes() } ?? [])  // Empty fits no expectation.
            promise.succeed(.certificateVerified)
        })
}

extension TemporaryFolder {
    /// Writes a certificate for `localhost` and 127.0.0.1 with its authority, and its key, as PEM.
    ///
    /// - Returns: the certificate, as DER.
    func writeCertificate() throws -> [UInt8] {
        let authority = try CertificateAuthority()
        let issued = try authority.issue()
        try write(issued.certificatePEM + authority.certificatePEM, to: "chain.pem")
        try write(issued.privateKeyPEM, to: "key.pem")
        return try NIOSSLCertificate(bytes: Array(issued.certificatePEM.utf8), format: .pem).toDERBytes()
    }
}
