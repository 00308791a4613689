import PushModel
import PushTesting
import StatusPush
import Testing
import WakuIngress
import WireFormats

/// The envelopes of the shared vectors as a node's REST interface has them: each case is an argument.
struct RestVectors: Sendable {
    let set: VectorSet

    init(_ file: VectorFile) {
        set = VectorSet("status/\(file.set)/rest", VectorCase.each(of: file.json["envelopes"], "envelopes"))
    }

    func holds(_ vector: VectorCase) throws -> Bool {
        let row = vector.row
        let text = Secret(Array(try #require(row["rest_json_text"]?.string).utf8))
        let written = text.reveal { Secret([0x5B] + Array($0) + [0x5D]) }
        let topic = try #require(UInt32(row["topic4"]?.string ?? "", radix: 16))
        let batch = try NodeReader.messages(written) { $0 == topic }
        let message = try #require(batch.messages.first?.message)
        return try message.payload == Secret(bytes(row, "payload"))
            && message.contentTopic == row["content_topic_text"]?.string
            && message.encoded() == Secret(bytes(row, "waku_message_protobuf"))
            && message.hash(pubsubTopic: row["pubsub_topic_text"]?.string ?? "") == bytes(row, "message_hash")
            && WakuCalls.json(message) == text
            && NodeReader.messages(written, wants: { $0 != topic }).foreign == 1
    }
}

private func bytes(_ row: JSONValue, _ member: String) throws -> [UInt8] {
    try Hex.decode(Array(try #require(row[member]?.string).utf8))
}

@Suite("Status vectors of a node's REST interface", .timeLimit(.minutes(30)))
struct WakuVectorTests {
    /// `nil` when a directory was named that has no such file.
    static let main = Result { try VectorFile.load("status.json").map(RestVectors.init) }

    @Test("A case of the vectors holds", arguments: try WakuVectorTests.main.get()?.set.cases ?? [])
    func holds(_ vector: VectorCase) async throws {
        let runner = try #require(try Self.main.get())
        #expect(try await runner.set.run(vector) { try runner.holds($0) ? 1 : 0 })
    }
}
