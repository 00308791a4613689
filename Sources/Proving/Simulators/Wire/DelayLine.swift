import NIOCore

/// Bytes on their way: each lot leaves when its time has come, never before an earlier lot.
struct DelayLine {
    /// More bytes than this on their way end the connection: at Apple's settings a thousand answers of 100
    /// bytes are the most that a peer can have due, and FCM's are not much larger.
    static let limitBytes = 32 * 1024 * 1024

    private var lots = CircularBuffer<(due: NIODeadline, bytes: ByteBuffer)>()
    private(set) var bytes = 0
    private var last = NIODeadline.now()

    init() {}

    var isEmpty: Bool { lots.isEmpty }
    var nextDue: NIODeadline? { lots.first?.due }

    /// False when the line is full.
    mutating func append(_ lot: ByteBuffer, due: NIODeadline) -> Bool {
        guard bytes + lot.readableBytes <= Self.limitBytes else { return false }
        last = max(last, due)
        bytes += lot.readableBytes
        lots.append((last, lot))
        return true
    }

    /// The next lot whose time has come.
    mutating func next(at now: NIODeadline) -> ByteBuffer? {
        guard let first = lots.first, first.due <= now else { return nil }
        lots.removeFirst()
        bytes -= first.bytes.readableBytes
        return first.bytes
    }
}
