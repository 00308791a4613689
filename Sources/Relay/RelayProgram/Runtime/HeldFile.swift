#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import PushModel
import Synchronization

/// A file that one owner at a time reads and replaces (flock(2)), so that no two of them undo what the other
/// has written. It leaves nothing beside the file: each new file is locked before it takes the name.
///
/// The system gives it back when the last user of this value is gone, or the process has ended, however it
/// ends.
final class HeldFile: Sendable {
    let path: String
    /// Of the file that has the name, locked; `nil`: not read, and not written yet.
    private let descriptor = Mutex<Int32?>(nil)

    /// More owners than ever replace a file between two looks at it.
    private static let looks = 16

    private let linking: @Sendable (String, String) -> Int32

    /// - Parameter linking: link(2), or a file system's that has no hard links.
    init(_ path: String, linking: @escaping @Sendable (String, String) -> Int32 = { link($0, $1) }) {
        (self.path, self.linking) = (path, linking)
    }

    deinit { descriptor.withLock { if let held = $0 { close(held) } } }

    /// The whole of the file, which is held from then on.
    ///
    /// - Throws: `.taken` where another has it; what ``readSecret(_:limitBytes:)`` throws.
    func read(limitBytes: Int) throws(FileFault) -> Secret {
        let held = try hold()
        descriptor.withLock { former in
            if let former { close(former) }
            former = held
        }
        var bytes = try readAll(held, limitBytes: limitBytes)
        defer { bytes.withUnsafeMutableBytes { wipe($0) } }
        return Secret(bytes)
    }

    /// Writes it in one step that a crash cannot halve, mode 0600.
    ///
    /// - Throws: `.exists` where it has not been read, and there is one.
    func write(_ text: Secret) throws(FileFault) {
        try descriptor.withLock { (held) throws(FileFault) in
            let isNew = held == nil
            let next = try text.reveal { (bytes) throws(FileFault) in
                try writeHeldFile(path, bytes, replacing: !isNew, linking: linking)
            }
            if let held { close(held) }
            held = next
        }
    }

    private func hold() throws(FileFault) -> Int32 {
        for _ in 0..<Self.looks {
            let found = try openFile(path)
            if flock(found, LOCK_EX | LOCK_NB) != 0, errno == EWOULDBLOCK {
                close(found)
                throw .taken
            }
            // Whoever had it before may have replaced it since it was opened.
            if isNamed(path, found) { return found }
            close(found)
        }
        throw .taken
    }
}
