#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The files of a SQLite database, and whether the relay's user may write them. One that root has put there,
/// as a restored backup, keeps a relay of another user from starting, and the engine says only that it cannot
/// open the database.
struct DatabaseFiles {
    let path: String
    /// Who asks.
    var user: uid_t = geteuid()
    /// `nil` where nothing of that path is.
    var facts: (String) -> FileFacts? = FileFacts.of

    init(_ path: String) { self.path = path }

    /// The first file that the relay's user may not read and write; `nil`: there is none, or the relay is
    /// root's. For root that user is the one to whom the database's folder belongs.
    var closed: String? {
        guard let relay = user == 0 ? facts(folder(of: path))?.owner : user, relay != 0 else { return nil }
        return ["", "-wal", "-shm", ".lock"].map { path + $0 }.first { file in
            facts(file).map { !Self.isOpen($0, to: relay) } ?? false
        }
    }

    /// Rights of a group count as the user's: who is in it is not known here.
    private static func isOpen(_ file: FileFacts, to user: uid_t) -> Bool {
        let masks: [mode_t] = file.owner == user ? [0o600] : [0o060, 0o006]
        return masks.contains { file.mode & $0 == $0 }
    }

    static let closedSentence =
        "The relay's user may not read and write this file of the store: chown it to that user, as the "
        + "folder is, and chmod 600."
}
