import NextcloudPush
import PushModel
import PushTesting
import Testing

/// Apps send what they have once more before they are answered.
@Suite("Calls of one Nextcloud device at one time", .timeLimit(.minutes(30)))
struct SameTimeTests {
    private let device = PeerUser.alice.device(1)

    @Test("Registrations of one phone at one time are all taken, first ones and renewals", arguments: [0, 1])
    func registrations(_ known: Int) async throws {
        let rig = try await NextcloudRelayRig.make(meeting: known + 8)
        let phone = device
        if known > 0 {
            async let first = rig.register(phone)
            async let met = registered(rig, 8)
            let answers = await met + [first.status]
            #expect(answers == Array(repeating: 200, count: 9))
        } else {
            #expect(await registered(rig, 8) == Array(repeating: 200, count: 8))
        }
        // What stands is one registration, whole.
        let pin = try #require(try await rig.pin(phone.identifier))
        let alert = try #require(try await rig.record(rig.keys.alert(phone.identifier)))
        let target = try #require(NextcloudTarget(body: alert.body))
        let last = (0..<8).map(token).first { target.isFor($0) }
        #expect(last.map { TokenHash(of: Secret($0.utf8)) } == pin.tokenHash)
    }

    @Test("An end and a registration at one time are both taken")
    func end() async throws {
        let rig = try await NextcloudRelayRig.make(meeting: 3)
        let phone = device
        async let first = rig.register(phone)
        async let second = rig.register(phone, token: token(1))
        async let gone = rig.unregister(phone)
        let answers = await (first.status, second.status, gone.status)
        #expect(answers.0 == 200 && answers.1 == 200)
        // Before both of them there was nothing to end.
        #expect([200, 403].contains(answers.2))
    }

    @Test("Another key that comes at the same time is a conflict, and never the one that stays")
    func otherKey() async throws {
        let rig = try await NextcloudRelayRig.make(meeting: 2)
        let (phone, forged) = (device, PeerUser.stranger.device(1))
        async let first = rig.register(phone)
        async let second = rig.register(forged)
        let answers = await [first.status, second.status]
        #expect(answers.sorted() == [200, 409])
    }

    private func token(_ number: Int) -> String { String(repeating: "C\(number)", count: 32) }

    private func registered(_ rig: NextcloudRelayRig, _ count: Int) async -> [Int] {
        let phone = device
        return await withTaskGroup(of: Int.self) { group in
            for number in 0..<count {
                let token = token(number)
                group.addTask { await rig.register(phone, token: token).status }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
    }
}
