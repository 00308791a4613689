/// The push services that a relay knows. A reader of a store is given a list; one is the standard.
package struct PushServices: Sendable {
    /// All services. A further one is a file in this folder and an element here.
    package static let standard = PushServices([APNsMessage.self, FCMMessage.self, UplinkMessage.self])

    package let messages: [any ServiceMessage.Type]
    private let byTag: [UInt8: any ServiceMessage.Type]

    /// - Parameter messages: of which no two have a name or a tag in common.
    package init(_ messages: [any ServiceMessage.Type]) {
        var byTag: [UInt8: any ServiceMessage.Type] = [:]
        for message in messages {
            for tag in message.storedTags {
                let other = byTag.updateValue(message, forKey: tag)
                precondition(other == nil, "two stored forms have one tag")
            }
        }
        precondition(Set(messages.map { $0.service }).count == messages.count, "two services have one name")
        self.messages = messages
        self.byTag = byTag
    }

    package var services: [PushService] { messages.map { $0.service } }

    /// Reads a message's stored form; `nil` for one of no service of the list, and for what is none.
    package func read(_ reader: inout StoredReader) -> ProviderMessage? {
        guard let tag = reader.byte(), let type = byTag[tag] else { return nil }
        return read(type, tag, &reader)
    }

    private func read<Message: ServiceMessage>(
        _: Message.Type, _ tag: UInt8, _ reader: inout StoredReader
    ) -> ProviderMessage? {
        Message(tag: tag, from: &reader).map { ProviderMessage($0) }
    }
}
