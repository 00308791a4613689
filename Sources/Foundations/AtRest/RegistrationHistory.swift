package import PushModel

/// What became of the pushes of one registration: counts by hour for a day, by day for a week (decision
/// 0144). A value; it holds no name, address or content.
package struct RegistrationHistory: Sendable, Hashable {
    /// So many pushes of one kind within one span.
    package struct Cell: Sendable, Hashable {
        /// Hours since 1970-01-01T00:00:00Z.
        package var start: Int64
        /// 1, or 24 for a whole day.
        package var hours: UInt8
        package var event: RegistrationEvent
        /// The push service's literal word; empty for ``RegistrationEvent/delivered``.
        package var reason: String
        package var count: UInt32
        package var last: UnixTime

        package var begins: UnixTime { UnixTime(seconds: start * 3_600) }
        package var ends: UnixTime { UnixTime(seconds: (start + Int64(hours)) * 3_600) }
    }

    /// What is older is not shown, and not written again.
    static let hoursKept: Int64 = 7 * 24
    private static let hoursOfDay: Int64 = 24
    /// How far the clocks of relays on one store may differ.
    private static let hoursAhead: Int64 = 1
    /// A day by the hour and six days, of one kind; and as many again of others. 4 KiB at most.
    static let mostCells = 64
    /// Words of push services are shorter.
    static let reasonBytes = 40

    /// By time, the oldest first.
    package private(set) var cells: [Cell] = []

    package init() {}

    /// Counts pushes in; `last` says in which hour.
    mutating func add(_ event: RegistrationEvent, _ reason: String, _ count: UInt32, last: UnixTime) {
        merge(
            Cell(
                start: Self.hour(of: last), hours: 1, event: event,
                reason: String(decoding: reason.utf8.prefix(Self.reasonBytes), as: UTF8.self), count: count,
                last: last))
    }

    private mutating func merge(_ cell: Cell) {
        let same = cells.firstIndex {
            $0.start == cell.start && $0.hours == cell.hours && $0.event == cell.event
                && $0.reason == cell.reason
        }
        guard let same else { return cells.append(cell) }
        let (sum, overflow) = cells[same].count.addingReportingOverflow(cell.count)
        cells[same].count = overflow ? .max : sum
        cells[same].last = max(cells[same].last, cell.last)
    }

    /// Drops what is older than a week or of a time to come, joins the hours of days that are over, and keeps
    /// within the bound: the oldest cells go.
    ///
    /// - Parameter latest: the latest time that is believed; `nil`: no later than `now`. It is later where a
    ///   relay's own clock is behind the others', whose counts must not go for that.
    mutating func trim(at now: UnixTime, latest: UnixTime? = nil) {
        let hour = Self.hour(of: now)
        let old = cells
        // A clock that was ahead has left counts of days to come, which would stay and push out the others'.
        let kept = hour - Self.hoursKept + 1...max(hour, latest.map(Self.hour) ?? hour) + Self.hoursAhead
        cells = []
        for var cell in old where kept.contains(cell.start) {
            if cell.hours == 1, cell.start < hour - Self.hoursOfDay {
                cell.start -= cell.start % Self.hoursOfDay
                cell.hours = 24
            }
            merge(cell)
        }
        cells.sort { ($0.start, $0.last, $0.event.rawValue) < ($1.start, $1.last, $1.event.rawValue) }
        if cells.count > Self.mostCells { cells.removeFirst(cells.count - Self.mostCells) }
    }

    /// The same without what is older than a week by then.
    package func trimmed(at now: UnixTime, latest: UnixTime? = nil) -> RegistrationHistory {
        var history = self
        history.trim(at: now, latest: latest)
        return history
    }

    static func hour(of time: UnixTime) -> Int64 { max(0, time.seconds) / 3_600 }
}

// MARK: its bytes

extension RegistrationHistory {
    private static let version: UInt8 = 1
    /// So that a row's size says little of how much a phone is used.
    private static let sizeStep = 512

    /// Version ‖ number of cells ‖ of each: start (4), hours (1), event (1), count (4), last (8), length of
    /// the reason (1), reason ‖ zeros up to a multiple of 512 bytes; numbers big-endian.
    var bytes: [UInt8] {
        var bytes: [UInt8] = [Self.version, UInt8(clamping: cells.count)]
        func put<Number: FixedWidthInteger>(_ number: Number) {
            withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
        }
        for cell in cells.prefix(Int(UInt8.max)) {
            put(UInt32(clamping: cell.start))
            put(cell.hours)
            put(cell.event.rawValue)
            put(cell.count)
            put(cell.last.milliseconds)
            put(UInt8(clamping: cell.reason.utf8.count))
            bytes.append(contentsOf: cell.reason.utf8.prefix(Int(UInt8.max)))
        }
        let over = bytes.count % Self.sizeStep
        if over > 0 { bytes.append(contentsOf: repeatElement(0, count: Self.sizeStep - over)) }
        return bytes
    }

    /// `nil` for what ``bytes`` does not write. A kind of a later version is left out.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= 2, bytes[0] == Self.version else { return nil }
        var at = 2
        func number<Number: FixedWidthInteger>(_: Number.Type) -> Number? {
            let size = MemoryLayout<Number>.size
            guard bytes.count - at >= size else { return nil }
            defer { at += size }
            return Number(bigEndian: bytes.loadUnaligned(fromByteOffset: at, as: Number.self))
        }
        for _ in 0..<bytes[1] {
            guard let start = number(UInt32.self), let hours = number(UInt8.self),
                let event = number(UInt8.self), let count = number(UInt32.self),
                let last = number(Int64.self), let length = number(UInt8.self),
                bytes.count - at >= Int(length)
            else { return nil }
            let reason = String(decoding: bytes[at..<at + Int(length)], as: UTF8.self)
            at += Int(length)
            guard let event = RegistrationEvent(rawValue: event) else { continue }
            cells.append(
                Cell(
                    start: Int64(start), hours: hours, event: event, reason: reason, count: count,
                    last: UnixTime(milliseconds: last)))
        }
    }
}
