import ArgumentParser
import PushModel

/// `sealbell store`: the database beside the relay.
struct StoreCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "store", abstract: "Copies a store to another database, and checks one.",
        subcommands: [
            StoreCopyCommand.self, StoreCheckCommand.self, StoreReopenCommand.self,
            StoreTrustClockCommand.self
        ])
}

/// `sealbell store copy`.
struct StoreCopyCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "copy",
        abstract: "Moves everything in a store into an empty one.",
        discussion: """
            Copies registrations, owed pushes and the marks of repeats, sealed as they are: the relay on \
            the other store needs the same key file. Stop every relay on the source first. From the first \
            row on no relay starts on the source, and none on the target before it is complete. To continue \
            a copy that was interrupted, give the same command again. At the end both stores are read and \
            compared.
            """)

    @Option(help: ArgumentHelp("The store as it is: sqlite:PATH or postgresql://…", valueName: "url"))
    var from: String

    @Option(help: ArgumentHelp("The new one, empty or not there yet.", valueName: "url"))
    var to: String

    @OptionGroup var password: DatabasePasswordOption

    @Flag(help: "Answer in JSON.")
    var json = false

    func run(_ shell: Shell) async throws -> Ending {
        let from = try StorePlace(from, shell.facts, passwordFile: password.passwordFile)
        let to = try StorePlace(to, shell.facts, passwordFile: password.passwordFile)
        guard from != to else { throw CommandFailure(.usage, "Source and target are the same store.") }
        let source = try await from.hold(makes: false, shell.world)
        let target: StorePlace.Held
        do throws(CommandFailure) { target = try await to.hold(makes: true, shell.world) } catch {
            await source.close()
            throw error
        }
        let teller = ProgressTeller(shell, elsewhere: .lines)
        let copier = StoreCopier(
            source: source.store, target: target.store, world: shell.world, report: teller.tell)
        let outcome: Result<StoreCopier.Result, StoreCopier.Refusal>
        do throws(StoreCopier.Refusal) { outcome = .success(try await copier.run()) } catch {
            outcome = .failure(error)
        }
        await source.close()
        await target.close()
        teller.end()
        switch outcome {
        case .success(let result):
            try report(result, from, to, shell)
            return .done
        case .failure(let refusal): throw Self.failure(refusal, from, to)
        }
    }

    private func report(
        _ result: StoreCopier.Result, _ from: StorePlace, _ to: StorePlace, _ shell: Shell
    ) throws {
        if json {
            let digest = result.digest
            shell.out(
                try jsonText([
                    "records": "\(digest.records.count)", "records_digest": digest.records.text,
                    "pushes": "\(digest.pushes.count)", "pushes_digest": digest.pushes.text,
                    "marks": "\(digest.marks.count)", "marks_digest": digest.marks.text,
                    "moved": "\(result.moved)"
                ]))
            return
        }
        if result.wasWhole {
            shell.out("\(to.name) was filled from \(from.name) before; nothing was changed.")
            return
        }
        result.digest.lines.forEach(shell.out)
        shell.out(
            "\(to.name) holds what \(from.name) held. Point store.url at it, with the same key file; "
                + "no relay starts on the old one any more.")
    }

    static func failure(
        _ refusal: StoreCopier.Refusal, _ from: StorePlace, _ to: StorePlace
    ) -> CommandFailure {
        switch refusal {
        case .store(let error, let isSource): (isSource ? from : to).failure(error)
        case .served(let isSource):
            CommandFailure(
                .unavailable,
                "\((isSource ? from : to).name): A relay serves from it. Stop it, wait 20 s, ask again.")
        case .notEmpty:
            CommandFailure(
                .failed,
                "\(to.name) holds something else. Name a database that is empty; nothing was changed.")
        case .copiedBefore:
            CommandFailure(
                .failed,
                "\(from.name) was copied into another store, which owes what it owed. If that one is gone: "
                    + "sealbell store reopen.")
        case .halfOfCopy:
            CommandFailure(
                .failed, "\(from.name) is half of a copy itself. Finish that one first, from its own source.")
        case .differs:
            CommandFailure(
                .failed,
                "\(to.name) does not read back as \(from.name): look at its disk, empty it, and copy again. "
                    + "The source is as it was.")
        }
    }
}

extension StoreDigest {
    /// One line for each kind of rows.
    var lines: [String] {
        [("records", records), ("owed pushes", pushes), ("marks", marks), ("settings", settings)].map {
            "\($0): \($1.count), digest \($1.text)"
        }
    }
}

/// `sealbell store reopen`.
struct StoreReopenCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "reopen",
        abstract: "Lets relays start again on a store that was copied to another one.",
        discussion: """
            Use it to abandon a copy. Both stores owe the same pushes: never start relays on both. This \
            store does not know devices that registered at the other one.
            """)

    @Argument(help: ArgumentHelp("The store: sqlite:PATH or postgresql://…", valueName: "url"))
    var url: String

    @OptionGroup var password: DatabasePasswordOption

    func run(_ shell: Shell) async throws -> Ending {
        let place = try StorePlace(url, shell.facts, passwordFile: password.passwordFile)
        let held = try await place.hold(makes: false, shell.world)
        let was: Bool
        do throws(StoreError) {
            was = try await held.store.settings(StoreSetting.copiedTo)[StoreSetting.copiedTo] != nil
            if was {
                try await held.store.bar(false)
                try await held.store.put(setting: StoreSetting.copiedTo, to: nil)
            }
        } catch {
            await held.close()
            throw place.failure(error)
        }
        await held.close()
        shell.out(
            was
                ? "Relays may start on \(place.name) again. Empty the other store before any starts there."
                : "\(place.name) was not copied to another store; nothing was changed.")
        return .done
    }
}
