import PushModel
import PushTesting
import SessionPush
import Testing
import WireFormats

/// The shared vectors of the swarm: each case is an argument, and each section prints a line.
@Suite("Session vectors of the swarm", .timeLimit(.minutes(30)))
struct SwarmVectorTests {
    /// `nil` when a directory was named that has no such file.
    static let main = Result { try VectorFile.load("session.json").map(SwarmVectors.init) }

    @Test("A case of the vectors holds", arguments: try SwarmVectorTests.main.get()?.set.cases ?? [])
    func holds(_ vector: VectorCase) async throws {
        let runner = try #require(try Self.main.get())
        #expect(try await runner.set.run(vector) { try runner.holds($0) ? $0.rows : 0 })
    }

    @Test("Each section of the swarm has cases")
    func sections() throws {
        #expect(
            try Self.main.get()?.set.lacks(["monitor", "storage_push", "notifier_keys", "swarm", "oxenmq"])
                ?? [] == [])
    }

    @Test("Published points and choices of the storage server hold")
    func published() throws {
        guard let runner = try Self.main.get() else { return }
        let published = try #require(runner.json["published"])
        for row in published["swarm_space"]?["cases"]?.array ?? [] {
            let pair = try #require(row.array)
            let account = try Hex.decode(try #require(pair[0].string).utf8)
            let point = account.withUnsafeBytes { SwarmRing.point(of: $0) }
            #expect(String(point) == pair[1].string)
        }
        let pick = try #require(published["swarm_pick"])
        let map = SwarmMap((pick["ids"]?.array ?? []).compactMap { $0.string.flatMap { UInt64($0) } })
        for row in pick["cases"]?.array ?? [] {
            let pair = try #require(row.array)
            let text = try #require(pair[0].string)
            let point = try #require(UInt64(text))
            #expect(map.swarm(of: point).map(String.init) == pair[1].string)
        }
    }

    @Test("An arc holds exactly the points that its swarm is nearest to")
    func arcs() {
        for round in 0..<200 {
            let count = round % 9 + 1
            let isSmall = round.isMultiple(of: 2)
            func number() -> UInt64 { isSmall ? .random(in: 0..<64) : .random(in: .min ... .max) }
            let map = SwarmMap((0..<count).map { _ in number() })
            for _ in 0..<200 {
                let point = number()
                let holders = map.ids.filter { map.arc(of: $0)?.contains(point) == true }
                #expect(holders == [map.swarm(of: point)], "\(map.ids) at \(point)")
            }
        }
    }
}
