#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import AtRest
import PushModel
import WebClient

/// The clock, the state directory and its disk, and the file of the keys that seal what lies there.
struct MachineChecks {
    /// 2026-01-01: no machine that runs this release has an earlier date.
    private static let earliest = UnixTime(seconds: 1_767_225_600)
    /// Twenty years on, nobody would miss the warning.
    private static let latest = UnixTime(seconds: 1_767_225_600 + 20 * 31_557_600)
    let configuration: RelayConfiguration
    let now: @Sendable () -> UnixTime
    let isClockKept: @Sendable () -> Bool?
    /// As of ``FileChecks``.
    var credentials: String?
    /// Where this machine's certificate authorities are.
    var trust = SystemTrust()
    /// Bytes that are free at a path; `nil`: the system does not tell.
    var freeBytes: @Sendable (String) -> Int64? = { DiskSpace.free(at: $0) }

    /// - Parameter isClockKept: whether a time service keeps the clock; `nil`: the system does not tell.
    init(
        _ configuration: RelayConfiguration, _ now: @escaping @Sendable () -> UnixTime,
        isClockKept: @escaping @Sendable () -> Bool? = { kernelKeepsTime() }
    ) {
        self.configuration = configuration
        self.now = now
        self.isClockKept = isClockKept
    }

    func check() -> [Finding] {
        [authorities(), clock()] + state() + [storageKeys()] + [oneBackup()].compactMap(\.self)
    }

    private func authorities() -> Finding {
        let subject = "certificate authorities"
        guard let complaint = trust.complaint else {
            return .good(.certificates, subject, "This machine trusts those of the system.")
        }
        // The sandbox brings its own.
        return configuration.isSandbox
            ? .warning(.certificates, subject, complaint) : .fault(.certificates, subject, complaint)
    }

    /// Apple refuses tokens that are an hour off, Google those that are ten minutes off.
    private func clock() -> Finding {
        let now = now()
        guard now > Self.earliest, now < Self.latest else {
            return .fault(
                .clock, timestamp(now),
                "The clock is wrong: push services will refuse every token; set it by NTP.")
        }
        var facts = stat()
        if stat(configuration.state, &facts) == 0 {
            #if canImport(Darwin)
            let seconds = Int64(facts.st_mtimespec.tv_sec)
            #else
            let seconds = Int64(facts.st_mtim.tv_sec)
            #endif
            if seconds > now.seconds + 300 {
                return .fault(
                    .clock, timestamp(now),
                    "The state directory was changed later than now: the clock has gone back; set it by NTP.")
            }
        }
        if isClockKept() == false {
            return .warning(
                .clock, timestamp(now),
                "The clock is plausible, but the kernel knows of no time service that keeps it: enable "
                    + "systemd-timesyncd or chrony, unless the host of this machine does it.")
        }
        return .good(.clock, timestamp(now), "The clock is plausible.")
    }

    private func state() -> [Finding] {
        let path = configuration.state
        var facts = stat()
        guard stat(path, &facts) == 0 else {
            let parent = existingParent(of: path)
            return access(parent, W_OK) == 0
                ? [.good(.state, path, "It does not exist yet and will be created at start.")]
                : [.fault(.state, path, "It is not there, and this user may not make it in \(parent).")]
        }
        guard facts.st_mode & S_IFMT == S_IFDIR else {
            return [.fault(.state, path, "This is not a directory; name another with --state.")]
        }
        var findings: [Finding] = []
        if access(path, R_OK | W_OK | X_OK) != 0 {
            findings.append(
                .fault(.state, path, "This user may not write here; chown it to the relay's user."))
        } else if facts.st_mode & 0o077 != 0 {
            findings.append(.warning(.state, path, "Other users can read it; run chmod 700 on it."))
        } else {
            findings.append(.good(.state, path, "It is writable, and only by this user."))
        }
        if let space = space(path) { findings.append(space) }
        return findings
    }

