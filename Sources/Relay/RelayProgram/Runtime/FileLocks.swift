#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Which files are locked, as the kernel lists them (proc_locks(5)). Whoever tried the lock instead would
/// hold it for a moment, in which a relay could not start.
enum FileLocks {
    /// Whether a process has the file locked as a whole; false where the system does not tell.
    static func isHeld(_ path: String, list: String = "/proc/locks") -> Bool {
        var facts = stat()
        guard stat(path, &facts) == 0, let bytes = readPseudoFile(list, limitBytes: 1 << 20) else {
            return false
        }
        let device = UInt64(facts.st_dev)
        // As the kernel prints it: major and minor in hexadecimal, the file's number in decimal.
        let major = (device >> 8) & 0xFFF | (device >> 32) & ~0xFFF
        let minor = device & 0xFF | (device >> 12) & ~0xFF
        return String(decoding: bytes, as: UTF8.self).split(separator: "\n").contains { line in
            let words = line.split(separator: " ")
            guard words.count > 5, words[1] == "FLOCK" else { return false }
            let place = words[5].split(separator: ":")
            return place.count == 3 && UInt64(place[0], radix: 16) == major
                && UInt64(place[1], radix: 16) == minor && UInt64(place[2]) == UInt64(facts.st_ino)
        }
    }
}
