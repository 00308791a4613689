import PushModel
public import SealbellKit
import WireFormats

/// What an origin reads in a proxy's answer (§4.7).
public struct ProxyVerdict: Sendable, Hashable {
    /// What an answer says of a call as a whole.
    public enum Outcome: Sendable, Hashable, CaseIterable {
        /// The proxy took every entry.
        case sent
        /// It did not take some of them, and does not say which.
        case partlyFailed
        /// A success without the two members: a proxy too old to judge entries.
        case outdatedProxy
        /// None was taken.
        case refused
        /// Nothing came back. Whether the entries were taken is not known.
        case unreachable
    }

    /// What the answer says of the whole call.
    public let outcome: Outcome
    /// App passwords whose rows are to be deleted: the proxy does not know their devices.
    public let deletes: [Int64]
    /// The proxy limits this server: to be shown to the admin for a week.
    public let isRateLimited: Bool

    /// Judges an answer.
    ///
    /// - Parameter entries: what was sent, all to the proxy that answers.
    /// - Parameter rows: registrations that an id of `unknown` may delete. Those of other proxies are safe
    ///   from this one; so is a row that has another token hash than was sent, because its device has
    ///   registered anew meanwhile.
    public init(
        _ reading: ProxyReading, to entries: some Collection<SealedEntry>, rows: [RegisteredDevice]
    ) {
        let proxy = entries.first?.proxy
        guard let status = reading.answer.status else {
            self.init(.unreachable)
            return
        }
        guard let lists = reading.lists else {
            self.init(
                (200..<300).contains(status) ? .outdatedProxy : .refused, isRateLimited: status == 429)
            return
        }
        let sent = Dictionary(
            entries.map { ($0.deviceIdentifier, $0.pushTokenHash) }, uniquingKeysWith: { $1 })
        let dead = rows.filter { row in
            row.proxy == proxy && lists.unknown.contains(row.deviceIdentifier)
                && sent[row.deviceIdentifier].map { $0 == row.pushTokenHash } ?? true
        }
        self.init(lists.hasFailed ? .partlyFailed : .sent, deletes: dead.map(\.tokenID))
    }

    /// Reads an answer and judges it.
    public init(
        _ answer: CallAnswer, to entries: some Collection<SealedEntry>, rows: [RegisteredDevice]
    ) {
        self.init(ProxyReading(answer), to: entries, rows: rows)
    }

    private init(_ outcome: Outcome, deletes: [Int64] = [], isRateLimited: Bool = false) {
        self.outcome = outcome
        self.deletes = deletes
        self.isRateLimited = isRateLimited
    }

}

/// A proxy's answer, read once, however many users' devices it is about.
public struct ProxyReading: Sendable {
    /// As it came.
    public let answer: CallAnswer
    /// `nil`: it says nothing of entries.
    fileprivate let lists: Lists?

    /// A 2xx or 4xx counts as an answer about entries if it has both members; the body of a 5xx is not
    /// looked at.
    public init(_ answer: CallAnswer) {
        self.answer = answer
        let mayHaveLists = answer.status.map { (200..<300).contains($0) || (400..<500).contains($0) }
        lists = mayHaveLists == true ? answer.body.reveal { Lists(reading: $0) } : nil
    }

    /// `{"unknown": […] or null, "failed": n}`; other members are passed over.
    ///
    /// Any user may name a proxy, so of its answer nothing is kept but texts that are as long as identifiers:
    /// a tree of all values would take twenty times the room of the body.
    fileprivate struct Lists {
        var unknown: Set<String> = []
        var hasFailed = false

        /// `nil` for whatever cannot be read: that is no answer about entries.
        init?(reading body: UnsafeRawBufferPointer) {
            guard body.count <= NextcloudLimits.answerBytes else { return nil }
            var reader = JSONReader(body, depthLimit: NextcloudLimits.jsonDepth)
            do throws(FormatError) {
                guard try read(&reader) else { return nil }
            } catch { return nil }
        }

        /// - Returns: whether it has both members. Of doubles the last counts.
        private mutating func read(_ reader: inout JSONReader) throws(FormatError) -> Bool {
            var (hasUnknown, saysFailed) = (false, false)
            try reader.beginObject()
            while let name = try reader.nextMember() {
                if name.equals("unknown") {
                    hasUnknown = true
                    unknown = try Self.identifiers(&reader)
                } else if name.equals("failed") {
                    saysFailed = true
                    let isNumber = try reader.peek() == .number
                    hasFailed = isNumber ? try reader.readNumber().int64 != 0 : true
                    if !isNumber { try reader.skipValue() }
                } else {
                    try reader.skipValue()
                }
            }
            try reader.end()
            return hasUnknown && saysFailed
        }

        private static func identifiers(_ reader: inout JSONReader) throws(FormatError) -> Set<String> {
            guard try reader.peek() == .array else {
                try reader.skipValue()
                return []
            }
            var found: Set<String> = []
            try reader.beginArray()
            while try reader.nextElement() {
                guard try reader.peek() == .string else {
                    try reader.skipValue()
                    continue
                }
                let text = try reader.readString()
                // Escapes make it longer.
                guard (identifierCharacters...6 * identifierCharacters).contains(text.raw.count) else {
                    continue
                }
                found.insert(text.string())
            }
            return found
        }

        private static let identifierCharacters = 88
    }
}
