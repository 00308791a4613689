import AdminIngress
#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import PushModel

/// What Prometheus expects to hear of every process, under the names that its own libraries use. Figures that
/// the system does not give are left out.
struct ProcessFigures: Sendable {
    /// When the process began; the moment of asking where the system does not tell.
    let startedAt: UnixTime

    init(_ world: World) { startedAt = Self.start ?? world.now() }

    var samples: [MetricSample] {
        var samples = [
            MetricSample(
                "sealbell_build_info",
                labels: [("version", Release.version), ("build", Release.build)], value: 1),
            MetricSample("process_start_time_seconds", value: Double(startedAt.milliseconds) / 1_000)
        ]
        func add(_ name: StaticString, _ value: Double?, isTotal: Bool = false) {
            if let value { samples.append(MetricSample(name, value: value, isTotal: isTotal)) }
        }
        add("process_cpu_seconds_total", Self.cpuSeconds, isTotal: true)
        add("process_open_fds", Self.openFiles.map(Double.init))
        add("process_max_fds", ProcessLimits.openFilesLimit.map(Double.init))
        let pages = ProcessMemory.pages
        add("process_resident_memory_bytes", pages.map { Double($0.resident) })
        add("process_virtual_memory_bytes", pages.map { Double($0.virtual) })
        return samples
    }

    /// Of all threads, in user and system mode.
    private static var cpuSeconds: Double? {
        var span = timespec()
        guard clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &span) == 0 else { return nil }
        return Double(span.tv_sec) + Double(span.tv_nsec) / 1_000_000_000
    }

    /// Descriptors that are open now; `nil` where none is left to look with.
    private static var openFiles: Int? {
        guard let folder = opendir("/proc/self/fd") else { return nil }
        defer { closedir(folder) }
        var count = 0
        // Ends with the folder: it holds what is open, at most ``ProcessLimits/openFilesLimit``.
        while readdir(folder) != nil { count += 1 }
        // Without itself, its parent, and the descriptor that looks.
        return max(0, count - 3)
    }

    /// The machine's start (`btime` of `/proc/stat`) and the ticks from there to the process's.
    private static var start: UnixTime? {
        guard let ticks = RunFile.start(of: getpid()),
            let bytes = readPseudoFile("/proc/stat", limitBytes: 1 << 20)
        else { return nil }
        let line = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
            .first { $0.hasPrefix("btime ") }
        guard let boot = line.flatMap({ Int64($0.dropFirst("btime ".count)) }) else { return nil }
        let perSecond = UInt64(max(1, sysconf(Int32(_SC_CLK_TCK))))
        return UnixTime(seconds: boot) + .milliseconds(Int64(clamping: ticks * 1_000 / perSecond))
    }
}
