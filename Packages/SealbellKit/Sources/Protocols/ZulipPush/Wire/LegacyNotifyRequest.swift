package import PushModel
import WireFormats

/// `push/notify` of the plaintext protocol (§5.7): which tokens the origin still holds for a user.
///
/// This relay holds none of these tokens, and answers so for each; then the origin removes its rows and goes
/// on to the sealed notification. The content of the call, above all its text, is skipped unread.
package struct LegacyNotifyRequest: Sendable {
    /// JSON arrays of the tokens, each as it came.
    package let android: Secret
    package let apple: Secret
    /// How many there are in both.
    package let count: Int

    /// Members that are not known are ignored, and of doubles the last counts, as deployed. A list that is
    /// missing is empty.
    ///
    /// - Throws: `.malformedJSON`, `.invalidRequest`, `.tooManyRequests`, `.bodyTooLarge`.
    package init(parsing body: UnsafeRawBufferPointer) throws(ZulipError) {
        guard body.count <= ZulipLimits.notifyBodyBytes else { throw ZulipError(.bodyTooLarge) }
        var reader = JSONReader(body, depthLimit: ZulipLimits.jsonDepth)
        do {
            self = try Self.read(&reader)
        } catch let error as ZulipError {
            throw error
        } catch let error as FormatError {
            throw ZulipError(error.code == .wrongType ? .invalidRequest : .malformedJSON)
        } catch {
            throw ZulipError(.malformedJSON)
        }
    }

    private init(android: List, apple: List) {
        self.android = android.json
        self.apple = apple.json
        count = android.count + apple.count
    }

    private struct List {
        var json = Secret("[]".utf8)
        var count = 0
    }

    private static func read(_ reader: inout JSONReader) throws -> LegacyNotifyRequest {
        var (android, apple) = (List(), List())
        try reader.beginObject()
        while let name = try reader.nextMember() {
            if name.equals("android_devices") {
                android = try readTokens(&reader)
            } else if name.equals("apple_devices") {
                apple = try readTokens(&reader)
            } else {
                try reader.skipValue()
            }
        }
        try reader.end()
        return LegacyNotifyRequest(android: android, apple: apple)
    }

    private static func readTokens(_ reader: inout JSONReader) throws -> List {
        var list = List()
        var writer = JSONWriter()
        writer.beginArray()
        try reader.beginArray()
        while try reader.nextElement() {
            let token = try reader.readString()
            guard list.count < ZulipLimits.legacyTokens else { throw ZulipError(.tooManyRequests) }
            // What was written with escapes takes up to six characters for one.
            guard token.raw.count <= 6 * ZulipLimits.tokenCharacters else {
                throw ZulipError(.invalidRequest)
            }
            // As written: the reader has checked it, and the same text reads as the same token.
            writer.string(escaped: token.raw)
            list.count += 1
        }
        writer.endArray()
        list.json = writer.takeSecret()
        return list
    }
}
