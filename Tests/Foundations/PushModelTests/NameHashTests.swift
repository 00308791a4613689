import PushModel
import Testing

@Suite struct NameHashTests {
    private static func lane(_ app: String, _ service: PushService, _ environment: Environment) -> LaneName? {
        ConfiguredName(app).map { LaneName(app: $0, service: service, environment: environment) }
    }

    private static let apps = (0..<2000).map { "app-\($0)-of-a-relay-with-many" } + ["a", "b", "ab", "ba"]

    @Test("Equal names have one hash, however their text came about")
    func equal() throws {
        for text in ["a", "acme-chat", "a-name-that-is-longer-than-fifteen"] {
            let apart = String(("x/" + text).split(separator: "/")[1])
            let (name, same) = (try #require(ConfiguredName(text)), try #require(ConfiguredName(apart)))
            for seed in [0, 1, -1, .max, .min] {
                #expect(name._rawHashValue(seed: seed) == same._rawHashValue(seed: seed))
            }
            let lane = LaneName(app: name, service: .fcm, environment: .sandbox)
            #expect(LaneName(lane.description)?._rawHashValue(seed: 7) == lane._rawHashValue(seed: 7))
        }
    }

    @Test("Lanes that differ in one part have different hashes")
    func spread() {
        let lanes = Self.apps.flatMap { app in
            [PushService.apns, .fcm].flatMap { service in
                Environment.allCases.compactMap { Self.lane(app, service, $0) }
            }
        }
        #expect(Set(lanes).count == Self.apps.count * 4)
        #expect(Set(lanes.map { $0._rawHashValue(seed: 3) }).count == lanes.count)
        // As a table of a few thousand places asks for them.
        #expect(Set(lanes.map { $0._rawHashValue(seed: 3) & 0x3FFF }).count > lanes.count / 2)
    }
}
