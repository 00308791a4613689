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
        await held.close()
        try await start(store)
        // What no waiting mends is still the configuration's.
        _ = try KeyFile.create(folder.path + "/others.keys", .live)
        let foreign = StoreConfiguration(
            engine: .sqlite(path: database), keysFile: folder.path + "/others.keys")
        let refused = await #expect(throws: CommandFailure.self) { try await start(foreign) }
        #expect(refused?.status == .configuration)
    }

    private func start(_ store: StoreConfiguration) async throws {
        let open = try await OpenStore.open(
            store, limits: LimitsConfiguration(), synchronous: .full, world: .live, journal: .silent)
        await open.close()
    }
}
