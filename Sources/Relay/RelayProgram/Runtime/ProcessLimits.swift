import CWiping
#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// What the process asks of the system before it holds anything worth hiding.
package enum ProcessLimits {
    #if canImport(Glibc)
    private static let core = __rlimit_resource_t(RLIMIT_CORE.rawValue)
    private static let files = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    #else
    private static let core = RLIMIT_CORE
    private static let files = RLIMIT_NOFILE
    #endif

    /// No core image is ever written, because it would hold keys and tokens (SECURITY.md). It cannot be
    /// undone.
    ///
    /// The limit alone would not do: a system that pipes core images to a program does not look at it.
    ///
    /// - Returns: false when the system refuses, which it has no reason to.
    static func forbidCoreDumps() -> Bool {
        var limit = rlimit(rlim_cur: 0, rlim_max: 0)
        let isLimited = setrlimit(core, &limit) == 0
        #if os(Linux)
        // Nor may other processes of the same user read this one's memory.
        return sealbell_forbid_reading() == 0 && isLimited
        #else
        return isLimited
        #endif
    }

    /// Raises the number of files and sockets to what the system lets this user have, at most a million.
    ///
    /// - Returns: how many there may be now.
    package static func raiseOpenFiles() -> Int {
        guard var limit = fileLimit else { return 0 }
        let wanted = min(limit.rlim_max, mostFiles)
        if limit.rlim_cur < wanted {
            var raised = rlimit(rlim_cur: wanted, rlim_max: limit.rlim_max)
            if setrlimit(files, &raised) == 0 { limit = raised }
        }
        return Int(clamping: limit.rlim_cur)
    }

    /// How many there would be after ``raiseOpenFiles()``; `nil` where the system does not tell.
    static func mostOpenFiles() -> Int? {
        fileLimit.map { Int(clamping: max($0.rlim_cur, min($0.rlim_max, mostFiles))) }
    }

    private static let mostFiles: rlim_t = 1 << 20

    /// How many files and sockets there may be now; `nil` where the system does not tell.
    static var openFilesLimit: Int? { fileLimit.map { Int(clamping: $0.rlim_cur) } }

    private static var fileLimit: rlimit? {
        var limit = rlimit()
        return getrlimit(files, &limit) == 0 ? limit : nil
    }
}
