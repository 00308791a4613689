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

    /// What to say where another allocator than the C library's was preloaded; `nil`: none was.
    static var foreignHeap: String? {
        guard sealbell_heap_is_foreign() == 1 else { return nil }
        return "Another memory allocator is preloaded (LD_PRELOAD or /etc/ld.so.preload), so freed memory is "
            + "not wiped and may keep tokens for a while: start the relay without it."
    }

    /// Takes what only the start has read of the program and its libraries out of the resident set; it comes
    /// back where it is needed again.
    ///
    /// - Returns: bytes of all that could be taken out, for tests.
    @discardableResult
    static func unmapStart() -> Int { Int(sealbell_unmap_start()) }

    /// Whether what the heap is given back is wiped.
    static var isWiped: Bool { sealbell_heap_wipes() == 1 }

    /// Resident bytes that are no file's: the heap and the stacks; 0 where the system does not tell.
    static func anonymous() -> Int { pages.map { max(0, $0.resident - $0.files) } ?? 0 }

    /// Bytes, by the first three fields of `/proc/self/statm` (proc(5)). `files`: of the resident ones, pages
    /// of files and what is shared.
    static var pages: (virtual: Int, resident: Int, files: Int)? {
        guard let bytes = readPseudoFile("/proc/self/statm") else { return nil }
        let words = String(decoding: bytes, as: UTF8.self).split(separator: " ").prefix(3).compactMap {
            Int($0)
        }
        guard words.count == 3 else { return nil }
        let page = Int(sysconf(Int32(_SC_PAGESIZE)))
        return (words[0] * page, words[1] * page, words[2] * page)
    }
}
