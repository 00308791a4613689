import AtRest
import PushModel
import PushTesting
import Testing

@testable import RelayProgram

@Suite("What a start says of its store", .timeLimit(.minutes(30)))
struct StoreOpeningTests {
    @Test("A store that another process has ends a start as a state directory in use does")
    func inUse() async throws {
        let folder = try TemporaryFolder()
        let (database, keys) = (folder.path + "/relay.sqlite", folder.path + "/storage.keys")
        _ = try KeyFile.create(keys, .live)
        let held = try await StorePlace.sqlite(path: database).hold(makes: true, .live)
        let store = StoreConfiguration(engine: .sqlite(path: database), keysFile: keys)
        let taken = await #expect(throws: CommandFailure.self) { try await start(store) }
        #expect(taken?.status == .unavailable && taken?.lines.first?.contains("Stop it") == true)
        // The code stands behind the sentence, as the guides have it.
        #expect(taken?.lines.first?.hasSuffix(" [inUse]") == true)
        await held.close()
        try await start(store)
        // What no waiting mends is still the configuration's.
        _ = try KeyFile.create(folder.path + "/others.keys", .live)
        let foreign = StoreConfiguration(
            engine: .sqlite(path: database), keysFile: folder.path + "/others.keys")
        let refused = await #expect(throws: CommandFailure.self) { try await start(foreign) }
        #expect(refused?.status == .configuration)
        #expect(refused?.lines.first?.hasSuffix(" [wrongKey]") == true)
    }

    @Test("A file of the store that the relay's user may not write is found, by that user and by root")
    func closedFiles() {
        func closed(
            as user: UInt32, _ files: [String: FileFacts], folder owner: UInt32 = 990
        ) -> String? {
            var looked = DatabaseFiles("/state/relay.sqlite")
            looked.user = user
            looked.facts = { $0 == "/state" ? .init(owner: owner, mode: 0o40700) : files[$0] }
            return looked.closed
        }
        let (database, log) = ("/state/relay.sqlite", "/state/relay.sqlite-wal")
        let own = FileFacts(owner: 990, mode: 0o100600)
        let roots = FileFacts(owner: 0, mode: 0o100644)
        for user: UInt32 in [990, 0] {
            #expect(closed(as: user, [:]) == nil, "there is no store yet")
            #expect(closed(as: user, [database: own, log: own]) == nil)
            #expect(closed(as: user, [database: roots]) == database, "a backup that root has restored")
            #expect(closed(as: user, [database: own, log: roots]) == log)
            #expect(closed(as: user, [database: .init(owner: 990, mode: 0o100400)]) == database)
            #expect(closed(as: user, [database: .init(owner: 0, mode: 0o100660)]) == nil, "by its group")
        }
        #expect(closed(as: 0, [database: roots], folder: 0) == nil, "a relay that is root's")
        var looked = DatabaseFiles(database)
        (looked.user, looked.facts) = (990, { _ in roots })
        let told = StoreChecks.rights(looked)
        #expect(told.map(\.severity) == [.fault] && told.map(\.subject) == [database])
    }

    private func start(_ store: StoreConfiguration) async throws {
        let open = try await OpenStore.open(
            store, limits: LimitsConfiguration(), synchronous: .full, world: .live, journal: .silent)
        await open.close()
    }
}
