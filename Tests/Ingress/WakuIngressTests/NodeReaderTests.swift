import PushModel
import StatusPush
import Testing
import WakuIngress

private func secret(_ text: String) -> Secret { Secret(Array(text.utf8)) }

/// `/waku/1/0x0000002a/rfc26` and others of that form.
private func topic(_ id: UInt32) -> String { WakuTopic.contentTopic(of: id) }

@Suite("A node's answers")
struct NodeReaderTests {
    @Test("A poll's messages are read, and of topics that nobody wants nothing but the topic")
    func messages() throws {
        let body = secret(
            """
            [{"payload":"aGVsbG8=","contentTopic":"\(topic(42))","version":1,"timestamp":1700000000000000001,\
            "meta":"bWV0YQ==","ephemeral":true,"proof":"","more":{"a":[1,2]}},
             {"payload":"!! not base64 !!","contentTopic":"\(topic(43))"},
             {"payload":"aGVsbG8=","contentTopic":"/toy-chat/2/huilong/proto"}]
            """)
        let batch = try NodeReader.messages(body) { $0 == 42 }
        #expect(batch.heard == 3 && batch.foreign == 2 && batch.malformed == 0 && !batch.isCut)
        let first = try #require(batch.messages.first)
        #expect(first.topic == 42)
        #expect(first.message.payload == secret("hello"))
        #expect(first.message.meta == secret("meta"))
        #expect(first.message.contentTopic == topic(42))
        #expect(first.message.version == 1 && first.message.isEphemeral)
        #expect(first.message.timestamp == 1_700_000_000_000_000_001)
    }
}

extension NodeReaderTests {
    private static func answer(_ id: UInt32 = 42) -> String {
        #"[{"payload":"aGVsbG8=","contentTopic":"\#(topic(id))","version":1,"timestamp":5,"meta":"bQ=="}]"#
    }

    @Test("An empty list and go-waku's null hold nothing", arguments: ["[]", "null", " [ ] ", "\nnull\n"])
    func empty(_ text: String) throws {
        let batch = try NodeReader.messages(secret(text)) { _ in true }
        #expect(batch.heard == 0 && batch.messages.isEmpty && !batch.isCut)
    }

    @Test(
        "What is no list is no answer",
        arguments: ["", "{}", "true", "\"OK\"", "OK", "<html>", "nul", "null null", "\u{0}", "5"])
    func noList(_ text: String) {
        #expect(throws: NodeFault.malformed) { try NodeReader.messages(secret(text)) { _ in true } }
    }

    @Test("An answer that breaks off anywhere is cut, and what came whole before it counts")
    func truncated() throws {
        let whole = Array(
            (String(Self.answer().dropLast()) + "," + String(Self.answer(43).dropFirst())).utf8)
        let first = Self.answer().utf8.count - 1
        for length in 1..<whole.count {
            let batch = try NodeReader.messages(Secret(whole.prefix(length))) { _ in true }
            #expect(batch.isCut)
            let count = length >= whole.count - 1 ? 2 : length >= first ? 1 : 0
            #expect(batch.messages.count == count, "of \(length) bytes")
        }
    }

    @Test(
        "A message that is none is counted, and the next one is read",
        arguments: [
            "5", "null", "[]", "\"text\"", "{}",
            #"{"payload":"aGVsbG8=","contentTopic":"TOPIC","version":4294967296}"#,
            #"{"payload":"aGVsbG8=","contentTopic":"TOPIC","version":-1}"#,
            #"{"payload":"","contentTopic":"TOPIC"}"#, #"{"payload":5,"contentTopic":"TOPIC"}"#,
            #"{"payload":"aGVsbG8","contentTopic":"TOPIC","meta":"!"}"#,
            #"{"payload":"a","contentTopic":"TOPIC"}"#, #"{"payload":"aGVsbG9=","contentTopic":"TOPIC"}"#,
            #"{"payload":"aGVsbG8=\n","contentTopic":"TOPIC"}"#, #"{"contentTopic":"TOPIC"}"#,
            #"{"payload":"-_-_","contentTopic":"TOPIC"}"#
        ])
    func malformed(_ text: String) throws {
        let message = text.replacing("TOPIC", with: topic(42))
        let batch = try NodeReader.messages(secret("[\(message),\(Self.answer().dropFirst())")) { _ in true }
        #expect(batch.heard == 2 && batch.messages.count == 1 && !batch.isCut)
        #expect(batch.malformed + batch.foreign == 1)
    }

