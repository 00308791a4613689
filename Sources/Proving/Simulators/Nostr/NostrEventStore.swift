import MarmotPush
import NIOCore
import PushModel
import Secp256k1Keys

/// The events of a simulated relay, within bounds, with NIP-01's rules of replacement.
struct NostrEventStore {
    enum Answer: Equatable { case stored, passing, duplicate, older }

    struct Stored: Sendable {
        let number: Int
        let event: NostrEvent
        /// The event's JSON.
        let text: ByteBuffer
    }

    private let limitEvents: Int
    private let limitBytes: Int
    private var byNumber: [Int: Stored] = [:]
    private var numberByID: [[UInt8]: Int] = [:]
    private var numberBySlot: [Slot: Int] = [:]
    /// The oldest number that may still be kept, and the next one.
    private var oldest = 0
    private var next = 0
    private var bytes = 0

    /// The key under which only one event is kept (NIP-01: replaceable and addressable kinds).
    private struct Slot: Hashable {
        let author: [UInt8]
        let kind: Int
        let name: String

        init?(_ event: NostrEvent) {
            switch event.kind {
            case 0, 3, 10_000..<20_000: name = ""
            case 30_000..<40_000: name = event.tag("d") ?? ""
            default: return nil
            }
            author = event.pubkey.bytes
            kind = event.kind
        }
    }

    init(events: Int, bytes: Int) {
        limitEvents = max(1, events)
        limitBytes = bytes
    }

    var all: [NostrEvent] { sorted(byNumber.values).map(\.event) }

    /// Whether the event is passed on but never kept.
    static func isEphemeral(_ event: NostrEvent) -> Bool { (20_000..<30_000).contains(event.kind) }

    mutating func take(_ event: NostrEvent, text: ByteBuffer) -> Answer {
        if numberByID[event.id] != nil { return .duplicate }
        if Self.isEphemeral(event) { return .passing }
        if let slot = Slot(event) {
            if let number = numberBySlot[slot], let held = byNumber[number]?.event {
                guard Self.isNewer(event, held) else { return .older }
                remove(number)
            }
            numberBySlot[slot] = next
        }
        byNumber[next] = Stored(number: next, event: event, text: text)
        numberByID[event.id] = next
        next += 1
        bytes += text.readableBytes
        while byNumber.count > limitEvents || bytes > limitBytes && byNumber.count > 1 {
            remove(oldest)
            oldest += 1
        }
        return .stored
    }

    /// The newest events that match a filter, up to each filter's own limit, newest first; within one second
    /// the lower id first (NIP-01).
    func matching(_ filters: [NostrFilter], limit: Int, whateverFilter: Bool) -> [Stored] {
        var found: [Int: Stored] = [:]
        for filter in filters {
            let fitting = byNumber.values.filter { whateverFilter || filter.matches($0.event) }
            for stored in sorted(fitting).prefix(max(0, min(filter.limit ?? limit, limit))) {
                found[stored.number] = stored
            }
        }
        return sorted(found.values)
    }

    mutating func removeAll() {
        self = NostrEventStore(events: limitEvents, bytes: limitBytes)
    }

    private mutating func remove(_ number: Int) {
        guard let stored = byNumber.removeValue(forKey: number) else { return }
        numberByID[stored.event.id] = nil
        bytes -= stored.text.readableBytes
        if let slot = Slot(stored.event), numberBySlot[slot] == number { numberBySlot[slot] = nil }
    }

    private func sorted(_ events: some Sequence<Stored>) -> [Stored] {
        events.sorted { Self.isNewer($0.event, $1.event) }
    }

    private static func isNewer(_ event: NostrEvent, _ other: NostrEvent) -> Bool {
        if event.createdAt != other.createdAt { return event.createdAt > other.createdAt }
        return event.id.lexicographicallyPrecedes(other.id)
    }
}
