package import PushModel

/// What the relay remembers about a request, so that the same bytes are taken only once (decision 0070).
///
/// If a report says that something failed, the same bytes are taken again for as long as the store recognises
/// what was sent of them: such a repeat sends what failed, and nothing else. A message from a Waku node's
/// store is not a repeat by the sender, but may be the very message that was reported as failed, so it is
/// taken only if nothing is remembered.
package struct RequestMemory: Sendable {
    private let key: RecordKey
    private let now: UnixTime
    /// Until when the same bytes may come again if something in them fails.
    private let until: UnixTime
    private let condition: Condition

    /// `nil` for a request that was already taken.
    ///
    /// - Parameters:
    ///   - known: what is stored under that name.
    ///   - isStored: the request comes from a node's store (``StatusInbound/isStored``).
    package init?(of key: RecordKey, _ known: Record?, isStored: Bool, now: UnixTime) {
        (self.key, self.now) = (key, now)
        guard let known else {
            (until, condition) = (now + StatusLimits.failedMemory, .absent)
            return
        }
        // Counted from its first arrival, however often it comes.
        guard !isStored, let until = Self.until(known), now < until else { return nil }
        (self.until, condition) = (until, .revision(known.revision))
    }

    /// The request is taken; repeats are not answered.
    package var taken: Change { .put(record(until: nil), if: condition) }
    /// It is taken, and something in it has already failed.
    package var failed: Change { .put(record(until: until), if: condition) }
    /// Something in it failed after it was taken.
    package var reopened: Change { .put(record(until: until), if: .any) }

    private func record(until: UnixTime?) -> Record {
        let body = until.map { time in
            withUnsafeBytes(of: time.milliseconds.bigEndian) { Secret(copying: $0) }
        }
        return Record(
            key: key, touchedAt: now, expiresAt: now + StatusLimits.requestMemory, body: body ?? .none)
    }

    /// `nil` if it was taken.
    private static func until(_ record: Record) -> UnixTime? {
        guard record.state == .live, record.body.count == MemoryLayout<Int64>.size else { return nil }
        return record.body.reveal {
            UnixTime(milliseconds: Int64(bigEndian: $0.loadUnaligned(as: Int64.self)))
        }
    }
}
