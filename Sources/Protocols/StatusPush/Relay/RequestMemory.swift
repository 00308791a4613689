package import PushModel

/// What the relay remembers of a request, so that the same bytes are taken once (decision 0070).
///
/// Where a report says that something failed, the same bytes are taken again for as long as the store knows
/// again what was sent of them: such a repeat sends what failed, and nothing else. What a Waku node's store
/// hands out is no repeat of the sender's but may be the very message that was reported as failed, so it is
/// taken only where nothing is remembered.
package struct RequestMemory: Sendable {
    private let key: RecordKey
    private let now: UnixTime
    /// Until when the same bytes may come again if something of them fails.
    private let until: UnixTime
    private let condition: Condition

    /// `nil` for a request that was taken already.
    ///
    /// - Parameters:
    ///   - known: what is remembered under that name.
    ///   - isStored: the request comes from a node's store (``StatusInbound/isStored``).
    package init?(of key: RecordKey, _ known: Record?, isStored: Bool, now: UnixTime) {
        (self.key, self.now) = (key, now)
        guard let known else {
            (until, condition) = (now + StatusLimits.failedMemory, .absent)
            return
        }
        // Counted from when it first came, however often it comes.
        guard !isStored, let until = Self.until(known), now < until else { return nil }
        (self.until, condition) = (until, .revision(known.revision))
    }

    /// The request is taken, and its like are met with silence.
    package var taken: Change { .put(record(until: nil), if: condition) }
    /// It is taken, and something of it has failed already.
    package var failed: Change { .put(record(until: until), if: condition) }
    /// Something of it failed after it was taken.
    package var reopened: Change { .put(record(until: until), if: .any) }

    private func record(until: UnixTime?) -> Record {
        let body = until.map { time in
            withUnsafeBytes(of: time.milliseconds.bigEndian) { Secret(copying: $0) }
        }
        return Record(
            key: key, touchedAt: now, expiresAt: now + StatusLimits.requestMemory, body: body ?? .none)
    }

    /// `nil` when it was taken.
    private static func until(_ record: Record) -> UnixTime? {
        guard record.state == .live, record.body.count == MemoryLayout<Int64>.size else { return nil }
        return record.body.reveal {
            UnixTime(milliseconds: Int64(bigEndian: $0.loadUnaligned(as: Int64.self)))
        }
    }
}
