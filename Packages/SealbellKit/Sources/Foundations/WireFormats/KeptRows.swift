package import PushModel

/// What a device keeps between runs: rows of texts, as a JSON array of arrays.
package enum KeptRows {
    package static func write(_ rows: [[Secret]]) -> Secret {
        let size = rows.reduce(8) { $0 + $1.reduce(8) { $0 + 2 * $1.count + 8 } }
        var writer = JSONWriter(reserving: size)
        writer.beginArray()
        for row in rows {
            writer.beginArray()
            for text in row { text.reveal { writer.string(utf8: $0) } }
            writer.endArray()
        }
        writer.endArray()
        return writer.takeSecret()
    }

    /// - Parameter limit: bytes of the text.
    /// - Returns: `nil` for anything else than such rows.
    package static func read(_ kept: Secret, atMost limit: Int) -> [[Secret]]? {
        guard kept.count <= limit else { return nil }
        return kept.reveal { bytes in
            do { return try read(bytes) } catch { return nil }
        }
    }

    private static func read(_ bytes: UnsafeRawBufferPointer) throws(FormatError) -> [[Secret]] {
        var reader = JSONReader(bytes, depthLimit: 2)
        var rows: [[Secret]] = []
        try reader.beginArray()
        while try reader.nextElement() {
            var row: [Secret] = []
            try reader.beginArray()
            while try reader.nextElement() { row.append(try reader.readString().secret()) }
            rows.append(row)
        }
        try reader.end()
        return rows
    }
}

extension Secret {
    /// A text of a kept row that is no secret: a URL, a number, a word.
    package var word: String { reveal { String(decoding: $0, as: UTF8.self) } }
}
