import PushModel

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#endif

extension KeyFile {
    /// Reads the file, changes its keys and puts them in its place in one step: a new file beside it with the
    /// same owner and mode, synced, renamed, and its directory synced. Two processes that do this at the same
    /// time do it one after the other, or one of them gets `.busy`.
    ///
    /// - Returns: the keys that stand in the file afterwards.
    /// - Throws: what `change` throws, `.busy`, and what reading and writing throw; then the file is as it
    ///   was.
    package static func change(
        _ path: String, _ change: (AtRestKeys) throws(KeyFileError) -> AtRestKeys
    ) throws(KeyFileError) -> AtRestKeys {
        // A link stays a link: what it leads to is replaced.
        guard let found = realpath(path, nil) else { throw KeyFileError(.unreadable) }
        defer { free(found) }
        let path = String(cString: found)
        let folder = open(folder(of: path), O_RDONLY | O_CLOEXEC | O_DIRECTORY)
        guard folder >= 0 else { throw KeyFileError(.unwritable) }
        defer { close(folder) }
        guard flock(folder, LOCK_EX | LOCK_NB) == 0 else { throw KeyFileError(.busy) }
        let keys = try change(try read(path))
        try replace(path, keys, folder)
        return keys
    }

    private static func replace(
        _ path: String, _ keys: AtRestKeys, _ folder: Int32
    ) throws(KeyFileError) {
        var facts = stat()
        guard stat(path, &facts) == 0 else { throw KeyFileError(.unreadable) }
        let fresh = path + ".new"
        // Left by a process that was killed; only the holder of the lock uses it.
        unlink(fresh)
        try write(keys, to: fresh)
        // Root changes it for a relay that is not root.
        let isOurs = facts.st_uid == geteuid() && facts.st_gid == getegid()
        guard isOurs || chown(fresh, facts.st_uid, facts.st_gid) == 0,
            chmod(fresh, facts.st_mode & 0o660) == 0, rename(fresh, path) == 0, fsync(folder) == 0
        else {
            unlink(fresh)
            throw KeyFileError(.unwritable)
        }
    }

    private static func folder(of path: String) -> String {
        let slash = path.lastIndex(of: "/") ?? path.startIndex
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }
}
