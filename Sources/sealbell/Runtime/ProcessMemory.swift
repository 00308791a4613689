import CWiping
#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// What this process takes of the machine's memory.
enum ProcessMemory {
    /// Makes large blocks go back to the system as soon as they are free. Before anything large is held.
    static func bound() { sealbell_heap_bound() }

    /// Resident bytes (proc(5), `statm`); 0 where the system does not tell.
    static func resident() -> Int {
        guard let file = fopen("/proc/self/statm", "r") else { return 0 }
        defer { fclose(file) }
        var text = [CChar](repeating: 0, count: 128)
        guard fgets(&text, Int32(text.count), file) != nil else { return 0 }
        let line = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let words = line.split(separator: " ")
        guard words.count > 1, let pages = Int(words[1]) else { return 0 }
        return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
    }
}
