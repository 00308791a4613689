import PushModel
import WireFormats

/// What an origin reads in a proxy's answer (§4.7).
public struct ProxyVerdict: Sendable, Hashable {
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

    public let outcome: Outcome
    /// App passwords whose rows are to be deleted: the proxy does not know their devices.
    public let deletes: [Int64]
    /// The proxy limits this server: to be shown to the admin for a week.
    public let isRateLimited: Bool

    /// Reads an answer.
    ///
    /// A 2xx or 4xx counts as an answer about entries if it has both members; the body of a 5xx is not
    /// looked at.
    ///
    /// - Parameter entries: what was sent, all to the proxy that answers.
    /// - Parameter rows: registrations that an id of `unknown` may delete. Those of other proxies are safe
    ///   from this one; so is a row that has another token hash than was sent, because its device has
    ///   registered anew meanwhile.
    public init(
        _ answer: NextcloudAnswer, to entries: some Collection<SealedEntry>, rows: [RegisteredDevice]
    ) {
        let proxy = entries.first?.proxy
        guard let status = answer.status else {
            self.init(.unreachable)
            return
        }
        let mayHaveLists = (200..<300).contains(status) || (400..<500).contains(status)
        guard mayHaveLists, let lists = Lists(answer.body) else {
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

    private init(_ outcome: Outcome, deletes: [Int64] = [], isRateLimited: Bool = false) {
        self.outcome = outcome
        self.deletes = deletes
        self.isRateLimited = isRateLimited
    }

    /// `{"unknown": […] or null, "failed": n}`; other members are passed over.
    private struct Lists {
        var unknown: Set<String>
        var hasFailed: Bool

        init?(_ body: Secret) {
            let json = body.reveal { bytes in
                // Whatever cannot be read is the same to the caller: no answer about entries.
                try? JSONValue.parse(bytes, limitBytes: NextcloudLimits.answerBytes)
            }
            guard let members = json?.object, let unknown = members["unknown"],
                let failed = members["failed"]
            else { return nil }
            self.unknown = Set((unknown.array ?? []).compactMap(\.string))
            hasFailed = failed.int64 != 0
        }
    }
}
