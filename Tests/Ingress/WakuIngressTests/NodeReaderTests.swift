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
