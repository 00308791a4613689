package import StatusPush

/// Messages of one answer: those of topics that the caller wants, and how many of the others there were.
package struct NodeBatch: Sendable {
    /// Each with its content topic's id.
    package var messages: [(message: WakuMessage, topic: UInt32)] = []
    /// Of any topic.
    package var heard = 0
    /// Of topics that the caller does not want; only their topic was read.
    package var foreign = 0
    /// Of wanted topics, without a payload that can be read.
    package var malformed = 0
    /// The answer broke off, or had more messages than are read.
    package var isCut = false

    package init() {}
}

/// One page of a store's answer.
package struct NodePage: Sendable {
    package var batch = NodeBatch()
    /// Where the next page begins, as the store gave it; `nil`: there is none.
    package var cursor: String?
    /// Timestamp of the youngest message, of any topic, in Unix nanoseconds.
    package var newest: Int64?

    package init() {}
}
