import PushModel
import WireFormats

/// The members of an answer of the account's server that a device needs. What a state and events say of this
/// phone ``ZulipServerView`` reads.
struct AnswerMembers: Sendable {
    private(set) var isSuccess = false
    private(set) var code: String?
    /// Of `register_client_device`.
    private(set) var deviceID: Int64?
    /// Deployed servers say it in the body, too, in seconds with a fraction.
    private(set) var retryAfter: Duration?
    /// Of `POST register`.
    private(set) var queueID: String?
    /// `last_event_id`, or the highest id of `events`.
    private(set) var last: Int64?

    /// Of another form than the protocol's, and of more bytes than allowed, none of them is there.
    ///
    /// - Parameter limit: in bytes: ``ZulipLimits/callAnswerBytes``, of a state and of events
    ///   ``ZulipLimits/queueAnswerBytes``.
    init(_ body: Secret, atMost limit: Int) {
        guard body.count <= limit else { return }
        body.reveal { bytes in
            do { self = try AnswerMembers(reading: bytes) } catch { self = AnswerMembers() }
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
            } else if kind == .number, name.equals("device_id") {
                deviceID = try reader.readNumber().int64.flatMap { $0 > 0 ? $0 : nil }
            } else if kind == .number, name.equals("retry-after") {
                let text = String(decoding: try reader.readNumber().raw.prefix(16), as: UTF8.self)
                let seconds = min(max(Double(text) ?? 0, 0), 86_400)
                retryAfter = .milliseconds(Int64(seconds * 1_000))
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
