#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import AdminIngress
import AtRest
import PushModel
import SQLiteStore

/// Checks the store: whether the keys open it, whether its file is intact, what it owes and for how long. A
/// relay may be running meanwhile.
struct StoreChecks {
    /// Of counting, and again of checking. While it reads, the relay cannot empty its log.
    private static let span = Duration.seconds(20)
    /// Longer than every backoff; by then a push service answers again, or somebody must look.
    private static let oldSeconds: Int64 = 3600
    let configuration: RelayConfiguration
    let world: World

    init(_ configuration: RelayConfiguration, _ world: World) {
        self.configuration = configuration
        self.world = world
    }

    func check() -> [Finding] {
        guard case .sqlite(let path) = configuration.store.engine else { return [] }
        guard access(path, F_OK) == 0 || errno != ENOENT else {
            return [.good(.store, path, "There is no store yet; the first start makes it.")]
        }
        let rights = Self.rights(DatabaseFiles(path))
        let seen: SQLiteInspection
        do throws(StoreError) {
            seen = try SQLiteInspection.look(at: path, within: Self.span, world.instant)
        } catch {
            return rights.isEmpty ? [.fault(.store, path, sentence(error))] : rights
        }
        let findings =
            rights + [Self.soundness(seen, path, Self.span)] + Self.aside(seen.recordsAside)
            + keys(seen.checks)
        // What a store owes that no relay may serve from is owed elsewhere, or not yet.
        if let bar = seen.bar { return findings + [.fault(.store, path, StoreError(bar).coded)] }
        return findings + owed(seen.owed, isServed: isServed)
            + Self.clock(seen.lastTime, now: world.now())
    }

    /// A clock that a relay on this store would not believe, or does not.
    static func clock(_ last: UnixTime?, now: UnixTime) -> [Finding] {
        guard let last else { return [] }
        let ahead = now.since(last)
        if ahead > DoubtedClock.tolerance {
            return [
                .warning(
                    .clock, timestamp(now),
                    "By this clock the store was last written \(words(ahead.components.seconds)) ago, so a "
                        + "relay lets nothing expire by it. If the clock is wrong, set it. If no relay ran "
                        + "for so long, run sealbell store trust-clock once one is running.")
            ]
        }
        guard ahead < .zero - DoubtedClock.tolerance else { return [] }
        return [
            .warning(
                .clock, timestamp(now),
                "The store was last written \(words(-ahead.components.seconds)) in the future: the clock "
                    + "was set back, or was ahead then. Set it by NTP.")
        ]
    }

    private func sentence(_ error: StoreError) -> String {
        guard error.code == .unavailable else { return error.coded }
        return "It cannot be read. Run the doctor as the relay's user or as root, and check the disk."
    }

    /// Whoever examines it may read what the relay may not write.
    static func rights(_ files: DatabaseFiles) -> [Finding] {
        files.closed.map { [.fault(.store, $0, DatabaseFiles.closedSentence)] } ?? []
    }

    static func soundness(_ seen: SQLiteInspection, _ path: String, _ span: Duration) -> Finding {
        switch seen.soundness {
        case .sound:
            .good(.store, path, "The file is intact.")
        case .damaged:
            .fault(
                .store, path,
                "The file is damaged. Stop the relay, check the disk, and restore the state directory from "
                    + "a backup.")
        case .unfinished:
            .warning(
                .store, path,
                "The file is too large to check in \(span.components.seconds) s. Run sqlite3 with "
                    + "PRAGMA quick_check on a copy from a backup.")
        }
    }

    /// Nothing where the file of the keys has a finding of its own.
    func keys(_ checks: [String: [UInt8]]) -> [Finding] {
        let file = configuration.store.keysFile
        // Whatever is wrong with the file was said where it is looked at alone.
        guard let keys = try? KeyFile.read(file) else { return [] }
        switch KeyFit.of(keys, checks, world) {
        case .fits: return [.good(.keys, file, "The keys open this store.")]
        case .unused: return [.good(.keys, file, "Nothing has been sealed in this store yet.")]
        case .foreign:
            return [
                .fault(
                    .keys, file,
                    "These keys do not open this store, so the relay would not start. Put back the newest "
                        + "copy of the key file that sealed it.")
            ]
        }
    }

    static func aside(_ records: Int) -> [Finding] {
        guard records > 0 else { return [] }
        return [
            .warning(
                .store, "records",
                counted(records, "record") + " cannot be read, so that a device or server is unknown until "
                    + "it registers anew. Check the disk; sealbell store check --all names them.")
        ]
    }

