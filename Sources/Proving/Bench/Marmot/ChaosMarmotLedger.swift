import PushModel

/// The triggers that were published, what they woke, and under which relay.
///
/// What Marmot's server has in hand is gone with it, as the protocol wants. So nothing is owed across a kill;
/// within one life nothing may double, and what the last life was told must arrive.
struct ChaosMarmotLedger: Sendable {
    struct Wake: Sendable {
        /// The relay that was up, counted from 0.
        var life: Int
        var arrivals: [UnixTime] = []
    }

    /// By device token: each trigger names one that no other names.
    private(set) var wakes: [String: Wake] = [:]
    /// The relay that is up.
    private(set) var life = 0
    /// Lives in which the relay was seen to listen and to publish its list, of those in which it was waited
    /// for.
    private(set) var awaited = 0
    private(set) var listening = 0
    private(set) var listed = 0
    /// What was found on the disk that should not be.
    private(set) var onDisk = 0
    private(set) var searchedFiles = 0

    /// - Parameter life: the relay that was up when its publishing began; another may have taken its place.
    mutating func published(_ token: String, in life: Int) { wakes[token] = Wake(life: life) }

    /// False when no trigger names the device.
    mutating func delivered(_ token: String, at moment: UnixTime) -> Bool {
        guard wakes[token] != nil else { return false }
        wakes[token]?.arrivals.append(moment)
        return true
    }

    mutating func killed() { life += 1 }

    mutating func waited(isListening: Bool, hasList: Bool) {
        awaited += 1
        if isListening { listening += 1 }
        if hasList { listed += 1 }
    }

    mutating func searched(files: Int, hits: Int) {
        searchedFiles += files
        onDisk += hits
    }

    var woken: Int { wakes.values.count { !$0.arrivals.isEmpty } }
    /// Each wrap is said to the relay several times, and wrapped anew; whatever the moment, nobody repeats it
    /// to another life.
    var doubled: Int { wakes.values.count { $0.arrivals.count > 1 } }
    /// Allowed: gone with the relay that had them.
    var lostAtKills: Int { wakes.values.count { $0.arrivals.isEmpty && $0.life < life } }
    /// Not allowed: told to the last relay, which was stopped in order.
    var missing: Int { wakes.values.count { $0.arrivals.isEmpty && $0.life == life } }
    var told: Int { wakes.values.count { $0.life == life } }

    var hasPassed: Bool {
        doubled == 0 && missing == 0 && told > 0 && woken > 0 && onDisk == 0 && searchedFiles > 0
            && awaited > 0 && listening == awaited && listed == awaited
    }

    func write(to report: inout BenchReport) {
        report.add("marmot_triggers", wakes.count)
        report.add("marmot_woken", woken)
        report.add("marmot_doubled", doubled)
        report.add("marmot_lost_at_kills", lostAtKills)
        report.add("marmot_told_to_the_last", told)
        report.add("marmot_lost_by_the_last", missing)
        report.add("marmot_starts_awaited", awaited)
        report.add("marmot_starts_listening", listening)
        report.add("marmot_starts_with_list", listed)
        report.add("marmot_files_searched", searchedFiles)
        report.add("marmot_found_in_files", onDisk)
    }
}
