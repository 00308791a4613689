import HTTP2Client
import PushModel
import PushTesting
import Testing

@Suite("The client against foreign servers", .timeLimit(.minutes(30)))
struct ForeignPeerTests {
    @Test("nghttpd answers every request, at any width")
    func nghttpd() async throws {
        let peer = try await ForeignPeer.nghttpd(files: ["3/device/00aa"])
        let answers = try await Client(port: peer.port).running { try await $0.send(2000, width: 50) }
        #expect(answers.count == 2000)
        #expect(answers.allSatisfy { $0.status == 200 && $0.fate == .answered })
    }

    @Test("nginx ends each connection after 1,000 requests: of 20,000 none is lost and none doubled")
    func nginxGoaway() async throws {
        let peer = try await ForeignPeer.nginx(keepaliveRequests: 1000)
        let client = try Client(port: peer.port)
        let answers = try await client.running { try await $0.send(20_000, width: 200) }
        #expect(answers.count == 20_000)
        #expect(answers.allSatisfy { $0.status == 200 })
        let snapshot = client.pool.snapshot()
        // About twenty; of the connections that stood at the end none need have finished its thousand.
        #expect(snapshot.goaways >= 10)
        #expect(snapshot.unknownFates == 0)
        peer.stop()
        let lines = try peer.scratch.read("requests.log").split(separator: "\n").map(String.init)
        #expect(lines.count == 20_000)
        #expect(Set(lines).count == 20_000)
    }
}
