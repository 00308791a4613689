import WireFormats

/// What a fallback alert is on the wire.
extension FallbackAlert {
    /// The `aps` object that carries this alert, as JSON.
    var aps: [UInt8] {
        JSONWriter.object { json in
            json.member("mutable-content", 1)
            json.key("alert")
            json.raw(alert)
            json.texts([("sound", self.sound), ("category", self.category)])
        }
    }

    /// The alert alone, as a JSON object.
    var alert: [UInt8] {
        JSONWriter.object {
            $0.texts([
                ("title", self.title), ("body", self.body), ("title-loc-key", self.titleLocKey),
                ("loc-key", self.locKey)
            ])
        }
    }
}
