import Primitives
public import PushModel
import WireFormats

/// What Waku carries (14/WAKU2-MESSAGE).
public struct WakuMessage: Sendable {
    /// Sealed (26/WAKU2-PAYLOAD, version 1).
    public var payload: Secret
    /// Where it travels: `/application/version/name/encoding` (23/WAKU2-TOPICS).
    public var contentTopic: String
    /// How the payload is sealed: 1.
    public var version: UInt32
    /// Unix nanoseconds.
    public var timestamp: Int64
    /// What the application says beside it, at most 64 bytes; Status says nothing.
    public var meta: Secret
    /// Whether store nodes are not to keep it.
    public var isEphemeral: Bool

    /// A message as a node hands it over, or takes it.
    ///
    /// - Parameter payload: sealed bytes.
    /// - Parameter timestamp: Unix nanoseconds.
    /// - Parameter meta: at most 64 bytes.
    public init(
        payload: Secret, contentTopic: String, version: UInt32 = 1, timestamp: Int64,
        meta: Secret = Secret([]),
        isEphemeral: Bool = false
    ) {
        self.payload = payload
        self.contentTopic = contentTopic
        self.version = version
        self.timestamp = timestamp
        self.meta = meta
        self.isEphemeral = isEphemeral
    }

    /// Where Status's messages travel: cluster 16, shard 32.
    package static let pubsubTopic = "/waku/2/rs/16/32"

    /// What tells a message from another (14/WAKU2-MESSAGE, "Deterministic message hashing"): 32 bytes.
    package func hash(pubsubTopic: String) -> [UInt8] {
        withBytes(Array(pubsubTopic.utf8)) { topic in
            withBytes(Array(contentTopic.utf8)) { contentTopic in
                payload.reveal { payload in
                    meta.reveal { meta in
                        withUnsafeBytes(of: timestamp.bigEndian) { timestamp in
                            SHA256.hash(joining: [topic, payload, contentTopic, meta, timestamp])
                        }
                    }
                }
            }
        }
    }

    /// The protobuf form, which nodes exchange.
    package func encoded() -> Secret {
        var writer = ProtobufWriter(reserving: 256 + payload.count + meta.count + contentTopic.utf8.count)
        writer.bytes(1, payload)
        writer.bytes(2, Array(contentTopic.utf8))
        writer.varint(3, UInt64(version))
        writer.signed(10, timestamp)
        writer.bytes(11, meta)
        let fields = writer.takeSecret()
        // Field 31 is written when it is false too.
        let ephemeral: [UInt8] = [0xF8, 0x01, isEphemeral ? 1 : 0]
        return Secret(count: fields.count + ephemeral.count) { out in
            fields.reveal { out.copyBytes(from: $0) }
            UnsafeMutableRawBufferPointer(rebasing: out[fields.count...]).copyBytes(from: ephemeral)
        }
    }
}
