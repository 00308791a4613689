import EdwardsKeys
import PushModel
import PushTesting
import SessionPush
import Testing

@Suite("Session's subaccounts")
struct SubaccountTests {
    private var random = SeededRandom(seed: 31)
    private let admin: GroupAdmin

    init() throws { admin = try GroupAdmin(seed: Secret((0..<32).map { UInt8($0) })) }

    @Test("What an admin makes, the member can use, and both find the same key")
    func members() throws {
        var random = random
        for _ in 0..<40 {
            let member = Ed25519KeyPair.generate(using: &random)
            let account = try SessionAccountKey(member).account
            let value = try admin.signingValue(for: account)
            #expect(value.count == 100)
            #expect(try admin.signingValue(for: account) == value)
            let subaccount = try Subaccount(signingValue: value, of: admin.key.account, member: member)
            let blinded = try #require(Ed25519PublicKey(subaccount.token.reveal { Secret($0[4...]) }))
            #expect(!(blinded.bytes == member.publicKey.bytes))
            let text = Secret("MONITOR".utf8)
            let key = try #require(BlindedKey(member, factor: value.reveal { Secret($0[4..<36]) }))
            let signature = try #require(
                text.reveal { key.signature(over: $0, nonceKey: "SubaccountSig", seedKey: "SubaccountSeed") })
            #expect(text.reveal { text in signature.reveal { blinded.isValid($0, over: text) } })
            #expect(
                !signature.reveal { signature in
                    Secret("MONITOS".utf8).reveal { blinded.isValid(signature, over: $0) }
                })
        }
    }

    @Test("A signing value for another member, of another group, or changed anywhere is refused")
    func foreign() throws {
        var random = random
        let member = Ed25519KeyPair.generate(using: &random)
        let other = Ed25519KeyPair.generate(using: &random)
        let value = try admin.signingValue(for: SessionAccountKey(member).account)
        #expect(throws: SessionError(.malformedSubaccount)) {
            try Subaccount(signingValue: value, of: admin.key.account, member: other)
        }
        #expect(throws: SessionError(.malformedSubaccount)) {
            try Subaccount(
                signingValue: value, of: SessionAccountKey(other, .group).account, member: member)
        }
        for place in 0..<100 {
            var bytes = value.reveal { Array($0) }
            bytes[place] ^= 1
            #expect(throws: SessionError(.malformedSubaccount), "byte \(place)") {
                try Subaccount(signingValue: Secret(bytes), of: admin.key.account, member: member)
            }
        }
        for count in [0, 4, 36, 99, 101] {
            #expect(throws: SessionError(.malformedSubaccount)) {
                try Subaccount(
                    signingValue: Secret([UInt8](repeating: 1, count: count)), of: admin.key.account,
                    member: member)
            }
        }
        // Without the right to read there is nothing to watch.
        let mute = try admin.signingValue(for: SessionAccountKey(member).account, [.write])
        #expect(throws: SessionError(.malformedSubaccount)) {
            try Subaccount(signingValue: mute, of: admin.key.account, member: member)
        }
    }

    @Test("Only a person can be a member")
    func noMember() throws {
        #expect(throws: SessionError(.malformedKey)) { try admin.signingValue(for: admin.key.account) }
        // A key that is on no curve.
        var bytes = [UInt8](repeating: 0, count: 33)
        bytes[0] = 0x05
        bytes[1] = 2
        let account = try #require(AccountID(Secret(bytes)))
        #expect(throws: SessionError(.malformedKey)) { try admin.signingValue(for: account) }
    }

    @Test("An owner with a Session ID must show its key")
    func personOwner() throws {
        var random = random
        let owner = Ed25519KeyPair.generate(using: &random)
        let holder = Ed25519KeyPair.generate(using: &random)
        let account = try SessionAccountKey(owner).account
        let token = Secret([0x05, 1, 0, 0] + holder.publicKey.bytes.reveal { Array($0) })
        let signature = token.reveal { owner.signature(over: $0) }
        let make = { (key: Ed25519PublicKey?) throws in
            try WatchedAccount(
                Subaccount(token: token, ownerSignature: signature, of: account, ownerKey: key, key: holder))
        }
        #expect(try make(owner.publicKey).account == account)
        for key in [nil, holder.publicKey] {
            #expect(throws: SessionError(.malformedSubaccount)) { try make(key) }
        }
    }
}
