#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The right to serve from a state directory, held by one process at a time: on SQLite every other owner of
/// a push is taken for dead at start (docs/architecture.md), so two processes on one directory would send
/// everything twice.
///
/// The system gives it back when the process ends, however it ends.
final class StateDirectory: Sendable {
    enum Fault: Error, Equatable {
        /// Another process serves from it.
        case taken
        case file(FileFault)
    }

    static let lockName = "lock"
    let path: String
    private let descriptor: Int32

    /// Makes the directory (mode 0700) and the folders above it when they are not there, and takes the lock.
    init(claiming path: String) throws(Fault) {
        do throws(FileFault) { try makeFolder(path) } catch { throw .file(error) }
        let descriptor = open(joinPath(path, Self.lockName), O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw .file(FileFault(errno: errno)) }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let code = errno
            close(descriptor)
            throw code == EWOULDBLOCK ? .taken : .file(FileFault(errno: code))
        }
        self.path = path
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }
}

/// Makes a folder of mode 0700, and those above it.
func makeFolder(_ path: String) throws(FileFault) {
    var facts = stat()
    if stat(path, &facts) == 0 {
        guard facts.st_mode & S_IFMT == S_IFDIR else { throw .exists }
        return
    }
    if let end = path.lastIndex(of: "/"), end != path.startIndex { try makeFolder(String(path[..<end])) }
    guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw FileFault(errno: errno) }
}
