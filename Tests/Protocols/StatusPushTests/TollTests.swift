import PushModel
import PushTesting
import Secp256k1Keys
import StatusPush
import Testing

@Suite("What strangers may use up at a Status relay", .timeLimit(.minutes(30)))
struct TollTests {
    private static let server = samplePair(1)

    /// A box that does not open, signed by a key that nobody has seen.
    private static func junk(_ number: Int) -> Secret {
        let box = (0..<512).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ number) }
        return MetadataMessage.wrap(Secret(box), .registration, by: samplePair(UInt64(1_000 + number)))
    }

    @Test(
        "Boxes that do not open cost others nothing, and are met with silence as the text has it",
        arguments: [StatusPolicy.Compatibility.standard, .statusGo])
    func junk(_ compatibility: StatusPolicy.Compatibility) async throws {
        let policy = StatusPolicy(compatibility: compatibility)
        try await StatusRig(identity: Self.server, policy: policy, newcomers: 100).running { rig in
            var answers = 0
            for number in 0..<110 {
                if await rig.receive(Self.junk(number)) != nil { answers += 1 }
            }
            // Deployed servers answer each; as they do, a few are.
            #expect(answers == (compatibility == .standard ? 0 : StatusAllowances.unopenedPerMinute))
            let client = SampleClient(samplePair(2), at: Self.server.point)
            let phone = "a6712c96-9eb0-4df5-bc7c-041602a28ea7"
            #expect(await client.fault(client.registration(1, phone), rig) == nil)
        }
    }

    @Test("A key uses up its own share, unanswered then, and no other's")
    func ownShare() async throws {
        try await StatusRig(identity: Self.server).running { rig in
            let noisy = SampleClient(samplePair(2), at: Self.server.point)
            let share = StatusAllowances.ownRegistrationsPerMinute
            for version in 1...share {
                #expect(await noisy.fault(noisy.registration(UInt64(version)), rig) == nil)
            }
            let wrapped = noisy.wrapped(noisy.registration(UInt64(share + 1)), rig.world)
            #expect(await rig.receive(wrapped) == nil)
            let other = SampleClient(samplePair(3), at: Self.server.point)
            #expect(await other.fault(other.registration(1), rig) == nil)
            rig.pass(.seconds(60))
            #expect(await rig.receive(wrapped) != nil)
        }
    }

    @Test("Who is registered is not kept out by newcomers, who hear that the relay cannot take them now")
    func newcomers() async throws {
        let rig = try await StatusRig(identity: Self.server, newcomers: 2)
        try await rig.running { rig in
            let known = SampleClient(samplePair(2), at: Self.server.point)
            #expect(await known.fault(known.registration(1), rig) == nil)
            for number in 0..<3 {
                let new = SampleClient(samplePair(UInt64(10 + number)), at: Self.server.point)
                let fault = await new.fault(new.registration(1), rig)
                #expect(fault == (number == 0 ? nil : .internalError))
                // Nor may they leave rows behind.
                let end = await new.fault(new.end(2), rig)
                #expect(end == (number == 0 ? nil : .internalError))
            }
            #expect(await known.fault(known.registration(2), rig) == nil)
            #expect(await known.fault(known.end(3), rig) == nil)
        }
    }
}
