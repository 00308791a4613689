import EdwardsKeys
import Primitives
import PushModel
import PushTesting
import SessionPush
import Testing
import WireFormats

@Suite("Onion requests as the push server reads them")
struct OnionTests {
    private let peer: PeerOnion

    init() throws { peer = try PeerOnion() }

    private func inner(_ head: String, _ body: String? = "{}") -> [UInt8] { peer.inner(head, body) }

    private func request(
        _ plain: [UInt8], _ cipher: OnionCipher = .xchacha20, routing: String? = nil
    ) throws -> [UInt8] {
        try peer.request(plain, cipher, routing: routing)
    }

    private func open(_ body: [UInt8]) throws -> SessionOnion.Opened {
        try withBytes(body) { try SessionOnion.open($0, key: peer.server) }
    }

    private static let head =
        #"{"method":"POST","endpoint":"/subscribe","headers":{"Content-Type":"application/json"}}"#

    @Test(
        "A request opens with either cipher, and its reply with the same key", arguments: OnionCipher.allCases
    )
    func opens(cipher: OnionCipher) throws {
        let opened = try open(request(inner(Self.head), cipher))
        let request = try #require(opened.request)
        #expect(request.method == "POST")
        #expect(request.path == "/subscribe")
        #expect(request.contentType == "application/json")
        #expect(request.body == Secret("{}".utf8))
        let world = World.fixed(seed: 4, at: SessionRig.now)
        let reply = withBytes([0x78]) { opened.reply.seal(code: 200, contentType: nil, body: $0, world) }
        #expect(try peer.opened(reply, cipher) == Secret(#"l28:{"code": 200, "headers": {}}1:xe"#.utf8))
        let again = withBytes([0x78]) { opened.reply.seal(code: 200, contentType: nil, body: $0, world) }
        #expect(!(reply == again), "a nonce was used twice")
    }

    @Test(
        "Endpoints are read up to their query, methods in any case, header names too",
        arguments: [
            (#"{"method":"post","endpoint":"/subscribe?a=b"}"#, "POST", "/subscribe"),
            (#"{"method":"POST","endpoint":"/%73ubscribe"}"#, "POST", "/subscribe"),
            (#"{"endpoint":"/a%2Fb%3Fc","method":"Get","headers":null}"#, "GET", "/a/b?c"),
            (
                #"{"method":"POST","endpoint":"/","headers":{"CONTENT-TYPE":"x","a":[1]},"more":{}}"#, "POST",
                "/"
            )
        ])
    func heads(head: String, method: String, path: String) throws {
        let request = try #require(try open(request(inner(head))).request)
        #expect(request.method == method)
        #expect(request.path == path)
    }

    @Test(
        "A malformed inner layer is a value, so that it can be answered",
        arguments: [
            #"{"method":"POST"}"#, #"{"endpoint":"/x"}"#, #"{"method":"POST","endpoint":"x"}"#,
            #"{"method":"POST","endpoint":""}"#, #"{"method":1,"endpoint":"/x"}"#,
            #"{"method":"POST","endpoint":["/x"]}"#,
            #"{"method":"POST","endpoint":"/%"}"#, #"{"method":"POST","endpoint":"/%zz"}"#,
            #"{"method":"POST","endpoint":"/%ff"}"#, "[]", "", "null", "{}"
        ])
    func malformedInner(head: String) throws {
        let opened = try open(request(inner(head)))
        #expect(opened.request == nil)
        let reply = opened.reply.malformed(.fixed(seed: 1, at: SessionRig.now))
        #expect(reply.count > 100)
    }

    @Test("Bombs inside are malformed: depth, lengths, a head of a megabyte")
    func bombs() throws {
        for plain in [
            Array(String(repeating: "l", count: 90_000).utf8), Array("l99999999999999999999:ae".utf8),
            Array("l\(String(repeating: "0", count: 50_000))".utf8), [],
            inner(#"{"method":"POST","endpoint":"/\#(String(repeating: "x", count: 9_000))"}"#),
            inner(String(repeating: "[", count: 8_000)), inner(Self.head) + [0x65], Array("le".utf8)
        ] {
            #expect(try open(request(plain)).request == nil)
        }
        // One stray byte behind the first string, which a deployed parser overlooks.
        #expect(try open(request(Array("l\(Self.head.utf8.count):\(Self.head)xe".utf8))).request == nil)
    }

    @Test("Cut at every length, and with any one bit turned, a request does not open")
    func damage() throws {
        let whole = try request(inner(Self.head))
        for length in 0..<whole.count {
            #expect(throws: SessionError(.malformedOnion)) { try open(Array(whole[..<length])) }
        }
        let sealed = 4..<whole.count - Self.routingBytes
        for at in sealed {
            var turned = whole
            turned[at] ^= 0x40
            #expect(throws: SessionError(.malformedOnion)) { try open(turned) }
        }
    }

    private static let routingBytes = #"{"ephemeral_key":"","enc_type":"xchacha20"}"#.utf8.count + 64

    @Test(
        "Without a key or a cipher that is known there is nothing to answer with",
        arguments: [
            "", "{}", "[]", "null", #"{"ephemeral_key":null}"#, #"{"ephemeral_key":7}"#,
            #"{"ephemeral_key":""}"#,
            #"{"ephemeral_key":"00"}"#, #"{"enc_type":"aes-cbc","ephemeral_key":"KEY"}"#,
            #"{"enc_type":7,"ephemeral_key":"KEY"}"#, #"{"ephemeral_key":"KEY"} x"#,
            #"{"ephemeral_key":"0000000000000000000000000000000000000000000000000000000000000000","enc_type":"xchacha20"}"#,
            #"{"ephemeral_key":"0100000000000000000000000000000000000000000000000000000000000000","enc_type":"xchacha20"}"#
        ])
    func routing(json: String) throws {
        let json = json.replacing("KEY", with: peer.clientKey)
        #expect(throws: SessionError(.malformedOnion)) { try open(request(inner(Self.head), routing: json)) }
    }

    @Test("Bodies and what is behind the ciphertext have bounds")
    func bounds() throws {
        let large = [UInt8](repeating: 0, count: SessionLimits.onionBodyBytes + 1)
        #expect(throws: SessionError(.bodyTooLarge)) { try open(large) }
        let key = peer.clientKey
        let padded = { (count: Int) in
            #"{"ephemeral_key":"\#(key)","enc_type":"xchacha20","host":"\#(String(repeating: "h", count: count))"}"#
        }
        #expect(throws: Never.self) { try open(request(inner(Self.head), routing: padded(16_000))) }
        #expect(throws: SessionError(.malformedOnion)) {
            try open(request(inner(Self.head), routing: padded(17_000)))
        }
        let body = String(repeating: "x", count: SessionLimits.bodyBytes)
        #expect(try open(request(inner(Self.head, body))).request?.body.count == SessionLimits.bodyBytes)
    }
}
