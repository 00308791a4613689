import NextcloudPush
import PushModel
import PushTesting
import Testing

/// What a relay tells of identifiers without a row: for each server, and each identifier once.
@Suite("Shares of what is told as unknown", .timeLimit(.minutes(30)))
struct UnknownShareTests {
    private let alice = PeerUser.alice

    @Test("One caller's identifiers use up nobody else's share")
    func ofClients() async throws {
        let rig = try await NextcloudRelayRig.make()
        #expect(await rig.notify((1...20).map { alice.device($0).entry($0) }, from: 7).unknown?.count == 10)
        let mine = alice.device(99)
        #expect(await rig.notify([mine.entry(1)], from: 8).unknown == [mine.id])
    }

    @Test("An identifier that a call names often counts once, and is named with each of its entries")
    func once() async throws {
        let rig = try await NextcloudRelayRig.make(policy: NextcloudPolicy(unknownPerAnswer: 3))
        let devices = (1...3).map { alice.device($0) }
        let answer = await rig.notify(devices.flatMap { device in (1...5).map { device.entry($0) } })
        #expect(Set(answer.unknown ?? []) == Set(devices.map(\.id)) && answer.failed == 15)
    }

    @Test("What was told is told again at no cost: a server may not have heard it")
    func again() async throws {
        let rig = try await NextcloudRelayRig.make()
        let device = alice.device(1)
        for number in 1...15 {
            #expect(await rig.notify([device.entry(number)]).unknown == [device.id], "call \(number)")
        }
        let others = (2...11).map { alice.device($0).entry($0) }
        #expect(await rig.notify(others).unknown?.count == 9, "one of ten was used")
    }
}
