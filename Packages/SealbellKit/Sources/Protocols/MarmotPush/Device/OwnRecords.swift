import PushModel
import Secp256k1Keys

/// This leaf's own records of `push-v1`, and their stamps.
///
/// Others take a record whose stamp is greater than the one they have, and at most an hour ahead of their
/// clocks. So where the last record is further ahead than that, one of two clocks was wrong: that of then,
/// and nobody has taken it, or nobody takes a greater one; or that of now is behind, and others take nothing
/// less. The leaf cannot tell which, so it says both.
extension MarmotLeaf {
    /// Signs a record later than any that stands under its key, whatever the clock says.
    ///
    /// - Returns: that record last; before it one of now, where others may not take that.
    func sign(
        _ key: PushRecord.Key, _ fingerprint: [UInt8], _ token: GossipToken?, in view: some GroupView,
        now: Moment, using generator: inout some RandomNumberGenerator
    ) -> [PushRecord] {
        let last = tokens.leaves[key.leaf]?.records.first { $0.key == key }?.ownerTimestamp ?? 0
        let next = max(now.wall.milliseconds, last &+ 1)
        var signed: [PushRecord] = []
        for stamp in Self.isAhead(next, of: now.wall) ? [now.wall.milliseconds, next] : [next] {
            signed.append(
                OwnerProof.sign(
                    key, fingerprint: fingerprint, token: token, ownerTimestamp: stamp, group: view.groupID,
                    by: identity, auxiliary: generator.bytes(32)))
        }
        return signed
    }

    /// Notes what was signed, and tells it.
    ///
    /// - Parameter signed: of each key what ``sign(_:_:_:in:now:using:)`` has returned, one at least.
    /// - Parameter event: makes an event of records, one of each key.
    mutating func tell(
        signed: [[PushRecord]], in view: some GroupView, _ event: ([PushRecord]) -> NostrEvent
    ) -> [NostrEvent] {
        let last = signed.compactMap(\.last)
        for record in last { _ = tokens.apply(record, group: view.groupID) }
        let ofNow = signed.filter { $0.count > 1 }.compactMap(\.first)
        return (ofNow.isEmpty ? [] : [event(ofNow)]) + [event(last)]
    }

    /// Whether others refuse a stamp for being of the future.
    static func isAhead(_ stamp: Int64, of now: UnixTime) -> Bool {
        stamp > (now + MarmotLimits.ownerClockAhead).milliseconds
    }

    /// When others take this leaf's records for the standing tokens, if it is not now.
    ///
    /// - Parameter platform: of the tokens.
    func aheadUntil(_ platform: DeviceTarget.Platform, _ leaf: UInt32, _ now: UnixTime) -> UnixTime? {
        guard settings.format == .pushV1, let own = tokens.leaves[leaf], own.member == author else {
            return nil
        }
        let servers = settings.servers.map(\.key)
        let stamps = own.records
            .filter { $0.token != nil && $0.key.platform == platform && servers.contains($0.key.server) }
            .map(\.ownerTimestamp)
        guard let latest = stamps.max(), Self.isAhead(latest, of: now) else { return nil }
        // A second later the next stamp is not ahead any more.
        return UnixTime(milliseconds: latest) - MarmotLimits.ownerClockAhead + .seconds(1)
    }
}
