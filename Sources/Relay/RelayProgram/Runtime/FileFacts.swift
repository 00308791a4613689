#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Whose a file or folder is, and who may do what with it.
struct FileFacts {
    var owner: uid_t
    var mode: mode_t

    /// `nil` where nothing of that path is.
    static func of(_ path: String) -> FileFacts? {
        var facts = stat()
        guard stat(path, &facts) == 0 else { return nil }
        return FileFacts(owner: facts.st_uid, mode: facts.st_mode)
    }
}
