#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
package import PushModel

/// Why a file could not be read or written. Never holds a name: the caller knows it and decides whether to
/// say it.
package enum FileFault: String, Error, Sendable, CaseIterable {
    case missing, forbidden, notAFile, tooLarge, exists, taken, full, broken

    /// What a person should do next.
    package var sentence: String {
        switch self {
        case .missing: "There is no such file."
        case .forbidden: "This user may not open it; look at its owner and mode, and at those of its folders."
        case .notAFile: "This is no regular file."
        case .tooLarge: "The file is larger than anything that belongs here."
        case .exists: "There is a file of that name already."
        case .taken: "Another command works with it; try it again when that has ended."
        case .full: "There is no space left on the device."
        case .broken: "The system reports a fault while reading or writing; look at the disk."
        }
    }

    init(errno code: Int32) {
        switch code {
        case ENOENT, ENOTDIR: self = .missing
        case EACCES, EPERM, EROFS: self = .forbidden
        case EISDIR: self = .notAFile
        case EEXIST: self = .exists
        case ENOSPC, EDQUOT: self = .full
        default: self = .broken
        }
    }
}

/// The whole of a regular file of at most `limitBytes`.
package func readFile(_ path: String, limitBytes: Int) throws(FileFault) -> [UInt8] {
    let descriptor = try openFile(path)
    defer { close(descriptor) }
    return try readAll(descriptor, limitBytes: limitBytes)
}

/// The same into a ``Secret``; the passing copy is wiped.
package func readSecret(_ path: String, limitBytes: Int) throws(FileFault) -> Secret {
    var bytes = try readFile(path, limitBytes: limitBytes)
    defer { bytes.withUnsafeMutableBytes { wipe($0) } }
    return Secret(bytes)
}

/// Opens without waiting (a fifo would), and refuses what is no regular file.
func openFile(_ path: String) throws(FileFault) -> Int32 {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { throw FileFault(errno: errno) }
    var facts = stat()
    guard fstat(descriptor, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG else {
        close(descriptor)
        throw .notAFile
    }
    return descriptor
}

func readAll(_ descriptor: Int32, limitBytes: Int) throws(FileFault) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: limitBytes + 1)
    var count = 0
    while count < bytes.count {
        let got = bytes.withUnsafeMutableBytes { read(descriptor, $0.baseAddress! + count, $0.count - count) }
        if got == 0 { break }
        if got < 0 {
            if errno == EINTR { continue }
            throw FileFault(errno: errno)
        }
        count += got
    }
    guard count <= limitBytes else { throw .tooLarge }
    bytes.withUnsafeMutableBytes { wipe(UnsafeMutableRawBufferPointer(rebasing: $0[count...])) }
    bytes.removeLast(bytes.count - count)
    return bytes
}

/// Writes a file in one step that a crash cannot halve: a new file beside it (mode 0600), `fsync`,
/// `rename`, `fsync` of the folder. Where root replaces a file, the new one has the owner of the old one: a
/// command that root runs writes keys that the relay's user goes on reading.
///
/// - Parameter replacing: false refuses with `.exists` when the name is taken.
func writeFile(_ path: String, _ bytes: some Collection<UInt8>, replacing: Bool) throws(FileFault) {
    close(try writeHeldFile(path, bytes, replacing: replacing))
}

/// The same; the file is locked (flock(2)) before it has its name.
///
/// - Parameter linking: link(2), or a file system's that has no hard links.
/// - Returns: its descriptor, which holds the lock until it is closed.
func writeHeldFile(
    _ path: String, _ bytes: some Collection<UInt8>, replacing: Bool,
    linking: (String, String) -> Int32 = { link($0, $1) }
) throws(FileFault) -> Int32 {
    let temporary = "\(path).\(getpid()).new"
    unlink(temporary)
    let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw FileFault(errno: errno) }
    do throws(FileFault) {
        // Nobody else knows it yet; a file system without locks holds nothing for anybody.
        _ = flock(descriptor, LOCK_EX | LOCK_NB)
        if replacing { keepOwner(of: path, descriptor) }
        try writeAll(descriptor, Array(bytes))
        guard fsync(descriptor) == 0 else { throw FileFault(errno: errno) }
        // `link` refuses a name that is taken; `rename` takes it over.
        if replacing {
            guard rename(temporary, path) == 0 else { throw FileFault(errno: errno) }
        } else if linking(temporary, path) == 0 {
            unlink(temporary)
        } else {
            guard isWithoutLinks(errno) else { throw FileFault(errno: errno) }
            try takeName(path, for: temporary)
        }
        try syncFolder(of: path)
        return descriptor
    } catch {
        unlink(temporary)
        close(descriptor)
        throw error
    }
}

