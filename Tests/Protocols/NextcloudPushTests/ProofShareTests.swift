import NextcloudPush
import PushModel
import PushTesting
import Testing
import WireFormats

/// Strangers ask for proofs as often as they like; the owner of a device gets theirs.
@Suite("Shares of identity proofs", .timeLimit(.minutes(30)))
struct ProofShareTests {
    private let cloudID = [("cloudId", "alice@cloud.example.org")]
    /// Alice's key after her instance was set up anew.
    private let owner = PeerUser.bob.device(41)
    private let thief = PeerUser.stranger.device(41)

    /// An instance that names the owner's key for Alice, and knows nobody else.
    private func instance() -> ScriptedWeb {
        let body = JSONValue.object([
            "ocs": .object(["data": .object(["public": .string(PeerUser.bob.key.publicKey.pem)])])
        ])
        let text = String(decoding: body.serialized(), as: UTF8.self)
        return ScriptedWeb { (request) throws(WebError) in
            request.url.hasPrefix("https://cloud.example.org/ocs/v2.php/identityproof/key/alice?")
                ? WebAnswer(200, text) : WebAnswer(404)
        }
    }

    private func rig(_ web: ScriptedWeb) async throws -> NextcloudRelayRig {
        var policy = NextcloudPolicy()
        policy.appPasswords = 100
        let rig = try await NextcloudRelayRig.make(policy: policy, web: web)
        await rig.register(PeerUser.alice.device(41))
        return rig
    }

    @Test("A thief's tries cost the owner nothing, and the instance is asked once")
    func thief() async throws {
        let web = instance()
        let rig = try await rig(web)
        for _ in 0..<4 { #expect(await rig.register(thief, cloudID, from: 7).status == 403) }
        #expect(await rig.register(owner, cloudID, from: 8).status == 200)
        #expect(web.requests.value.count == 1)
    }

    @Test("A thief who spells the name otherwise uses up nothing of the owner's either")
    func spellings() async throws {
        let rig = try await rig(instance())
        for name in ["ALICE@cloud.example.org", "alice@cloud.example.org/x", "Alice@cloud.example.org"] {
            await rig.register(thief, [("cloudId", name)], from: 7)
        }
        #expect(await rig.register(owner, cloudID, from: 8).status == 200)
    }

    @Test("Seven addresses that ask as often as they may leave the others their proofs", arguments: [0, 1])
    func sevenAddresses(_ sameInstance: Int) async throws {
        let rig = try await rig(instance())
        for client in 10..<17 {
            // A device of its own for each, because one may not call so often.
            await rig.register(PeerUser.alice.device(client))
            let thief = PeerUser.stranger.device(client)
            for number in 0..<5 {
                let host = sameInstance > 0 ? "cloud" : "c\(client)-\(number)"
                let name = "u\(client)-\(number)@\(host).example.org"
                #expect(await rig.register(thief, [("cloudId", name)], from: UInt64(client)).status == 403)
            }
        }
        #expect(await rig.register(owner, cloudID, from: 8).status == 200)
    }

    @Test("A word for another key is asked for anew after ten seconds: the instance may have changed")
    func changed() async throws {
        let key = Noted(PeerUser.alice.key.publicKey.pem)
        let web = ScriptedWeb { (_) throws(WebError) in
            let body = JSONValue.object([
                "ocs": .object(["data": .object(["public": .string(key.value)])])
            ])
            return WebAnswer(200, String(decoding: body.serialized(), as: UTF8.self))
        }
        let rig = try await rig(web)
        #expect(await rig.register(owner, cloudID).status == 403)
        key.set(PeerUser.bob.key.publicKey.pem)
        #expect(await rig.register(owner, cloudID).status == 403)
        rig.pass(.seconds(10))
        #expect(await rig.register(owner, cloudID).status == 200)
    }

    @Test(
        "What will not pass is told from what may, counted, and its cause is said",
        arguments: WebErrorCode.allCases)
    func faults(_ code: WebErrorCode) async throws {
        let web = ScriptedWeb { (_) throws(WebError) in throw WebError(code) }
        let rig = try await rig(web)
        let answer = await rig.register(owner, cloudID)
        let mayPass = [.unreachable, .deadlineExceeded].contains(code)
        #expect(answer.status == (mayPass ? 409 : 403))
        let note = mayPass ? "nextcloud.proof-unanswered" : "nextcloud.proof-unfit"
        #expect(rig.notes.value.contains { $0.text == note })
        let cause = code == .plainElsewhere ? "malformedURL" : code.rawValue
        #expect(rig.faults.value.map(\.rawValue) == [cause])
    }
}
