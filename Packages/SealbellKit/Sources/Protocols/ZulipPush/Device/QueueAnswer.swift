import PushModel
import WireFormats

/// The members of an answer to `POST register` and `GET events` that an event queue needs. What the events
/// say of this phone ``ZulipServerView`` reads.
struct QueueAnswer: Sendable {
    private(set) var isSuccess = false
    private(set) var queueID: String?
    /// `last_event_id`, or the highest id of `events`.
    private(set) var last: Int64?
    private(set) var code: String?

    /// Of another form than the protocol's, none of them is there.
    init(_ body: Secret) {
        guard body.count <= ZulipLimits.queueAnswerBytes else { return }
        body.reveal { bytes in
            do { self = try QueueAnswer(reading: bytes) } catch { self = QueueAnswer() }
        }
    }

    private init() {}

    private init(reading bytes: UnsafeRawBufferPointer) throws(FormatError) {
        var reader = JSONReader(bytes, depthLimit: ZulipLimits.jsonDepth)
        try reader.beginObject()
        while let name = try reader.nextMember() {
            let kind = try reader.peek()
            if kind == .string, name.equals("result") {
                isSuccess = try reader.readString().equals("success")
            } else if kind == .string, name.equals("code") {
                code = ErrorCodeText.read(try reader.readString())
            } else if kind == .string, name.equals("queue_id") {
                let text = try reader.readString()
                queueID = (1...ZulipLimits.queueIDBytes).contains(text.raw.count) ? text.string() : nil
            } else if kind == .number, name.equals("last_event_id") {
                last = max(last ?? .min, try reader.readNumber().int64 ?? .min)
            } else if kind == .array, name.equals("events") {
                try readEvents(&reader)
            } else {
                try reader.skipValue()
            }
        }
        try reader.end()
    }

    private mutating func readEvents(_ reader: inout JSONReader) throws(FormatError) {
        try reader.beginArray()
        while try reader.nextElement() {
            guard try reader.peek() == .object else {
                try reader.skipValue()
                continue
            }
            try reader.beginObject()
            while let name = try reader.nextMember() {
                if name.equals("id"), try reader.peek() == .number {
                    last = max(last ?? .min, try reader.readNumber().int64 ?? .min)
                } else {
                    try reader.skipValue()
                }
            }
        }
    }
}
