package import StatusPush

/// A message of a followed topic, as the node has it. Nothing in it has been verified yet.
package struct WakuArrival: Sendable {
    /// How it came.
    package enum Source: String, Sendable, Hashable, CaseIterable {
        /// The node received it lately.
        case live
        /// From the store, which was asked for missed messages.
        case stored
    }

    package let message: WakuMessage
    /// Of its content topic: `WakuTopic.id`. Topics may share one.
    package let topic: UInt32
    package let source: Source
    /// Of the message, by which it is known when it comes again.
    let hash: [UInt8]

    package init(message: WakuMessage, topic: UInt32, source: Source, hash: [UInt8] = []) {
        self.message = message
        self.topic = topic
        self.source = source
        self.hash = hash
    }

    /// Bytes of memory that it takes, or somewhat more.
    var size: Int { message.payload.count + message.meta.count + 512 }
}