    @Test(
        "Base64 is read with a slash escaped or not", arguments: ["+/+/AA==", #"+\/+\/AA=="#])
    func base64(_ text: String) throws {
        let body = secret(#"[{"payload":"\#(text)","contentTopic":"\#(topic(1))"}]"#)
        let batch = try NodeReader.messages(body) { _ in true }
        let message = try #require(batch.messages.first?.message)
        #expect(message.payload == Secret([0xFB, 0xFF, 0xBF, 0x00]))
        #expect(message.version == 0 && message.timestamp == 0)
    }

    @Test("A payload or a mark beyond its bound is malformed, and nothing is decoded of it")
    func large() throws {
        let payload = String(repeating: "A", count: (WakuLimits.payloadBytes / 3 + 1) * 4)
        let mark = String(repeating: "A", count: (WakuLimits.metaBytes / 3 + 1) * 4)
        for text in [
            #"[{"payload":"\#(payload)","contentTopic":"\#(topic(1))"}]"#,
            #"[{"payload":"AAAA","meta":"\#(mark)","contentTopic":"\#(topic(1))"}]"#
        ] {
            let batch = try NodeReader.messages(secret(text)) { _ in true }
            #expect(batch.malformed == 1 && batch.messages.isEmpty)
        }
    }

    @Test(
        "A content topic of another form is nobody's",
        arguments: [
            "", "/waku/1/0x0000002/rfc26", "/waku/1/0x0000002g/rfc26", "/waku/2/0x0000002a/rfc26",
            "/waku/1/0x0000002a/rfc27", "/waku/1/0x0000002a/rfc26 ", "/waku/1/0x0000002a/rfc2é"
        ])
    func foreignTopics(_ text: String) throws {
        let body = secret(#"[{"payload":"AAAA","contentTopic":"\#(text)"}]"#)
        let batch = try NodeReader.messages(body) { _ in true }
        #expect(batch.foreign == 1 && batch.messages.isEmpty)
    }

    @Test("A content topic is the same in upper case and with escapes")
    func topicSpellings() throws {
        for text in [
            "/waku/1/0xABCDEF01/rfc26", #"\/waku\/1\/0xabcdef01\/rfc26"#, #"/waku/1/0xabcdef0\u0031/rfc26"#
        ] {
            let body = secret(#"[{"payload":"AAAA","contentTopic":"\#(text)"}]"#)
            let batch = try NodeReader.messages(body) { $0 == 0xABCD_EF01 }
            #expect(batch.messages.first?.message.contentTopic == "/waku/1/0xabcdef01/rfc26")
        }
    }

    @Test("More messages than are read are cut")
    func tooMany() throws {
        let one = #"{"payload":"AAAA","contentTopic":"x"}"#
        let body = secret(
            "[" + Array(repeating: one, count: WakuLimits.answerMessages + 1).joined(separator: ",") + "]")
        let batch = try NodeReader.messages(body) { _ in true }
        #expect(batch.isCut && batch.heard == WakuLimits.answerMessages)
    }

    @Test("A page of a store is read in nwaku's spelling and in go-waku's")
    func page() throws {
        let message = #"{"payload":"AAAA","contentTopic":"\#(topic(42))","timestamp":7,"ephemeral":false}"#
        let nwaku =
            #"{"requestId":"1","statusCode":200,"statusDesc":"","messages":[{"messageHash":"0x00","message":"#
            + message
            + #","pubsubTopic":"/waku/2/rs/16/32"},{"messageHash":"0x01"}],"paginationCursor":"0xab"}"#
        let goWaku =
            #"{"request_id":"1","status_code":200,"messages":[{"message_hash":"AA==","message":"#
            + message.replacing("contentTopic", with: "content_topic")
            + #"}],"pagination_cursor":"q80="}"#
        let first = try NodeReader.page(secret(nwaku)) { $0 == 42 }
        #expect(first.batch.messages.count == 1 && first.cursor == "0xab" && first.newest == 7)
        let second = try NodeReader.page(secret(goWaku)) { $0 == 42 }
        #expect(second.batch.messages.count == 1 && second.cursor == "q80=" && second.newest == 7)
        let last = try NodeReader.page(secret(#"{"messages":null}"#)) { _ in true }
        #expect(last.batch.heard == 0 && last.cursor == nil && last.newest == nil)
        let other = try NodeReader.page(secret(nwaku)) { _ in false }
        #expect(other.batch.foreign == 1 && other.newest == 7)
    }

    @Test(
        "A page that cannot be read, or that a store calls a failure, is no page",
        arguments: [
            "", "[]", "null", "{", #"{"messages":[{"message":{"payload":"AAAA"}]}"#, #"{"messages":{}}"#,
            #"{"messages":[5]}"#, #"{"statusCode":429,"messages":[]}"#, #"{"status_code":500}"#,
            #"{"messages":[]} x"#, #"{"paginationCursor":"\#(String(repeating: "a", count: 257))"}"#
        ])
    func noPage(_ text: String) {
        #expect(throws: NodeFault.malformed) { try NodeReader.page(secret(text)) { _ in true } }
    }

    @Test("A node's health is read where it says some")
    func health() {
        func health(_ text: String) -> WakuHealth { NodeReader.health(secret(text)) }
        #expect(health(#"{"nodeHealth":"Ready","connectionStatus":"Connected"}"#) == .connected)
        #expect(
            health(#"{"connectionStatus":"PartiallyConnected","protocolsHealth":[{"a":"b"}]}"#)
                == .partlyConnected)
        #expect(health(#"{"connectionStatus":"Disconnected"}"#) == .alone)
        for text in [
            "", "Node is healthy", "{}", #"{"connectionStatus":5}"#, #"{"connectionStatus":"Odd"}"#, "[]"
        ] {
            #expect(health(text) == .unknown)
        }
    }

    @Test(
        "A node's address has a scheme, a host and perhaps a port, and is here where it has no TLS",
        arguments: [
            "", "127.0.0.1:8645", "ftp://127.0.0.1", "http://", "http://127.0.0.1/path", "http://127.0.0.1?x",
            "http://a@127.0.0.1", "http://10.0.0.1:8645", "http://node.example", "http://[2001:db8::1]",
            "http://a b",
            "https://", "https://a/b"
        ])
    func noNode(_ url: String) { #expect(WakuNode(url) == nil) }

    @Test(
        "Addresses of nodes",
        arguments: [
            "http://127.0.0.1:8645", "http://localhost:8645/", "http://[::1]:8645", "https://node.example",
            "http://127.9.9.9"
        ])
    func nodes(_ url: String) throws {
        let node = try #require(WakuNode(url))
        #expect(!node.url.hasSuffix("/") && url.hasPrefix(node.url))
    }

    @Test("A message is written as nodes read it, the version always")
    func written() throws {
        let message = WakuMessage(
            payload: secret("hello"), contentTopic: topic(42), timestamp: 7, meta: secret("m"))
        #expect(
            WakuCalls.json(message)
                == secret(
                    #"{"payload":"aGVsbG8=","contentTopic":"/waku/1/0x0000002a/rfc26","version":1,"#
                        + #""timestamp":7,"meta":"bQ==","ephemeral":false}"#))
    }
}
