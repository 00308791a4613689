import Primitives
import PushModel
import PushTesting
import SessionPush
import Testing
import WireFormats

@Suite("What a Session relay says to one call", .timeLimit(.minutes(30)))
struct SessionConversationTests {
    private let peer: PeerOnion
    private let conversation: SessionConversation
    private static let client = ClientKey(1)

    init() throws {
        peer = try PeerOnion()
        conversation = SessionConversation(
            onion: peer.server, world: .fixed(seed: 4, at: SessionRig.now))
    }

    private func begin(_ endpoint: SessionEndpoint, _ body: [UInt8]) -> SessionConversation.Next {
        withBytes(body) { conversation.begin(endpoint, $0) }
    }

    private func call(_ json: [UInt8]) throws -> SessionConversation.Call {
        guard case .judge(let call) = begin(.subscribe, json) else { throw SessionError(.malformedBody) }
        return call
    }

    private static func subscribe(_ seeds: [UInt8]) throws -> [UInt8] {
        JSONValue.array(try seeds.map { PeerCall(try PeerAccount(seed: $0)).subscribe }).serialized()
    }

    private func head(_ path: String, _ method: String = "POST") -> String {
        #"{"method":"\#(method)","endpoint":"\#(path)"}"#
    }

    /// A sealed reply: its code, and the body.
    private func opened(
        _ answer: SessionConversation.Answer, _ cipher: OnionCipher = .xchacha20
    ) throws -> (code: Int64?, type: String?, body: String) {
        guard case .sealed(let reply) = answer else { throw SessionError(.malformedAnswer) }
        return try peer.opened(reply, cipher).reveal { plain in
            var list = BencodeReader(plain, .strict, depthLimit: 1)
            try list.beginList()
            _ = try list.nextElement()
            let head = try JSONValue.parse(try list.readString())
            _ = try list.nextElement()
            let body = String(decoding: try list.readString(), as: UTF8.self)
            return (head["code"]?.int64, head["headers"]?["content-type"]?.string, body)
        }
    }

    // MARK: Rounds

    @Test("Elements of different accounts are judged at once; what concerns one account waits for its turn")
    func rounds() throws {
        var call = try call(try Self.subscribe([1, 2, 1, 3, 1]))
        var accounts: [[String]] = []
        while let round = call.round {
            accounts.append(
                try round.map { element in
                    guard case .subscribe(let form, .plain) = try element.get() else {
                        throw SessionError(.malformedBody)
                    }
                    return PeerAccount.hex(form.claim.account.bytes)
                })
            call.took(round.map { _ in .success(.removed(true)) })
        }
        let ids = try (1...3).map { try PeerAccount(seed: $0).hex }
        #expect(accounts == [[ids[0], ids[1]], [ids[0], ids[2]], [ids[0]]])
        #expect(!call.hasNews)
    }

    @Test("No more than eight are judged at once, and what is malformed stands in its place")
    func many() throws {
        var text = String(decoding: try Self.subscribe(Array(1...9)), as: UTF8.self)
        text = "[7,\(text.dropFirst())"
        var call = try call(Array(text.utf8))
        let first = try #require(call.round)
        #expect(first.count == 8)
        #expect(throws: SessionError(.malformedBody)) { try first[0].get() }
        call.took(first.map { element in element.map { _ in .added } })
        #expect(call.hasNews)
        let second = try #require(call.round)
        #expect(second.count == 2)
        call.took(second.map { _ in .failure(SessionError(.overloaded)) })
        #expect(call.round == nil)
        guard case .json(let body) = call.answer() else {
            Issue.record("an answer of another kind")
            return
        }
        let answers = try #require(try JSONValue.parse(body).array)
        #expect(answers.count == 10)
        #expect(answers.map { $0["added"]?.bool } == [nil] + [Bool?](repeating: true, count: 7) + [nil, nil])
        #expect(answers[0]["error"]?.int64 == Int64(SessionError(.malformedBody).wireCode))
        #expect(answers[9]["error"]?.int64 == Int64(SessionError(.overloaded).wireCode))
    }

