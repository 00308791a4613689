import AtRest
import PostgresStore
import PushModel

/// What the doctor sees of a store on PostgreSQL: whether it answers, whether its commits last, whether the
/// keys open it, what is owed, and who else lives there. Nothing is written.
struct PostgresChecks {
    /// Of counting what is owed.
    private static let span = Duration.seconds(20)

    let configuration: RelayConfiguration
    let world: World

    init(_ configuration: RelayConfiguration, _ world: World) {
        self.configuration = configuration
        self.world = world
    }

    func check() async -> [Finding] {
        guard case .postgres(let url, let passwordFile) = configuration.store.engine else { return [] }
        let address: PostgresAddress
        do throws(CommandFailure) { address = try StorePlace.address(url, passwordFile) } catch {
            return [.fault(.store, "store.url", error.lines.joined(separator: " "))]
        }
        do throws(StoreError) { return try await look(address) } catch {
            return [.fault(.store, address.description, error.coded)]
        }
    }

    private func look(_ address: PostgresAddress) async throws(StoreError) -> [Finding] {
        let seen = try await PostgresInspection.look(at: address, within: Self.span)
        var findings = [Self.reached(address, seen)]
        switch seen.schema {
        case .absent, .older:
            let made =
                seen.schema == .absent ? "There is no store yet; it is made" : "The schema is brought up"
            return findings + [.good(.store, address.description, made + " at the next start.")]
        case .half:
            return findings + [.fault(.store, address.description, StoreError(.halfMigrated).coded)]
        case .newer:
            findings.append(
                .warning(
                    .store, address.description,
                    "A newer Sealbell has changed the schema; this one still works on it. Update it soon."))
        case .current: break
        }
        let guest = try await StorePlace.guest(address, world)
        let outcome: Result<[Finding], StoreError>
        do throws(StoreError) { outcome = .success(try await company(guest, address)) } catch {
            outcome = .failure(error)
        }
        await guest.close()
        let living = try outcome.get()
        let checks = StoreChecks(configuration, world)
        let isServed = living.first?.sentence != Self.alone
        guard !living.contains(where: { $0.severity == .fault }) else {
            // Copied elsewhere, or half of a copy: what it owes is owed elsewhere, or not yet.
            return findings + living + checks.keys(seen.checks)
        }
        return findings + living + checks.keys(seen.checks) + checks.owed(seen.owed, isServed: isServed)
            + StoreChecks.clock(seen.lastTime, now: world.now())
    }

    private static let alone = "No running relay uses it."

    /// Who else is there, and whether the store may be used at all.
    private func company(
        _ guest: PostgresStore, _ address: PostgresAddress
    ) async throws(StoreError) -> [Finding] {
        let living = try await guest.livingOwners().count
        var findings: [Finding] = [
            .good(
                .store, address.description,
                living == 0 ? Self.alone : "Running relays that use it: \(living).")
        ]
        for (name, code) in [
            (StoreSetting.copiedTo, StoreError.Code.moved), (StoreSetting.filledFrom, .unfinished)
        ] where try await guest.setting(name) != nil {
            findings.append(.fault(.store, address.description, StoreError(code).coded))
        }
        return findings
    }

    /// Whether it answers, takes writes, and waits for the disk.
    static func reached(_ address: PostgresAddress, _ seen: PostgresInspection) -> Finding {
        let name = address.description
        guard seen.isWritable else {
            return .fault(.store, name, "It answers but accepts no writes: none of its hosts is a primary.")
        }
        guard seen.durability.isEnough else {
            return .fault(.store, name, StoreError(.notDurable).coded)
        }
        let waits =
            seen.durability.standbys.isEmpty
            ? "its own disk; no standby is named" : "its disk and its standby"
        return .good(
            .store, name, "PostgreSQL \(seen.serverVersion) answers, and a commit waits for \(waits).")
    }
}
