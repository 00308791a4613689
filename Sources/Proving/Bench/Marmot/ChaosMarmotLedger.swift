import PushModel

/// The triggers that were published, what they woke, and under which relay.
///
/// What Marmot's server has in hand is gone with it, as the protocol wants. So nothing is owed across a kill;
/// within one life nothing may double, and what the last life was told must arrive.
struct ChaosMarmotLedger: Sendable {
    /// By device token: each trigger names one that no other names. Each wrap is said to the relay several
    /// times, and wrapped anew; whatever the moment, nobody repeats it to another life.
    private var book = TrialLedger(losses: .death, doubles: .nothing)
    /// Lives in which the relay was seen to listen and to publish its list, of those in which it was waited
    /// for.
    private(set) var awaited = 0
    private(set) var listening = 0
    private(set) var listed = 0
    /// What was found on the disk that should not be.
    private(set) var onDisk = 0
    private(set) var searchedFiles = 0

    /// The relay that is up, counted from 0.
    var life: Int { book.life }
    /// Told to the relay that is up, and not arrived.
    var missing: Int { book.missing }

    /// - Parameter life: the relay that was up when its publishing began; another may have taken its place.
    mutating func published(_ token: String, in life: Int) { book.promised(token, of: "marmot", in: life) }

    /// False when no trigger names the device.
    mutating func delivered(_ token: String, at moment: UnixTime) -> Bool {
        book.arrived(token, TrialArrival(id: "", at: moment))
    }

    mutating func killed() { book.endLife() }

    mutating func waited(isListening: Bool, hasList: Bool) {
        awaited += 1
        if isListening { listening += 1 }
        if hasList { listed += 1 }
    }

    mutating func searched(files: Int, hits: Int) {
        searchedFiles += files
        onDisk += hits
    }

    var verdict: TrialVerdict { TrialVerdict(book) }

    var hasPassed: Bool {
        let verdict = verdict
        return verdict.hasPassed && verdict.ofTheLast > 0 && verdict.arrived > 0 && onDisk == 0
            && searchedFiles > 0 && awaited > 0 && listening == awaited && listed == awaited
    }

    func write(to report: inout BenchReport) {
        let verdict = verdict
        report.add("marmot_triggers", verdict.pushes)
        report.add("marmot_woken", verdict.arrived)
        report.add("marmot_doubled", verdict.doubled)
        report.add("marmot_lost_at_kills", verdict.lostByTheDead)
        report.add("marmot_told_to_the_last", verdict.ofTheLast)
        report.add("marmot_lost_by_the_last", verdict.lost)
        report.add("marmot_starts_awaited", awaited)
        report.add("marmot_starts_listening", listening)
        report.add("marmot_starts_with_list", listed)
        report.add("marmot_files_searched", searchedFiles)
        report.add("marmot_found_in_files", onDisk)
    }
}
