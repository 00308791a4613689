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
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        let cpu = Duration.seconds(Int64(time.tv_sec)) + .nanoseconds(Int64(time.tv_nsec))
        return ProcessUsage(cpu: cpu, residentBytes: of(getpid())?.residentBytes ?? 0)
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
