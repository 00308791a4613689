import Crypto

/// A message in a simulated Waku network.
package struct SimulatedWakuMessage: Sendable, Equatable {
    package var payload: [UInt8]
    package var contentTopic: String
    package var version: UInt32
    /// Unix nanoseconds.
    package var timestamp: Int64
    package var meta: [UInt8]
    package var isEphemeral: Bool

    package init(
        payload: [UInt8], contentTopic: String, version: UInt32 = 1, timestamp: Int64, meta: [UInt8] = [],
        isEphemeral: Bool = false
    ) {
        self.payload = payload
        self.contentTopic = contentTopic
        self.version = version
        self.timestamp = timestamp
        self.meta = meta
        self.isEphemeral = isEphemeral
    }

    /// The size of a message and its envelope in the form that nodes exchange, which nodes count.
    var bytes: Int { payload.count + contentTopic.utf8.count + meta.count + 24 }

    /// 14/WAKU2-MESSAGE: identifies a message, and marks where a page of a store's answer ended.
    func hash(on pubsubTopic: String) -> [UInt8] {
        var hash = SHA256()
        hash.update(data: Array(pubsubTopic.utf8))
        hash.update(data: payload)
        hash.update(data: Array(contentTopic.utf8))
        hash.update(data: meta)
        withUnsafeBytes(of: timestamp.bigEndian) { hash.update(bufferPointer: $0) }
        return Array(hash.finalize())
    }

    /// The form in which a node returns it.
    var tree: JSONTree {
        var members: [JSONTree.Member] = [
            .init(name: "payload", value: .string(SimulatorBase64.encode(payload))),
            .init(name: "contentTopic", value: .string(contentTopic)),
            .init(name: "version", value: .number(version)),
            .init(name: "timestamp", value: .number(timestamp))
        ]
        if !meta.isEmpty { members.append(.init(name: "meta", value: .string(SimulatorBase64.encode(meta)))) }
        members.append(.init(name: "ephemeral", value: .bool(isEphemeral)))
        members.append(.init(name: "proof", value: ""))
        return .object(members)
    }

    /// Reads a published message as nodes do: payload and content topic are required and not empty, a missing
    /// version is 0, a missing timestamp is now, a repeated name is a fault.
    ///
    /// - Returns: `nil` if a node would answer 400.
    init?(_ tree: JSONTree, now: Int64) {
        guard let members = tree.members, Set(members.map(\.name)).count == members.count,
            let text = tree["payload"]?.text, let payload = SimulatorBase64.decode(Array(text.utf8)),
            let topic = tree["contentTopic"]?.text, !payload.isEmpty, !topic.isEmpty
        else { return nil }
        self.init(payload: payload, contentTopic: topic, version: 0, timestamp: now)
        if let version = tree["version"] {
            guard let number = version.integer.flatMap({ UInt32(exactly: $0) }) else { return nil }
            self.version = number
        }
        if let time = tree["timestamp"] {
            guard let number = time.integer else { return nil }
            if number != 0 { timestamp = number }
        }
        if let mark = tree["meta"] {
            guard let bytes = mark.text.flatMap({ SimulatorBase64.decode(Array($0.utf8)) }) else {
                return nil
            }
            meta = bytes
        }
        if let flag = tree["ephemeral"] {
            guard let isEphemeral = flag.flag else { return nil }
            self.isEphemeral = isEphemeral
        }
    }
}
