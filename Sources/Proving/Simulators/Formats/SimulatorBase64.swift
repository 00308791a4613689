import Foundation

/// SimulatorBase64 (RFC 4648 §4 and §5), and the textual form of keys and certificates (RFC 7468).
///
/// By Foundation, so that the simulators do not judge the sender by the sender's own parsers.
enum SimulatorBase64 {
    static func encode(_ bytes: [UInt8]) -> String { Data(bytes).base64EncodedString() }

    /// The alphabet for URLs, without padding.
    static func encodeURL(_ bytes: [UInt8]) -> String {
        encode(bytes).filter { $0 != "=" }.replacing("+", with: "-").replacing("/", with: "_")
    }

    /// Reads the alphabet for URLs without padding; `nil` for anything else, stray bits included.
    static func decodeURL(_ text: some Collection<UInt8>) -> [UInt8]? {
        let text = String(decoding: text, as: UTF8.self)
        guard !text.contains(where: { "+/=".contains($0) }) else { return nil }
        let padding = String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
        return decode((text.replacing("-", with: "+").replacing("_", with: "/") + padding).utf8)
    }

    /// Reads the standard alphabet, padded to groups of four; `nil` for anything else, stray bits included.
    static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
        guard !text.isEmpty else { return [] }
        let given = Data(text)
        // Stray bits are left out, and missing when it is written again.
        guard let bytes = Data(base64Encoded: given), bytes.base64EncodedData() == given else { return nil }
        return Array(bytes)
    }
}

enum PEM {
    static func text(_ label: String, _ bytes: [UInt8]) -> String {
        let options: Data.Base64EncodingOptions = [.lineLength64Characters, .endLineWithLineFeed]
        return "-----BEGIN \(label)-----\n\(Data(bytes).base64EncodedString(options: options))\n"
            + "-----END \(label)-----\n"
    }
}
