import PushModel
import PushTesting
import Testing
import WireFormats
import ZulipPush

@Suite("What a Zulip relay says around its role", .timeLimit(.minutes(30)))
struct ZulipConversationTests {
    private static let now = UnixTime(seconds: 1_800_000_000)

    private func code(_ body: () async throws(ZulipError) -> Void) async -> ZulipError.Code? {
        do throws(ZulipError) {
            try await body()
            return nil
        } catch {
            return error.code
        }
    }

    // MARK: The head

    @Test("Two credentials are refused before anything else of the head is")
    func head() async {
        let basic = RealmRig.basic(RealmRig.server)
        let notify = ZulipPath.notify.rawValue
        let rows: [(method: String, path: String, field: String?, count: Int, code: ZulipError.Code?)] = [
            ("GET", "/elsewhere", basic, 2, .malformedAuthorization),
            ("GET", "/elsewhere", nil, 0, .unknownPath), ("GET", notify, basic, 1, .wrongMethod),
            ("POST", notify, nil, 0, .missingAuthorization), ("POST", notify, basic, 1, nil),
            ("POST", ZulipPath.signUp.rawValue, nil, 0, nil)
        ]
        for row in rows {
            let found = await code { () async throws(ZulipError) in
                try ZulipConversation.check(
                    method: row.method, path: row.path, authorization: row.field, fields: row.count)
            }
            #expect(found == row.code, "\(row)")
        }
    }

    // MARK: Proof

    @Test("A body larger than a form is not read before its sender has proved itself")
    func large() {
        #expect(!ZulipConversation.isProvedFirst(bodyBytes: ZulipLimits.formBodyBytes))
        #expect(ZulipConversation.isProvedFirst(bodyBytes: ZulipLimits.formBodyBytes + 1))
    }

    @Test("A stranger proves nothing; who needs no credentials passes; a store that is out refuses nobody")
    func proof() async throws {
        let bench = try await RealmRig(now: Self.now)
        let conversation = ZulipConversation(with: bench.relay.relay)
        let stranger = "a247ce6a-4a56-4f69-ac0e-09fe4537d3ce"
        func prove(_ path: ZulipPath, _ field: String?) async -> ZulipError.Code? {
            await code { () async throws(ZulipError) in
                try await conversation.prove(method: "POST", path: path.rawValue, authorization: field)
            }
        }
        #expect(await prove(.notify, RealmRig.basic(RealmRig.server)) == nil)
        #expect(await prove(.notify, RealmRig.basic(stranger)) == .unknownServer)
        let wrong = RealmRig.basic(RealmRig.server, String(repeating: "w", count: 64))
        #expect(await prove(.notify, wrong) == .wrongServerKey)
        #expect(await prove(.notify, nil) == .missingAuthorization)
        bench.relay.store.forget()
        #expect(await prove(.signUp, nil) == nil)
        #expect(bench.relay.store.lookups.isEmpty)
        bench.relay.store.goOut()
        #expect(await prove(.notify, RealmRig.basic(stranger)) == nil)
    }

    // MARK: Reading and refusing

    @Test("References are made for pushes of who asks for them, and for nothing else")
    func references() async throws {
        let bench = try await RealmRig(now: Self.now)
        let conversation = ZulipConversation(with: bench.relay.relay)
        let body = Array(RealmRig.body([RealmRig.item(TokenID(token: Secret("ab12".utf8)).text)]).utf8)
        let rows: [(path: ZulipPath, body: [UInt8], wants: Bool, has: Bool)] = [
            (.notify, body, true, true), (.notify, body, false, false), (.deactivate, [], true, false)
        ]
        for row in rows {
            let inbound = try withBytes(row.body) { (bytes) throws(ZulipError) in
                try conversation.read(
                    method: "POST", path: row.path.rawValue, at: nil, query: nil,
                    authorization: RealmRig.basic(RealmRig.server), wantsReferences: row.wants, body: bytes)
            }
            #expect((inbound.references != nil) == row.has, "\(row.path) \(row.wants)")
        }
    }

    @Test("Calls of old plaintext pushes are counted, whoever is refused besides")
    func notes() {
        let counted = ZulipError.Code.allCases.filter {
            ZulipConversation.note(of: ZulipError($0)) != nil
        }
        #expect(counted == [.legacyPath])
    }
}
