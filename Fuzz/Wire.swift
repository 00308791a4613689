import PushModel
import WireFormats

/// The readers that all protocols share.
let wireTargets: [String: Body] = [
    "json-reader": { bytes in
        var reader = JSONReader(bytes)
        // What is refused is no find; what is taken is one value and nothing behind it.
        guard let value = try? reader.skipValue(), (try? reader.end()) != nil else { return }
        precondition(value.count <= bytes.count)
    },
    "json-value": { bytes in
        guard let value = try? JSONValue.parse(bytes) else { return }
        let text = value.serialized()
        guard let again = try? JSONValue.parse(text, limitBytes: .max) else {
            preconditionFailure("what we write we can read")
        }
        precondition(again == value && again.serialized() == text)
    },
    "base64": { bytes in
        for alphabet in [Base64.Alphabet.standard, .url] {
            guard let decoded = try? Base64.decode(bytes, alphabet) else { continue }
            precondition(Base64.encode(decoded, alphabet).elementsEqual(bytes), "one spelling for one value")
        }
    },
    "hex": { bytes in
        guard let decoded = try? Hex.decode(bytes) else { return }
        precondition(decoded.count * 2 == bytes.count)
    },
    "form": { bytes in
        guard let form = try? Form.parse(bytes) else { return }
        precondition(form.fields.count <= 64)
    },
    "retry-after": { bytes in
        let text = String(decoding: bytes, as: UTF8.self)
        _ = RetryAfter.parse(text, now: UnixTime(seconds: 1_767_225_600))
    },
    "uuid": { bytes in _ = UUIDText(bytes) }
]