    /// What is owed, as a sentence begins: `3 pushes (12 KiB) are owed`.
    static func sum(_ rows: Int, _ bytes: Int) -> String {
        "\(counted(rows, "push", "pushes")) (\(bytes >> 10) KiB) \(rows == 1 ? "is" : "are") owed"
    }

    func owed(_ owed: OwedSum?, isServed: Bool) -> [Finding] {
        let limits = configuration.limits
        guard let owed else {
            return [
                .warning(
                    .store, "outbox",
                    "Too much is owed to count it in \(Self.span.components.seconds) s. "
                        + "The running relay's dashboard shows which lane does not drain.")
            ]
        }
        guard owed.rows > 0 else { return [.good(.store, "outbox", "Nothing is owed.")] }
        let age = max(0, owed.oldest.map { world.now().seconds - $0.acceptedAt.seconds } ?? 0)
        let facts =
            Self.sum(owed.rows, owed.bytes) + ", the oldest for \(Self.words(age))"
            + (owed.oldest.map { " (\($0.text))" } ?? "")
        let percent = max(
            owed.rows * 100 / max(limits.outboxRows, 1),
            Int(Int64(owed.bytes) * 100 / max(limits.outboxBytes, 1)))
        var findings: [Finding] = []
        if percent >= 100 {
            findings.append(
                .fault(
                    .store, "outbox",
                    facts + ". The outbox is full, so new ones are refused. Repair the lane that does not "
                        + "drain, or raise limits.outbox."))
        } else if !isServed {
            findings.append(
                .warning(.store, "outbox", facts + ", and no relay is running. Start it to send them."))
        } else if percent >= RelayMonitor.fullPercent || age >= Self.oldSeconds {
            findings.append(
                .warning(
                    .store, "outbox",
                    facts + " (\(percent) % of the limit). The dashboard shows which lane does not drain, "
                        + "and sealbell why \(owed.oldest?.text ?? "") shows the way of the oldest."))
        } else {
            findings.append(.good(.store, "outbox", facts + "."))
        }
        return findings + stranded(owed)
    }

    /// Lanes that no app of the configuration has any more, so that what they owe is not sent.
    private func stranded(_ owed: OwedSum) -> [Finding] {
        let known = configuration.lanes
        return owed.lanes.sorted { $0.key < $1.key }.compactMap { text, rows in
            if let lane = Aside.lane(text) {
                return .warning(
                    .store, lane,
                    counted(rows, "owed push of this lane does", "owed pushes of this lane do")
                        + " not open and will not be sent. Check the disk; sealbell store check names "
                        + (rows == 1 ? "it." : "them."))
            }
            guard let lane = LaneName(text), !known.contains(lane) else { return nil }
            return .warning(
                .store, text,
                counted(rows, "push is", "pushes are")
                    + " owed by a lane that is no longer in the configuration. Put its app, service "
                    + "and environment back, or let what is owed expire.")
        }
    }

    /// Whether a relay has the store: that of this state directory, or whoever has the file's lock.
    private var isServed: Bool {
        // An unreadable run file says no more than an absent one.
        if case .running? = try? RunFile.find(state: configuration.state) { return true }
        guard case .sqlite(let path) = configuration.store.engine else { return false }
        return FileLocks.isHeld(SQLiteStore.lockFile(of: path))
    }

    /// `90 s`, `12 min`, `3 h`, `4 days`.
    static func words(_ seconds: Int64) -> String {
        if seconds < 120 { return "\(seconds) s" }
        if seconds < 7200 { return "\(seconds / 60) min" }
        return seconds < 172_800 ? "\(seconds / 3600) h" : "\(seconds / 86_400) days"
    }
}

extension RelayConfiguration {
    /// Every lane that apps and instances give.
    var lanes: Set<LaneName> {
        let brought = instances.flatMap { instance in
            (instance.settings as? any LaneBringing)?.lanes(of: instance.name) ?? []
        }
        return Set(apps.flatMap(\.lanes) + brought)
    }

    /// Whether one backup would take database and keys: the file of the keys lies inside the state directory,
    /// or beside or below the database. By the places that links lead to.
    var isKeyBesideStore: Bool {
        func real(_ path: String) -> String {
            guard let found = realpath(path, nil) else { return path }
            defer { free(found) }
            return String(cString: found)
        }
        let keys = real(folder(of: store.keysFile)) + "/"
        var homes = [real(state)]
        if case .sqlite(let path) = store.engine { homes.append(real(folder(of: path))) }
        return homes.contains { keys.hasPrefix($0 == "/" ? $0 : $0 + "/") }
    }
}
