import WireFormats

/// What a fallback alert is on the wire.
extension FallbackAlert {
    /// The `aps` object that carries this alert, as JSON.
    var aps: [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("mutable-content", 1)
        writer.key("alert")
        writer.raw(alert)
        Self.write("sound", self.sound, &writer)
        Self.write("category", self.category, &writer)
        writer.endObject()
        return writer.bytes
    }

    /// The alert alone, as a JSON object.
    var alert: [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        Self.write("title", self.title, &writer)
        Self.write("body", self.body, &writer)
        Self.write("title-loc-key", self.titleLocKey, &writer)
        Self.write("loc-key", self.locKey, &writer)
        writer.endObject()
        return writer.bytes
    }

    private static func write(_ name: StaticString, _ text: String?, _ writer: inout JSONWriter) {
        guard let text else { return }
        writer.key(name)
        writer.string(text)
    }
}