    private func space(_ path: String) -> Finding? {
        guard let free = freeBytes(path) else { return nil }
        let mebibytes = free >> 20
        if free == 0 {
            return .fault(.state, path, "The disk is full, so the relay accepts no push: make room.")
        }
        if free < DiskSpace.low {
            return .fault(
                .state, path,
                "\(mebibytes) MiB are free. The relay accepts pushes until the disk is full, and then none: "
                    + "make room.")
        }
        if free < configuration.limits.outboxBytes {
            return .warning(
                .state, path,
                "\(mebibytes) MiB are free, and a full outbox takes "
                    + "\(configuration.limits.outboxBytes >> 20) MiB: "
                    + "lower limits.outbox.bytes or make room.")
        }
        return .good(.state, path, "\(mebibytes) MiB are free.")
    }

    private func existingParent(of path: String) -> String {
        var parent = path
        while parent.count > 1, access(parent, F_OK) != 0 {
            let end = parent.lastIndex(of: "/") ?? parent.startIndex
            parent = end == parent.startIndex ? "/" : String(parent[..<end])
        }
        return parent
    }

    /// A store without its keys is lost; keys without a store are made at the first start.
    func storageKeys() -> Finding {
        let file = configuration.store.keysFile
        let hasStore: Bool
        switch configuration.store.engine {
        case .memory: hasStore = false
        case .sqlite(let path): hasStore = access(path, F_OK) == 0
        case .postgres: hasStore = true
        }
        if access(file, F_OK) != 0 {
            if case .postgres = configuration.store.engine {
                return .fault(
                    .keys, file,
                    "There are no storage keys: put them back, or for a new database make them with sealbell "
                        + "keys new storage, once for all its relays.")
            }
            return hasStore
                ? .fault(
                    .keys, file,
                    "The store exists but its keys do not: restore them from their own backup.")
                : .good(.keys, file, "There is no store yet; the keys will be created at the first start.")
        }
        do throws(KeyFileError) { _ = try KeyFile.read(file) } catch {
            return .fault(.keys, file, error.coded)
        }
        if let shared = FileChecks(now, credentials: credentials).shared(file) {
            let sentence = "Other users can read the keys that seal the store; run chmod 600 on the file."
            return shared ? .fault(.keys, file, sentence) : .warning(.keys, file, sentence)
        }
        return .good(.keys, file, "The keys exist, are well formed, and cannot be read by others.")
    }

    /// Nothing where it is as it should be, or the configuration's own warning says it; the sandbox keeps
    /// both together on purpose.
    private func oneBackup() -> Finding? {
        let isSaid = configuration.warnings.contains { $0.code == .storageKeysInsideState }
        guard !configuration.isSandbox, !isSaid, configuration.isKeyBesideStore else { return nil }
        return .warning(
            .keys, configuration.store.keysFile,
            "The keys lie where the state lies: one backup would take both, and whoever has it reads every "
                + "token. Move the file out, set store.keys, and back it up elsewhere.")
    }
}

/// Whether the kernel holds the clock for synchronised; `nil` where it does not say.
func kernelKeepsTime() -> Bool? {
    #if canImport(Glibc)
    // Swift's Glibc does not show adjtimex(2). Its answer alone says enough: 5 is TIME_ERROR, a clock that
    // nobody keeps. Modes 0 set nothing, and no system's `struct timex` has as much as 512 bytes.
    typealias Ask = @convention(c) (UnsafeMutableRawPointer) -> Int32
    guard let symbol = dlsym(nil, "adjtimex") else { return nil }
    let ask = unsafeBitCast(symbol, to: Ask.self)
    let answer = withUnsafeTemporaryAllocation(byteCount: 512, alignment: 16) { facts in
        facts.initializeMemory(as: UInt8.self, repeating: 0)
        return ask(facts.baseAddress!)
    }
    return answer < 0 ? nil : answer != 5
    #else
    return nil
    #endif
}
