public import PushModel
import WireFormats

/// The event queues of one user's clients (§3.5, §14.10): `POST /api/v1/register` opens one, and GET and
/// DELETE of `/api/v1/events` read and close it.
///
/// A value without clock and randomness of its own, in memory alone: after a restart every client is told
/// that its queue is not known, and opens another with a new state. So does one whose queue was closed
/// because there were too many, or because nobody read it: an event that was left out would make its state
/// another than the server's.
public struct OriginQueues: Sendable {
    /// A queue's name: 32 hex digits from 128 random bits.
    public typealias ID = String

    private struct Queue: Sendable {
        /// `nil`: all.
        let types: Set<String>?
        var events: [(id: Int64, json: [UInt8])] = []
        var lastID: Int64 = -1
        var polledAt: UnixTime
    }

    /// What a poll finds.
    public enum Poll: Sendable, Hashable {
        /// The body of the answer, JSON.
        case answer([UInt8])
        /// Nothing yet. To be asked again when an event comes, and at this moment at the latest, with
        /// ``OriginQueues/heartbeat(_:now:)``.
        case wait(until: UnixTime)
    }

    private var queues: [ID: Queue] = [:]
    private let limit: Int
    private let eventLimit: Int

    /// None is open yet.
    ///
    /// - Parameter limit: queues of the user, at least 1.
    /// - Parameter eventLimit: events that nobody has read, for each queue, at least 1.
    public init(
        limit: Int = ZulipOriginLimits.queuesPerUser, eventLimit: Int = ZulipOriginLimits.eventsPerQueue
    ) {
        self.limit = max(limit, 1)
        self.eventLimit = max(eventLimit, 1)
    }

    /// Number of open queues.
    public var count: Int { queues.count }

    /// Whether that queue is open.
    public func has(_ id: ID) -> Bool { queues[id] != nil }

    /// Opens a queue. Where the user has too many, the one goes that was not polled for the longest time.
    ///
    /// - Parameter types: of events; `nil`: all.
    public mutating func open(
        types: Set<String>?, now: UnixTime, using generator: inout some RandomNumberGenerator
    ) -> ID {
        close(before: now)
        if queues.count >= limit,
            let oldest = queues.min(by: { ($0.value.polledAt, $0.key) < ($1.value.polledAt, $1.key) })
        {
            queues[oldest.key] = nil
        }
        let id = Hex.encode(randomSecret(16, &generator).reveal { Array($0) })
        queues[id] = Queue(types: types, polledAt: now)
        return id
    }

    /// Adds events to every queue that wants them. A queue that nobody has read for so long that it is full
    /// is closed.
    ///
    /// - Returns: the queues that have something new: polls that wait for them are to be asked again. Of a
    ///   queue that was closed, too.
    public mutating func add(_ events: [ZulipEvent]) -> [ID] {
        var touched: [ID] = []
        for (id, var queue) in queues {
            let wanted = events.filter { queue.types?.contains($0.type) ?? true }
            guard !wanted.isEmpty else { continue }
            touched.append(id)
            guard queue.events.count + wanted.count <= eventLimit else {
                queues[id] = nil
                continue
            }
            for event in wanted {
                queue.lastID += 1
                queue.events.append((queue.lastID, event.json(id: queue.lastID)))
            }
            queues[id] = queue
        }
        return touched.sorted()
    }

    /// Reads a queue, behind an event that the client has seen. What it has seen is kept no longer.
    ///
    /// - Throws: `.unknownQueue`.
    public mutating func poll(
        _ id: ID, after last: Int64, now: UnixTime
    ) throws(OriginRefusal) -> Poll {
        close(before: now)
        guard var queue = queues[id] else { throw OriginRefusal(.unknownQueue) }
        queue.polledAt = now
        queue.events.removeAll { $0.id <= last }
        queues[id] = queue
        guard queue.events.isEmpty else { return .answer(Self.body(id, queue.events.map(\.json))) }
        return .wait(until: now + ZulipOriginLimits.heartbeat)
    }

    /// The answer to a poll that has waited long enough: an event that says nothing, so that connections on
    /// the way stay open.
    ///
    /// - Returns: the body of the answer, JSON.
    /// - Throws: `.unknownQueue`.
    public mutating func heartbeat(_ id: ID, now: UnixTime) throws(OriginRefusal) -> [UInt8] {
        guard var queue = queues[id] else { throw OriginRefusal(.unknownQueue) }
        queue.polledAt = now
        queue.lastID += 1
        queues[id] = queue
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("type", "heartbeat")
        writer.member("id", queue.lastID)
        writer.endObject()
        return Self.body(id, [writer.bytes])
    }

    /// - Throws: `.unknownQueue`.
    public mutating func close(_ id: ID) throws(OriginRefusal) {
        guard queues.removeValue(forKey: id) != nil else { throw OriginRefusal(.unknownQueue) }
    }

    /// Closes what was not polled for ten minutes.
    public mutating func close(before now: UnixTime) {
        queues = queues.filter { now.since($0.value.polledAt) <= ZulipOriginLimits.queueLife }
    }

    private static func body(_ id: ID, _ events: [[UInt8]]) -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("result", "success")
        writer.member("msg", "")
        writer.beginArray("events")
        for event in events { writer.raw(event) }
        writer.endArray()
        writer.member("queue_id", id)
        writer.endObject()
        return writer.bytes
    }
}