    @Test("The storage network is told of what was added or renewed, and of nothing else")
    func news() throws {
        let rows: [(outcome: SessionConversation.Call.Outcome, hasNews: Bool)] = [
            (.success(.added), true), (.success(.updated), true), (.success(.removed(true)), false),
            (.failure(SessionError(.overloaded)), false)
        ]
        for row in rows {
            var call = try call(PeerCall(try PeerAccount(seed: 1)).subscribe.serialized())
            #expect(call.round?.count == 1)
            call.took([row.outcome])
            #expect(call.hasNews == row.hasNews && call.round == nil)
        }
    }

    @Test("A body that is none is answered as a whole")
    func malformed() throws {
        guard case .end(.json(let body), counting: let note) = begin(.unsubscribe, Array("{".utf8)) else {
            Issue.record("a body that is judged")
            return
        }
        #expect(body == CallReply.body(SessionError(.malformedBody)) && note == nil)
    }

    // MARK: Onion requests

    @Test("An onion request alone costs something before it is read")
    func toll() {
        #expect(SessionConversation.toll(of: .subscribe, from: Self.client) == nil)
        #expect(SessionConversation.toll(of: .unsubscribe, from: Self.client) == nil)
        #expect(SessionConversation.toll(of: .onion, from: Self.client) != nil)
    }

    @Test(
        "A call out of an onion request is answered inside, with the request's key",
        arguments: OnionCipher.allCases)
    func onion(cipher: OnionCipher) throws {
        let json = PeerCall(try PeerAccount(seed: 1)).subscribe.serialized()
        let inner = peer.inner(head("/subscribe"), String(decoding: json, as: UTF8.self))
        guard case .judge(var call) = begin(.onion, try peer.request(inner, cipher)) else {
            Issue.record("a call that is not judged")
            return
        }
        guard case .subscribe(_, .onion)? = try call.round?.first?.get() else {
            Issue.record("an element that did not come by an onion")
            return
        }
        call.took([.success(.added)])
        let answer = try opened(call.answer(), cipher)
        #expect(answer.code == 200 && answer.type == CallReply.contentType)
        #expect(try JSONValue.parse(Array(answer.body.utf8))["added"]?.bool == true)
    }

    @Test("What is wrong inside is said inside: path, method, body, and the inner layer itself")
    func wrongInside() throws {
        let cases: [(plain: [UInt8], code: Int64, note: NoteCode?)] = [
            (peer.inner(head("/elsewhere")), 404, nil), (peer.inner(head("/oxen/v4/lsrpc")), 404, nil),
            (peer.inner(head("/subscribe", "GET")), 405, nil),
            (peer.inner(head("/subscribe"), "["), 200, nil),
            (peer.inner("{}"), 400, NoteCode("session.malformed-onion"))
        ]
        for one in cases {
            let body = try peer.request(one.plain)
            guard case .end(let answer, counting: let note) = begin(.onion, body) else {
                Issue.record("a call that is judged: \(one.code)")
                continue
            }
            #expect(try opened(answer).code == one.code && note == one.note)
        }
    }

    @Test("Without a key to answer with the answer is plain")
    func plain() throws {
        let large = [UInt8](repeating: 0, count: SessionLimits.onionBodyBytes + 1)
        for (body, wanted) in [(large, 413), ([UInt8](), 400)] {
            guard case .end(.refused(let status, _), counting: nil) = begin(.onion, body) else {
                Issue.record("an answer of another kind")
                continue
            }
            #expect(status == wanted)
        }
    }

    // MARK: Notices

    @Test("A notice that the store could not take may come again, one that was refused may not")
    func notices() async throws {
        let rig = try await SessionRig()
        let alice = try PeerAccount(seed: 1)
        let conversation = NoticeConversation(with: rig.relay)
        #expect(conversation.refused(.sample(alice), SessionError(.overloaded)))
        #expect(!conversation.refused(.sample(alice), SessionError(.malformedField)))
        #expect(conversation.rest(after: .taken(restAfter: 7)) == 7)
        #expect(conversation.rest(after: .taken(restAfter: nil)) == nil)
        #expect(conversation.bytes(of: .sample(alice)) > "sealed for the account".utf8.count)
    }
}