/// Nothing for another user than root, and where no file has the name. In a container even root may be unable
/// to give files away: then it keeps this one.
private func keepOwner(of path: String, _ descriptor: Int32) {
    var facts = stat()
    guard geteuid() == 0, lstat(path, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG else { return }
    _ = fchown(descriptor, facts.st_uid, facts.st_gid)
}

/// Whether link(2) failed because there are no hard links: exFAT, some network mounts, and Android, which
/// also forbids them to apps.
private func isWithoutLinks(_ code: Int32) -> Bool {
    [EPERM, EACCES, ENOTSUP, EOPNOTSUPP, ENOSYS, EMLINK].contains(code)
}

/// Gives a file a name that nobody has, in two steps: an empty file takes it, which is refused where there is
/// one, and is then replaced. It is locked meanwhile, so that whoever finds it waits; a crash between the two
/// leaves it, and it is read as a file that holds nothing.
private func takeName(_ path: String, for temporary: String) throws(FileFault) {
    let place = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard place >= 0 else { throw FileFault(errno: errno) }
    defer { close(place) }
    _ = flock(place, LOCK_EX | LOCK_NB)
    guard rename(temporary, path) == 0 else {
        let fault = FileFault(errno: errno)
        if isNamed(path, place) { unlink(path) }
        throw fault
    }
}

/// Whether a path leads to the file of a descriptor.
func isNamed(_ path: String, _ descriptor: Int32) -> Bool {
    var (own, named) = (stat(), stat())
    return fstat(descriptor, &own) == 0 && stat(path, &named) == 0 && own.st_ino == named.st_ino
        && own.st_dev == named.st_dev
}

/// Writes over the beginning of a file that is there: where it has the blocks, a full disk takes that.
func overwriteFile(_ path: String, _ bytes: [UInt8]) throws(FileFault) {
    let descriptor = open(path, O_WRONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw FileFault(errno: errno) }
    defer { close(descriptor) }
    try writeAll(descriptor, bytes)
    guard fsync(descriptor) == 0 else { throw FileFault(errno: errno) }
}

func writeAll(_ descriptor: Int32, _ bytes: [UInt8]) throws(FileFault) {
    var sent = 0
    while sent < bytes.count {
        let count = bytes.withUnsafeBytes { write(descriptor, $0.baseAddress! + sent, $0.count - sent) }
        if count < 0 {
            if errno == EINTR { continue }
            throw FileFault(errno: errno)
        }
        sent += count
    }
}

/// The folder that an absolute path lies in.
func folder(of path: String) -> String {
    let end = path.lastIndex(of: "/") ?? path.startIndex
    return end == path.startIndex ? "/" : String(path[..<end])
}

private func syncFolder(of path: String) throws(FileFault) {
    let descriptor = open(folder(of: path), O_RDONLY | O_CLOEXEC | O_DIRECTORY)
    guard descriptor >= 0 else { throw FileFault(errno: errno) }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw FileFault(errno: errno) }
}

/// For a file of keys, certificates or a service account; none comes near it.
let credentialLimitBytes = 1 << 20

/// Writes a file that its owner alone may read.
///
/// - Parameter replacing: in the place of one that may be there; otherwise such a one is a fault.
func writeSecret(_ file: String, _ text: Secret, replacing: Bool = true) throws(CommandFailure) {
    do throws(FileFault) {
        try text.reveal { (bytes) throws(FileFault) in try writeFile(file, bytes, replacing: replacing) }
    } catch {
        throw CommandFailure(.failed, "\(file): \(error.sentence)")
    }
}

/// Writes a file of keys where there is none yet.
func writeKeysOnce(
    _ file: String, _ limitBytes: Int, _ text: () -> Secret
) throws(CommandFailure) {
    do throws(FileFault) {
        do throws(FileFault) {
            _ = try readSecret(file, limitBytes: limitBytes)
        } catch {
            guard error == .missing else { throw error }
            try text().reveal { (bytes) throws(FileFault) in
                try writeFile(file, bytes, replacing: true)
            }
        }
    } catch {
        throw CommandFailure(.configuration, "\(file): \(error.sentence)")
    }
}
