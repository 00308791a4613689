import EdwardsKeys
import Primitives
import PushModel
import PushTesting
import SessionPush
import Testing
import WireFormats

@Suite("Session's device asks through onions")
struct OnionRequestTests {
    private let pair: X25519KeyPair
    private let server: OnionServer
    private let call = SessionCall(id: 1, endpoint: .subscribe, body: Secret("{}".utf8))
    private var random = SeededRandom(seed: 21)

    init() throws {
        pair = try X25519KeyPair(privateKey: Secret([UInt8](repeating: 0x42, count: 32)))
        server = try OnionServer(host: "push.example.org", key: Secret(pair.publicKey))
    }

    private func reply(to request: OnionRequest, _ plain: [UInt8]) throws -> Secret {
        let frame = try DeviceVectors.Frame(request.body.reveal { Array($0) })
        let cipher = try #require(OnionCipher(encType: frame.routing["enc_type"]?.string))
        let ephemeral = try DeviceVectors.hex(frame.routing["ephemeral_key"])
        let key = try #require(withBytes(ephemeral) { cipher.key(pair, with: $0, isClient: false) })
        return withBytes(plain) {
            cipher.seal($0, key: key, nonce: [UInt8](repeating: 3, count: cipher.nonceBytes))
        }
    }

    @Test("The server reads method, endpoint and body", arguments: OnionCipher.allCases)
    func inner(cipher: OnionCipher) throws {
        var random = random
        let request = try server.request(call, through: [], cipher, using: &random)
        let plain = try DeviceVectors.Frame(request.body.reveal { Array($0) })
            .opened(by: pair.privateKey.reveal { Array($0) })
        let head = #"{"method":"POST","endpoint":"/subscribe","headers":{"Content-Type":"application/json"}}"#
        #expect(String(decoding: plain, as: UTF8.self) == "l\(head.utf8.count):\(head)2:{}e")
        // No two requests are alike.
        let again = try server.request(call, through: [], cipher, using: &random)
        #expect(!(request.body == again.body))
        let opened = try request.answer(
            status: 200, body: reply(to: request, Array(#"l12:{"code":403}2:noe"#.utf8)))
        #expect(opened.status == 403 && opened.body == Secret("no".utf8))
        #expect(throws: SessionError(.doesNotOpen)) {
            try again.answer(status: 200, body: reply(to: request, Array(#"l12:{"code":200}2:noe"#.utf8)))
        }
    }

    @Test(
        "A reply of another form is refused",
        arguments: [
            "", "le", "l2:{}e", #"l12:{"code":200}e"#, #"l12:{"code":200}0:0:e"#, #"l12:{"code":999}0:e"#,
            #"l14:{"code":"200"}0:e"#, #"l12:{"code":200}i1ee"#, #"l12:{"code":200}0:e "#, #"{"code":200}"#
        ])
    func malformedReply(plain: String) throws {
        var random = random
        let request = try server.request(call, using: &random)
        #expect(throws: SessionError(.malformedAnswer)) {
            try request.answer(status: 200, body: reply(to: request, Array(plain.utf8)))
        }
    }

    @Test("Whatever a node says is not the server's answer", arguments: [nil, 400, 404, 500, 503])
    func pathFails(status: Int?) throws {
        var random = random
        let request = try server.request(call, using: &random)
        #expect(throws: SessionError(.pathFailed)) {
            try request.answer(status: status, body: Secret(#"{"success":true}"#.utf8))
        }
        #expect(throws: SessionError(.doesNotOpen)) {
            try request.answer(status: 200, body: Secret(#"{"success":true}"#.utf8))
        }
        #expect(throws: SessionError(.malformedAnswer)) {
            try request.answer(status: 200, body: Secret([UInt8](repeating: 0, count: 200_000)))
        }
    }

    @Test("Keys, hosts and paths of no use are refused")
    func refuses() throws {
        var random = random
        #expect(throws: SessionError(.malformedKey)) {
            try OnionServer(host: "push.example.org", key: Secret([1, 2, 3]))
        }
        for host in ["", "a/b", "a b", String(repeating: "a", count: 254)] {
            #expect(throws: SessionError(.malformedServer)) {
                try OnionServer(host: host, key: Secret(pair.publicKey))
            }
        }
        let zero = Secret([UInt8](repeating: 0, count: 32))
        #expect(throws: SessionError(.malformedKey)) {
            try OnionServer(host: "push.example.org", key: zero).request(call, using: &random)
        }
        let node = try OnionNode(ed25519: zero, x25519: Secret(pair.publicKey))
        let bad = try OnionNode(ed25519: zero, x25519: zero)
        #expect(throws: SessionError(.malformedKey)) {
            try server.request(call, through: [node, bad, node], using: &random)
        }
        #expect(throws: SessionError(.pathTooLong)) {
            try server.request(call, through: [OnionNode](repeating: node, count: 16), using: &random)
        }
        #expect(
            try server.request(call, through: [OnionNode](repeating: node, count: 15), using: &random).path
                == "/onion_req/v2")
    }
}
