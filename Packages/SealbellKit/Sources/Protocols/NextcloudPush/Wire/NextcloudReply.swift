import WireFormats

/// The relay's answers when it does not refuse. Every reply has status 200.
package enum NextcloudReply: Sendable {
    /// A device was registered or removed; the body is not read.
    case done
    /// What became of a batch (§5.5): identifiers of which the server deletes its registrations, and how many
    /// entries were not handed to a push service, those included.
    case judged(unknown: [DeviceIdentifier], failed: Int)

    package func body() -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        if case .judged(let unknown, let failed) = self {
            writer.beginArray("unknown")
            for identifier in unknown {
                withBytes(identifier.base64) { writer.string(escaped: $0) }
            }
            writer.endArray()
            writer.member("failed", Int64(failed))
        }
        writer.endObject()
        return writer.bytes
    }
}
