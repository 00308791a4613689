#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Who else could put a file of his own in the place of one that the configuration names, or read a secret as
/// its owner. Warnings: a relay starts all the same.
struct OwnerChecks {
    let configuration: RelayConfiguration
    var user: uid_t = geteuid()
    /// `nil` where nothing of that path is.
    var facts: (String) -> FileFacts? = FileFacts.of

    init(_ configuration: RelayConfiguration) { self.configuration = configuration }

    func check() -> [Finding] {
        guard !configuration.isSandbox else { return [] }
        return folders() + owners()
    }

    private func folders() -> [Finding] {
        let files = [configuration.file].compactMap(\.self) + configuration.files.map(\.file)
        var seen: Set<String> = []
        return files.map(folder(of:)).filter { seen.insert($0).inserted }.compactMap { folder in
            // With the sticky bit (01000) nobody removes what is another's.
            guard let mode = facts(folder)?.mode, mode & 0o002 != 0, mode & 0o1000 == 0 else { return nil }
            return .warning(
                .files, folder, "Every user may replace the files in this folder; run chmod o-w on it.")
        }
    }

    private func owners() -> [Finding] {
        let relay = facts(configuration.state)?.owner
        // root looks for a relay of which nothing says yet whose it will be.
        if user == 0, relay == nil { return [] }
        let trusted = Set([0, user] + (relay.map { [$0] } ?? []))
        return configuration.files.filter(\.content.isSecret).compactMap { file in
            guard let owner = facts(file.file)?.owner, !trusted.contains(owner) else { return nil }
            return .warning(
                .files, "\(file.path) (\(file.file))",
                "This secret belongs to another user, who can read and replace it; chown it to root or to "
                    + "the relay's user.")
        }
    }
}
