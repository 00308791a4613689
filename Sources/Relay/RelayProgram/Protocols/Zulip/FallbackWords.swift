import WireFormats

/// What a fallback alert is on the wire.
extension FallbackAlert {
    /// The `aps` object that carries this alert, as JSON.
    var aps: [UInt8] {
        var writer = JSONWriter()
        func write(_ name: StaticString, _ text: String?) {
            guard let text else { return }
            writer.key(name)
            writer.string(text)
        }
        writer.beginObject()
        writer.key("mutable-content")
        writer.int(1)
        writer.key("alert")
        writer.beginObject()
        write("title", self.title)
        write("body", self.body)
        write("title-loc-key", self.titleLocKey)
        write("loc-key", self.locKey)
        writer.endObject()
        write("sound", self.sound)
        write("category", self.category)
        writer.endObject()
        return writer.bytes
    }
}
