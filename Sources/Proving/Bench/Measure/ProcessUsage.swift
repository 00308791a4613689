#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import Foundation

/// What a process has used so far: CPU time of all its threads, and memory that is resident now.
package struct ProcessUsage: Sendable {
    package var cpu: Duration
    package var residentBytes: Int

    /// This process.
    package static func own() -> ProcessUsage {
        ProcessUsage(cpu: ownCPU(), residentBytes: of(getpid())?.residentBytes ?? 0)
    }

    /// Its CPU time alone: for spans in which reading a file would be seen.
    static func ownCPU() -> Duration {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Duration.seconds(Int64(time.tv_sec)) + .nanoseconds(Int64(time.tv_nsec))
    }

    /// Another process, from `/proc/PID/stat` (fields 14, 15 and 24 of proc(5)); `nil` when it is gone or the
    /// system has no such files. CPU time comes in clock ticks, mostly 10 ms.
    package static func of(_ pid: Int32) -> ProcessUsage? {
        guard let text = readText("/proc/\(pid)/stat"), let end = text.lastIndex(of: ")") else { return nil }
        // The name in parentheses may hold spaces; what follows begins with field 3.
        let fields = text[text.index(after: end)...].split(separator: " ")
        guard fields.count > 21, let user = Int64(fields[11]), let system = Int64(fields[12]),
            let pages = Int(fields[21])
        else { return nil }
        let ticks = Int64(max(1, sysconf(Int32(_SC_CLK_TCK))))
        return ProcessUsage(
            cpu: .nanoseconds((user + system) * (1_000_000_000 / ticks)),
            residentBytes: pages * sysconf(Int32(_SC_PAGESIZE)))
    }

    /// CPU time of a server that forks, with all its children: those that live and those that it has waited
    /// for (proc(5), fields 14 to 17). `nil` when it is gone.
    package static func ofTree(_ pid: Int32) -> Duration? {
        guard let own = ticks(pid) else { return nil }
        var sum = own.used + own.ofEnded
        // A system without such a directory has no answer either.
        guard let names = try? FileManager.default.contentsOfDirectory(atPath: "/proc") else { return nil }
        for child in names.compactMap({ Int32($0) }) where child != pid {
            // Gone meanwhile: then the server has waited for it, and the next reading has it.
            if let found = ticks(child), found.parent == pid { sum += found.used }
        }
        return .nanoseconds(sum * (1_000_000_000 / Int64(max(1, sysconf(Int32(_SC_CLK_TCK))))))
    }

    private static func ticks(_ pid: Int32) -> (parent: Int32, used: Int64, ofEnded: Int64)? {
        guard let text = readText("/proc/\(pid)/stat"), let end = text.lastIndex(of: ")") else { return nil }
        let fields = text[text.index(after: end)...].split(separator: " ")
        guard fields.count > 14, let parent = Int32(fields[1]) else { return nil }
        let times = fields[11...14].compactMap { Int64($0) }
        guard times.count == 4 else { return nil }
        return (parent, times[0] + times[1], times[2] + times[3])
    }

    /// Lets the peak of this process's resident memory begin anew where the system can (Linux: "5" into
    /// `/proc/self/clear_refs`, proc(5)).
    ///
    /// - Returns: the peak from which ``peakBytes()`` counts on.
    package static func markPeak() -> Int {
        let descriptor = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC)
        if descriptor >= 0 {
            _ = write(descriptor, "5", 1)
            close(descriptor)
        }
        return peakBytes()
    }

    /// Most memory of this process that was resident at once: `VmHWM` of `/proc/self/status`; 0 where there
    /// is no such file.
    package static func peakBytes() -> Int {
        guard let text = readText("/proc/self/status"), let start = text.range(of: "VmHWM:") else { return 0 }
        let digits = text[start.upperBound...].drop { !$0.isNumber }.prefix(while: \.isNumber)
        return (Int(digits) ?? 0) * 1024
    }

    /// A whole small file as text; `nil` when it cannot be read.
    private static func readText(_ path: String) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = bytes.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
        return count > 0 ? String(decoding: bytes.prefix(count), as: UTF8.self) : nil
    }
}
