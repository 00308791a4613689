import PushModel
import PushTesting
import SessionPush
import Simulators
import SwarmIngress
import Synchronization
import Testing

@Suite("Messages that the store cannot take yet", .timeLimit(.minutes(30)))
struct SwarmKeepingTests {
    /// What a test's store was asked for, and whether it is out.
    private final class Store: Sendable {
        private let state = Mutex((isOut: true, asked: 0, taken: [String]()))

        func take(_ notice: StorageNotice) -> SwarmIngress.Taken {
            state.withLock { state in
                state.asked += 1
                if state.isOut { return .later }
                state.taken.append(notice.hashText)
                return .taken
            }
        }

        func comeBack() { state.withLock { $0.isOut = false } }
        var asked: Int { state.withLock(\.asked) }
        var taken: [String] { state.withLock(\.taken) }
    }

    @Test("They are kept until it can, whatever their number, and each is taken once")
    func kept() async throws {
        let rig = try await SwarmRig(SessionNetworkConfiguration(swarms: [5]))
        let account = try await rig.account()
        let store = Store()
        let limits = changing(SwarmRig.limits) { $0.workers = 4 }
        try await rig.run(try rig.ingress(limits) { store.take($0) }) {
            try await rig.shown(1, at: [0])
            for number in 0..<20 { rig.network.store(account.message(number, lasts: .seconds(600))) }
            try await asked(for: "many attempts") { store.asked > 40 }
            #expect(store.taken.isEmpty)
            store.comeBack()
            try await asked(for: "all messages") { store.taken.count == 20 }
            #expect(Set(store.taken).count == 20)
        }
    }

    @Test("One that expires meanwhile is given up, and so are all when the link stops")
    func givenUp() async throws {
        let rig = try await SwarmRig(SessionNetworkConfiguration(swarms: [5]))
        let account = try await rig.account()
        let store = Store()
        let limits = changing(SwarmRig.limits) { $0.workers = 1 }
        try await rig.run(try rig.ingress(limits) { store.take($0) }) {
            try await rig.shown(1, at: [0])
            rig.network.store(account.message(1, lasts: .seconds(-1)))
            rig.network.store(account.message(2, lasts: .seconds(600)))
            // The one worker has come to the second.
            try await asked(for: "attempts") { store.asked > 5 }
        }
        #expect(store.taken.isEmpty)
    }
}

extension SwarmAccount {
    fileprivate func message(_ number: Int, lasts: Duration) -> StorageNotice {
        let known = message(number)
        return StorageNotice(
            account: id, hash: known.hash.reveal { Secret(copying: $0) }, namespace: 0,
            timestamp: known.timestamp, expiry: World.live.now() + lasts, data: nil)
    }
}
