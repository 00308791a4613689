import Delivery
import PushModel

extension LaneQueue {
    /// Takes a push in as one that comes for the first time.
    @discardableResult
    mutating func admit(_ push: OwedPush, now: UnixTime) -> Admission { admit(entry(push), now: now) }

    /// Takes a push in; the row of the one that made room for it.
    mutating func displaced(by push: OwedPush, now: UnixTime) -> Int64? {
        if case .displaced(let gone) = admit(push, now: now) { gone.push.row } else { nil }
    }

    /// The rows of all that leave, in their order.
    mutating func drain() -> [Int64] {
        var rows: [Int64] = []
        while let entry = take() { rows.append(entry.push.row) }
        return rows
    }
}
