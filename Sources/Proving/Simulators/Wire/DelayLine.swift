import NIOCore

/// Delayed bytes: each batch leaves when its time has come, and never before an earlier batch.
struct DelayLine {
    /// The most delayed bytes; more end the connection. At Apple's settings a peer can wait for at most a
    /// thousand answers of 100 bytes, and FCM's are not much larger.
    static let limitBytes = 32 * 1024 * 1024

    private var lots = CircularBuffer<(due: NIODeadline, bytes: ByteBuffer)>()
    private(set) var bytes = 0
    private var last = NIODeadline.now()

    init() {}

    var isEmpty: Bool { lots.isEmpty }
    var nextDue: NIODeadline? { lots.first?.due }

    /// False if the line is full.
    mutating func append(_ lot: ByteBuffer, due: NIODeadline) -> Bool {
        guard bytes + lot.readableBytes <= Self.limitBytes else { return false }
        last = max(last, due)
        bytes += lot.readableBytes
        lots.append((last, lot))
        return true
    }

    /// The next batch whose time has come.
    mutating func next(at now: NIODeadline) -> ByteBuffer? {
        guard let first = lots.first, first.due <= now else { return nil }
        lots.removeFirst()
        bytes -= first.bytes.readableBytes
        return first.bytes
    }
}
