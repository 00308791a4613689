import AdminIngress
import ArgumentParser
import AtRest
import PushModel
import WireFormats

/// `sealbell keys rotate-storage`: makes a new seal key, with which the running relay seals the whole store.
struct KeysRotateStorageCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "rotate-storage",
        abstract: "Seals the store with a new key while the relay runs.",
        discussion: """
            Adds a seal key to the key file. The running relay loads it within seconds, uses it for new \
            rows, and reseals the existing ones; this command shows the progress. Run again, it continues \
            where it stopped. If several relays share one database, copy the file to each of them; no relay \
            uses the new key before all have it. Old keys stay in the file until --drop-old removes them, \
            which it does only if no row needs them any more. Older backups still need them.
            """)

    /// Between two looks at the relay.
    private static let every = Duration.seconds(1)

    @Option(help: ArgumentHelp("The key file, instead of the one of the configuration.", valueName: "file"))
    var file: String?

    @Flag(help: "Removes the old keys from the file once they are no longer needed.")
    var dropOld = false

    @Option(help: ArgumentHelp("How long to watch; the relay continues afterwards.", valueName: "minutes"))
    var wait = 60

    @OptionGroup var options: ConfigurationOverrideOptions
    @OptionGroup var adminListener: AdminListenerOptions

    func validate() throws {
        guard (0...10_080).contains(wait) else { throw ValidationError("--wait: 0 to 10080 minutes.") }
    }

    func run(_ shell: Shell) async throws -> Ending {
        let path: String
        var adminListener = adminListener
        if let file {
            path = joinPath(shell.facts.workingDirectory, file)
        } else {
            let configuration = try shell.load(options.request(adminListener.server.file))
            path = configuration.store.keysFile
            adminListener.server.state = adminListener.server.state ?? configuration.state
        }
        let found = try Self.change(path) { () throws(KeyFileError) in try KeyFile.read(path) }
        let isServed = isServed(adminListener, shell)
        if isServed { try await expectFit(found, path, adminListener, shell) }
        let newest: UInt32
        if found.seal.count > 1 || dropOld {
            newest = found.seal[0].number
            let count = counted(found.seal.count, "seal key")
            shell.err("The file holds \(count); key \(newest) is the newest.")
        } else {
            newest = try add(path, shell)
        }
        guard isServed else {
            shell.err("No relay is running here. It will load the key and reseal the store when it starts.")
            return dropOld ? .unavailable : .done
        }
        let end = shell.world.instant() + .seconds(60 * wait)
        let last = try await watch(newest, path, adminListener, until: end, shell)
        guard Self.isOver(last) || found.seal.count == 1 && dropOld else {
            shell.err("The relay continues. Run this again to see the progress.")
            return .failed
        }
        if dropOld { return try await drop(path, adminListener, shell) }
        adminListener.show(last, shell) { _ in
            [
                "Everything is sealed with key \(newest). Only older backups still need the older keys: "
                    + "keep a copy of \(path) with those backups, then run this with --drop-old."
            ]
        }
        return .done
    }

    /// A relay of another store, such as a rehearsal, knows nothing of what this file's store needs: its key
    /// of the same number is another one.
    private func expectFit(
        _ keys: AtRestKeys, _ path: String, _ adminListener: AdminListenerOptions, _ shell: Shell
    ) async throws {
        let status = try await adminListener.ask(SealKeyDesk.path, shell)
        // A relay of an earlier version does not say.
        guard let name = status["store"]?.string, name != keys.storeName else { return }
        throw CommandFailure(
            .configuration,
            "\(path) does not open the store of the relay that was asked: its keys are another store's. Name "
                + "that relay's own key file with --file, or the relay of these keys with --at.")
    }

    private func add(_ path: String, _ shell: Shell) throws(CommandFailure) -> UInt32 {
        let rotated = try Self.change(path) { () throws(KeyFileError) in
            try KeyFile.change(path) { keys throws(KeyFileError) in
                // Another command was faster: its key will do.
                if keys.seal.count > 1 { return keys }
                guard let rotated = keys.rotated(shell.world) else { throw KeyFileError(.malformed) }
                return rotated
            }
        }
        let newest = rotated.seal[0].number
        shell.err("Added seal key \(newest) to \(path). Back the file up now.")
        return newest
    }

    private static func change(
        _ path: String, _ body: () throws(KeyFileError) -> AtRestKeys
    ) throws(CommandFailure) -> AtRestKeys {
        do throws(KeyFileError) { return try body() } catch {
            throw CommandFailure(
                error.code == .busy ? .failed : .configuration, "\(path): \(error.coded)")
        }
    }

    private func isServed(_ adminListener: AdminListenerOptions, _ shell: Shell) -> Bool {
        // Why none is found is told when the listener is asked; here it is enough that there is none.
        (try? adminListener.server.find(shell)) != nil
    }

    /// Asks the relay until it is done, or time is over; the last answer.
    private func watch(
        _ newest: UInt32, _ path: String, _ adminListener: AdminListenerOptions,
        until end: ContinuousClock.Instant, _ shell: Shell
    ) async throws -> JSONValue {
        let teller = ProgressTeller(shell, elsewhere: .lines)
        defer { teller.end() }
        while true {
            let now = try await adminListener.ask(SealKeyDesk.path, shell)
            let line = Self.line(now, newest, path)
            // It is asked for no more often than it may be told.
            teller.tell(line, stage: line)
            if now["refused"]?.bool == true {
                throw CommandFailure(
                    .configuration,
                    "The relay refuses \(path) because it does not open the store. Put the right file back.")
            }
            if Self.held(now).contains(Int64(newest)), Self.isOver(now) { return now }
            guard shell.world.instant() < end else { return now }
            try await shell.world.sleep(shell.world.instant() + Self.every)
        }
    }

    private static func held(_ status: JSONValue) -> [Int64] {
        (status["held"]?.array ?? []).compactMap(\.int64)
    }

    /// Whether all stands under one key. A relay that rests with several has only not begun yet.
    private static func isOver(_ status: JSONValue) -> Bool {
        let phase = status["phase"]?.string
        return phase == "done" || (phase == "resting" && held(status).count == 1)
    }

    private static func line(_ status: JSONValue, _ newest: UInt32, _ path: String) -> String {
        func count(_ name: String) -> Int64 { status[name]?.int64 ?? 0 }
        guard status["held"]?.array?.contains(where: { $0.int64 == Int64(newest) }) == true else {
            return "The relay has not loaded key \(newest) yet."
        }
        switch status["phase"]?.string {
        case "waiting":
            let others = counted(count("missing"), "other relay")
            return "Waiting for \(others) on this store: copy \(path) to each."
        case "elsewhere": return "Another relay on this store is sealing it with the new key."
        case "sealing", "done":
            let unopened =
                count("unopened") > 0 ? "; \(counted(count("unopened"), "does", "do")) not open" : ""
            let share = status["phase"]?.string == "sealing" ? " (\(count("percent")) %)" : ""
            return "\(counted(count("records"), "record"))\(share) and "
                + "\(counted(count("pushes"), "owed push", "owed pushes")) checked, "
                + "\(count("renewed")) resealed\(unopened)."
        default: return "The relay is about to use key \(newest)."
        }
    }

    /// First the store forgets that it needs the keys, then they leave the file: a crash in between leaves a
    /// file with too many keys, never one with too few.
    private func drop(_ path: String, _ adminListener: AdminListenerOptions, _ shell: Shell) async throws
        -> Ending
    {
        let answer = try await adminListener.ask(SealKeyDesk.releasePath, shell) { _ in }
        // The relay has released all but the one that it seals with; which of them this file still has, it
        // alone knows: the relay may read a copy.
        guard let sealing = answer["sealing"]?.int64 else {
            throw CommandFailure(
                .unavailable, "The admin listener's answer is not from a relay of this version.")
        }
        var dropped: [UInt32] = []
        _ = try Self.change(path) { () throws(KeyFileError) in
            try KeyFile.change(path) { keys throws(KeyFileError) in
                dropped = keys.seal.map(\.number).filter { Int64($0) < sealing }
                guard let rest = keys.without(dropped) else { throw KeyFileError(.malformed) }
                return rest
            }
        }
        shell.out(adminListener.json ? Self.json(dropped, path) : Self.words(dropped, path))
        return .done
    }

    private static func words(_ dropped: [UInt32], _ path: String) -> String {
        guard !dropped.isEmpty else { return "\(path) had no older key." }
        let numbers = dropped.map(String.init).joined(separator: ", ")
        return "Dropped seal key\(dropped.count == 1 ? "" : "s") \(numbers) from \(path)."
    }

    private static func json(_ dropped: [UInt32], _ path: String) -> String {
        var json = JSONWriter()
        json.beginObject()
        json.beginArray("released")
        for number in dropped { json.int(Int64(number)) }
        json.endArray()
        json.member("file", path)
        json.endObject()
        return String(decoding: json.bytes, as: UTF8.self)
    }
}
