import PushModel
import PushTesting
import SessionPush
import Testing
import WireFormats

/// A group is one account, and each of its members signs with a key of its own.
@Suite("Groups at a Session relay", .timeLimit(.minutes(30)))
struct GroupTests {
    private let group: PeerAccount

    init() throws { group = try PeerAccount(seed: 2, prefix: 3) }

    private func error(_ answer: JSONValue) -> Int64? { answer["error"]?.int64 }

    /// What a member sends who has this number, from a phone of its own.
    private func call(_ member: UInt8, phone: Int = 0) throws -> PeerCall {
        let signer = try PeerAccount(seed: member, prefix: 3)
        let token = [3, 1, 0, 0] + signer.pair.publicKey.bytes.reveal { Array($0) }
        var call = PeerCall(group)
        call.signer = signer
        call.namespaces = [11]
        call.token = Hex.encode([UInt8](repeating: member, count: 24) + Self.bytes(phone))
        call.others = [
            ("subaccount", .string(Hex.encode(token))),
            ("subaccount_sig", .string(PeerAccount.hex(group.sign(token))))
        ]
        return call
    }

    private static func bytes(_ number: Int) -> [UInt8] {
        withUnsafeBytes(of: UInt64(number).bigEndian) { Array($0) }
    }

    @Test("A hundred members with two phones each subscribe, and a message reaches all of them")
    func hundred() async throws {
        let rig = try await SessionRig()
        let members = (10..<110).map { UInt8($0) }
        for member in members {
            for phone in 0..<2 {
                let answer = try await rig.ask("/subscribe", try call(member, phone: phone).subscribe)
                #expect(answer["added"]?.bool == true, "\(member) \(phone)")
            }
        }
        try await rig.running { rig in
            try await rig.notify(.sample(group, namespace: 11))
            await rig.services.sent(atLeast: 200)
            let tokens = Set(rig.services.sent.compactMap { $0.message.apns?.token.reveal { Array($0) } })
            #expect(tokens.count == 200)
            #expect(rig.services.sent.count == 200)
        }
    }

    @Test("A message of a large account is committed page by page, and each page is bounded")
    func pages() async throws {
        let rig = try await SessionRig()
        for member in (10..<140).map({ UInt8($0) }) {
            _ = try await rig.ask("/subscribe", try call(member).subscribe)
        }
        let push = StorageNotice.sample(group, namespace: 11)
        let first = try await rig.relay.receive(.notified(push))
        #expect(first.pushes.count == SessionLimits.rowsPerLookup)
        guard case .now(.taken(let rest?)) = first.reply else {
            Issue.record("nothing is left")
            return
        }
        let second = try await rig.relay.receive(.notified(push, after: rest))
        #expect(second.pushes.count == 2)
        guard case .now(.taken(nil)) = second.reply else {
            Issue.record("something is left")
            return
        }
    }

    @Test("A member who asks too often is told so, and no other member notices")
    func calls() async throws {
        let rig = try await SessionRig()
        let refused = try await (0..<45).asyncMap { phone in
            self.error(try await rig.ask("/subscribe", try self.call(10, phone: phone).subscribe))
        }
        #expect(refused.filter { $0 == 3 }.count == 15)
        #expect(error(try await rig.ask("/subscribe", try call(11).subscribe)) == nil)
        var admin = PeerCall(group)
        admin.namespaces = [11]
        #expect(error(try await rig.ask("/subscribe", admin.subscribe)) == nil)
    }

    @Test("A member's made-up tokens use up that member's places, and ends fill nobody's page")
    func madeUp() async throws {
        let rig = try await SessionRig()
        for phone in 0..<SessionLimits.subscriptionsPerSigner {
            rig.pass(.seconds(10))
            #expect(error(try await rig.ask("/subscribe", try call(10, phone: phone).subscribe)) == nil)
        }
        rig.pass(.seconds(60))
        #expect(error(try await rig.ask("/subscribe", try call(10, phone: 99).subscribe)) == 4)
        for phone in 100..<300 {
            rig.pass(.seconds(2))
            let end = try await rig.ask("/unsubscribe", try call(10, phone: phone).unsubscribe)
            #expect(end["removed"]?.bool == false)
        }
        #expect(error(try await rig.ask("/subscribe", try call(11).subscribe)) == nil)
        let rows = try await rig.store.page(.owner(rig.keys.owner(group.id)), after: 0, limit: 1_000)
        #expect(rows.count == SessionLimits.subscriptionsPerSigner + 1)
    }

    @Test("A place whose token was called dead is free again, and so is one that was left")
    func freed() async throws {
        let rig = try await SessionRig()
        for phone in 0..<SessionLimits.subscriptionsPerSigner {
            rig.pass(.seconds(10))
            _ = try await rig.ask("/subscribe", try call(10, phone: phone).subscribe)
        }
        rig.pass(.seconds(60))
        let rows = try await rig.records()
        let expired = rows[..<4].map { Change.expire($0.key, at: rig.world.now(), if: .any) }
        #expect(try await rig.store.apply(expired) == .committed)
        // One of them is given out once more, and takes its own place again.
        var again = try call(10, phone: 3)
        again.at += 1
        #expect(try await rig.ask("/subscribe", again.subscribe)["added"]?.bool == true)
        for phone in 100..<103 {
            #expect(error(try await rig.ask("/subscribe", try call(10, phone: phone).subscribe)) == nil)
        }
        #expect(error(try await rig.ask("/subscribe", try call(10, phone: 103).subscribe)) == 4)
        // What was left behind of the dead ones went along.
        #expect(try await rig.records().count == SessionLimits.subscriptionsPerSigner)
        let left = try await rig.ask("/unsubscribe", try call(10, phone: 9).unsubscribe)
        #expect(left["removed"]?.bool == true)
        #expect(error(try await rig.ask("/subscribe", try call(10, phone: 103).subscribe)) == nil)
    }

    @Test("A phone that is signed for by another key of its account keeps one subscription")
    func promoted() async throws {
        let rig = try await SessionRig()
        var call = try call(10)
        _ = try await rig.ask("/subscribe", call.subscribe)
        // Its member has become an admin.
        call.signer = group
        call.others = []
        call.at += 1
        #expect(try await rig.ask("/subscribe", call.subscribe)["updated"]?.bool == true)
        #expect(try await rig.subscriptions().count == 1)
    }
}

extension Sequence {
    fileprivate func asyncMap<Result>(_ body: (Element) async throws -> Result) async throws -> [Result] {
        var results: [Result] = []
        for element in self { results.append(try await body(element)) }
        return results
    }
}
