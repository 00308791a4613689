import AdminIngress
import ArgumentParser
import AtRest
import PostgresStore
import PushModel
import SQLiteStore

/// `sealbell store check`.
struct StoreCheckCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Reads a store: whether it is whole, and whether its rows open with the key file.",
        discussion: """
            Changes nothing, beside a running relay or without one. Without --all it opens a sample of the \
            rows; with --all it opens every row and prints counts and digests, which are equal for two \
            stores with the same rows. Ends with 1 when a row or the database is damaged, 78 when the key \
            file does not fit or the schema is newer.
            """)

    @Argument(help: ArgumentHelp("The store, instead of the one of the configuration.", valueName: "url"))
    var url: String?

    @Option(help: ArgumentHelp("The key file, instead of the one of the configuration.", valueName: "file"))
    var keys: String?

    @Flag(help: "Opens every row.")
    var all = false

    @OptionGroup var password: DatabasePasswordOption
    @OptionGroup var options: ConfigurationOptions

    @Flag(help: "Answer in JSON.")
    var json = false

    func run(_ shell: Shell) async throws -> Ending {
        var place = try url.map { (text) throws(CommandFailure) in
            try StorePlace(text, shell.facts, passwordFile: password.passwordFile)
        }
        var keyFile = keys.map { joinPath(shell.facts.workingDirectory, $0) }
        if place == nil || keyFile == nil {
            let configuration = try shell.load(options.request())
            place = try place ?? StorePlace(configuration.store.engine)
            keyFile = keyFile ?? configuration.store.keysFile
        }
        guard let place, let keyFile else { return .software }
        let opened: AtRestKeys
        do throws(KeyFileError) { opened = try KeyFile.read(keyFile) } catch {
            throw CommandFailure(.configuration, "\(keyFile): \(error.coded)")
        }
        var findings: [Finding]
        do throws(StoreError) {
            findings = try await look(place, opened, keyFile, shell)
        } catch {
            throw place.failure(error)
        }
        let report = Findings(findings)
        try report.report(shell, json: json)
        let isForeign = findings.contains { $0.area == .keys && $0.severity == .fault }
        return isForeign ? .configuration : report.status
    }

    private func look(
        _ place: StorePlace, _ keys: AtRestKeys, _ keyFile: String, _ shell: Shell
    ) async throws(StoreError) -> [Finding] {
        let teller = ProgressTeller(shell, elsewhere: .nothing)
        defer { teller.end() }
        if all { teller.tell("The database looks through its own files.", stage: "structure") }
        var findings = try await place.structure(shell.world, isWhole: all)
        guard let rows = try await place.rows(shell.world) else {
            return findings + [.good(.store, place.name, "There is no store yet.")]
        }
        switch KeyFit.of(keys, try await rows.settings(StoreSetting.check), shell.world) {
        case .fits: findings.append(.good(.keys, keyFile, "The keys open this store."))
        case .unused: findings.append(.good(.keys, keyFile, "Nothing has been sealed in this store yet."))
        case .foreign:
            // Every row would be told as damaged.
            return findings + [
                .fault(
                    .keys, keyFile,
                    "These keys do not open this store: put back the newest copy of the file that sealed it.")
            ]
        }
        let check = RowCheck(keys, shell.world, services: shell.hosting.messages)
        var look = StoreLook(rows: rows, check: check, keyFile: keyFile)
        if all { try await look.all(teller.tell) } else { try await look.sample(shell.world) }
        findings += look.findings(place.name)
        guard all, look.faults.isEmpty else { return findings }
        let cutoff = shell.world.now() - .seconds(600)
        let count = look.rowCount
        let digest = try await StoreDigest.of(rows, cutoff: cutoff) { done, _ in
            teller.tell(WorkDone(count: done, words: "rows counted", whole: .rows(count)))
        }
        return findings + digest.lines.map { .good(.store, place.name, $0) }
    }
}

extension StorePlace {
    /// Every row, read without writing; `nil` in a database without a store.
    func rows(_ world: World) async throws(StoreError) -> (any StoredRows)? {
        switch self {
        case .sqlite(let path): return try SQLiteReader(path, world.instant)
        case .postgres(let address):
            let guest = try await Self.guest(address, world)
            return guest.hasSchema ? guest : nil
        }
    }

    /// A connection that looks and makes nothing.
    static func guest(_ address: PostgresAddress, _ world: World) async throws(StoreError) -> PostgresStore {
        var limits = PostgresLimits()
        limits.connections = 2
        let owner = OwnerID(Digest16(high: world.random(), low: world.random()))
        return try await PostgresStore(address, owner: owner, limits: limits, world: world, isGuest: true)
    }

    /// What the engine itself says of its files.
    ///
    /// - Parameter isWhole: whether it may take as long as it needs.
    func structure(_ world: World, isWhole: Bool) async throws(StoreError) -> [Finding] {
        switch self {
        case .sqlite(let path):
            let span = Duration.seconds(isWhole ? 3_600 : 20)
            let seen = try SQLiteInspection.look(at: path, within: span, world.instant)
            let owed = seen.owed.map { StoreChecks.sum($0.rows, $0.bytes) + "." }
            let counted = owed.map { Finding.good(.store, path, $0) }
            let bar = seen.bar.map { Finding.warning(.store, path, StoreError($0).coded) }
            return [StoreChecks.soundness(seen, path, span)] + [bar, counted].compactMap(\.self)
        case .postgres(let address):
            let span = Duration.seconds(isWhole ? 3_600 : 20)
            let seen = try await PostgresInspection.look(at: address, within: span)
            if case .half = seen.schema { throw StoreError(.halfMigrated) }
            let owed = seen.owed.map { StoreChecks.sum($0.rows, $0.bytes) + "." }
            let counted = owed.map { Finding.good(.store, address.description, $0) }
            return [PostgresChecks.reached(address, seen)] + (counted.map { [$0] } ?? [])
        }
    }
}
