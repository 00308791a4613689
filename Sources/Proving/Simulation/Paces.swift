import Delivery
import PushModel

/// How often, and in which order, pushes leave.
struct Paces {
    struct Way: Hashable {
        let lane: LaneName
        let life: PushLedger.Life
    }

    struct Urgent {
        let number: Int
        let row: Int64
        var lane: LaneName
        let custodyEnds: UnixTime
        var due: Duration
        /// From when on it is due, as its row in the store says.
        var dueInStore: Duration
        var overtaken = 0
    }

    /// Attempts of one push in a minute: more than any back-off makes, with takings-over between.
    private static let mostOfOne = 40
    /// Attempts of one lane in a minute without a word of its service: what goes out before a lane is slowed
    /// (``DeliveryLimits/throttleRefusals``), one a tick then, and as much again.
    private static let mostUnheard = 500
    private static let minute = Duration.seconds(60)
    /// So long a push may be due before anybody looks for it.
    private static let grace = Duration.milliseconds(1_500)

    /// Answers that refuse a credential before a halt: as many as it takes, whatever came between, which may
    /// have been heard in another order.
    private static let leastRefusals = 3

    /// How often each way was told that its credential is refused.
    var refusals: [Way: Int] = [:]
    /// The last attempts of each push.
    private var attempts: [Int: [Duration]] = [:]
    var unheard: [Way: [Duration]] = [:]
    /// Origins whose targets were blamed since the last acceptance.
    var blamed: [Way: Set<String>] = [:]
    /// When a reload may last have made each process's lanes anew.
    var renewed: [Int: Duration] = [:]
    /// Origins that a push service has answered.
    var known: [Way: Set<String>] = [:]
    /// Urgent pushes that stand in the store only.
    var urgent: [PushID: Urgent] = [:]
    /// When each process last had to wait for its store.
    var troubles: [Int: Duration] = [:]

    /// True when there are too many.
    mutating func tries(_ number: Int, in way: Way, at: Duration) -> Bool {
        let isOften = Self.note(at, in: &attempts[number, default: []], most: Self.mostOfOne)
        return Self.note(at, in: &unheard[way, default: []], most: Self.mostUnheard) || isOften
    }

    /// True when there were more than `most` within a minute.
    static func note(_ at: Duration, in times: inout [Duration], most: Int) -> Bool {
        if times.count > most { times.removeFirst(times.count - most) }
        times.append(at)
        return times.count > most && at - times[0] < minute
    }

    /// Whether a lane has a ground to halt for its credential.
    func isRefused(_ way: Way) -> Bool { refusals[way] ?? 0 >= Self.leastRefusals }

    /// Its row says from when on it is due; unless it is parked, it stands in memory until then.
    mutating func isPutOff(_ id: PushID, to lane: LaneName, until due: Duration, isParked: Bool) {
        urgent[id]?.lane = lane
        urgent[id]?.dueInStore = due
        urgent[id]?.due = isParked ? due : Self.never
    }

    /// A provider has it.
    mutating func leaves(_ id: PushID) { urgent[id]?.due = Self.never }

    /// It went back to the store as it was.
    mutating func isParked(_ id: PushID, at: Duration) {
        if let one = urgent[id] { urgent[id]?.due = max(at, one.dueInStore) }
    }

    private static let never = Duration.seconds(1 << 40)

    /// Urgent pushes that more than an eighth of a lane's memory went before.
    ///
    /// - Parameter mayWait: pushes whose phone has said that it has had enough.
    mutating func left(
        _ push: OwedPush, by life: PushLedger.Life, at: Duration, _ now: UnixTime, _ limits: DeliveryLimits,
        mayWait: Set<Int>, _ isOwn: (Int64) -> Bool
    ) -> [Int] {
        if push.pushClass == .urgent {
            // Until it is put off, and stands in the store again.
            urgent[push.id]?.due = Self.never
            return []
        }
        guard !urgent.isEmpty, troubles[life.process].map({ at - $0 > .seconds(6) }) ?? true else {
            return []
        }
        var found: [Int] = []
        for (id, one) in urgent
        where one.lane == push.lane && one.due + Self.grace <= at && one.custodyEnds > now
            && !mayWait.contains(one.number) && isOwn(one.row)
        {
            urgent[id]?.overtaken += 1
            if one.overtaken == max(24, limits.lanePushes / 8) { found.append(one.number) }
        }
        return found.sorted()
    }
}
