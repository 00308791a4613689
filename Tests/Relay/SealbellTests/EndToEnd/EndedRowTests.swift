import Foundation
import NextcloudPush
import Primitives
import PushModel
import SQLiteStore
import SessionPush
import StatusPush
import Testing
import WebClient
import WireFormats
import ZulipPush

@testable import AtRest
@testable import RelayProgram

/// Every row of the file, opened with the key, whatever space it is in: what a thief of both reads.
@Suite("What the store's rows keep of a device that has left", .timeLimit(.minutes(30)))
struct EndedRowTests {
    enum Party: CaseIterable { case zulip, nextcloud, session, status }

    /// All records as they open, with their spaces.
    private static func rows(_ stage: RelayStage) async throws -> [(space: String, plain: Data)] {
        let keys = try KeyFile.read(stage.configuration().store.keysFile)
        let sealer = Sealer(keys: keys, random: RandomStream(.live))
        return try await stage.opened { store in
            var rows: [(String, Data)] = []
            var place: StoredPlace? = []
            while let after = place {
                let page = try await store.records(after: after, limit: 100)
                for row in page.rows {
                    let body = row.body.isEmpty ? Secret([]) : try SealedStore.open(row, with: sealer)
                    rows.append((row.space, body.reveal { Data($0) }))
                }
                place = page.next
            }
            return rows
        }
    }

    /// What is looked for of a device, and whether it is still registered.
    private struct Traces {
        var left: [Canary] = []
        var staying: [Canary] = []

        mutating func add(_ canaries: [Canary], _ number: Int) {
            if number == 2 { staying += canaries } else { left += canaries }
        }
    }

    /// Registers three devices: the first leaves by the protocol's own way where a device has one, the second
    /// is forgotten by its address, and the third stays.
    private static func play(_ which: Party, _ relay: RunningRelay) async throws -> Traces {
        let person = try Operator(relay)
        func forget(_ token: String) async throws {
            #expect(try await person.json("forget", "address", input: token + "\n")["devices"]?.int64 == 1)
        }
        var traces = Traces()
        switch which {
        case .zulip:
            let server = try await relay.server()
            for (number, kind) in [TokenKind.apns, .fcm, .fcm].enumerated() {
                let phone = try await relay.phone(kind, of: server)
                if number < 2 { try await forget(phone.token) }
                traces.add([Canary("token", phone.token)], number)
            }
        case .nextcloud:
            let cloud = try TestCloud(relay)
            for number in 0..<3 {
                let phone = try await cloud.phone(.talkAndroid)
                if number == 0 { _ = try await cloud.unregister(phone) }
                if number == 1 { try await forget(phone.addresses[0]) }
                traces.add([Canary("token", phone.addresses[0])], number)
            }
        case .session:
            for number in 0..<3 {
                let phone = try SessionPhone(number == 0 ? .apns : .firebase)
                #expect(try await phone.subscribe(at: relay) == [.added])
                if number == 0 { #expect(try await phone.leave(at: relay) == [.removed(wasThere: true)]) }
                if number == 1 { try await forget(phone.token) }
                let account = phone.account.bytes.reveal { Canary("account", Array($0)) }
                traces.add([Canary("token", phone.token), account], number)
            }
        case .status:
            try await relay.listens()
            let server = try relay.statusKey()
            for number in 0..<3 {
                try await StatusMember.with(relay.stage, number == 0 ? .apns : .fcm) { member in
                    #expect(try await member.register(at: [server]) == [.registered(server)])
                    if number == 0 { _ = try await member.leave() }
                    if number == 1 { try await forget(member.token) }
                    traces.add([Canary("token", member.token)], number)
                }
            }
        }
        return traces
    }

    private static func text(_ which: Party) -> String {
        switch which {
        case .zulip: RelayStage.text
        case .nextcloud: RelayStage.nextcloud()
        case .session: RelayStage.session()
        case .status: RelayStage.status()
        }
    }

    @Test("Neither its token nor its account, in any space", arguments: Party.allCases)
    func rows(_ which: Party) async throws {
        try await RelayStage.with(Self.text(which)) { stage in
            var traces = Traces()
            try await stage.run { traces = try await Self.play(which, $0) }
            let rows = try await Self.rows(stage)
            func holders(_ canary: Canary) -> [String] {
                rows.filter { canary.isIn($0.plain) }.map(\.space)
            }
            for canary in traces.left { #expect(holders(canary).isEmpty, "\(canary.name)") }
            for canary in traces.staying { #expect(!holders(canary).isEmpty, "the search finds") }
        }
    }
}
