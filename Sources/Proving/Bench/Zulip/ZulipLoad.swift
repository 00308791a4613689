import Primitives
import PushModel
import WireFormats

/// Zulip as trials see it: an instance that anybody may sign up at, and servers that do.
struct ZulipLoad: LoadProtocol {
    var name: String { "zulip" }

    func makeInstance(_ world: World) -> StagedInstance {
        let pair = X25519KeyPair.generate(world)
        let keys = pair.privateKey.reveal { privateKey in
            "{\"\(Base64.text(pair.publicKey))\": \"\(Base64.text(privateKey))\"}\n"
        }
        return StagedInstance(
            name: "zulip-load", publicKey: pair.publicKey, keyFile: ("bouncer.keys", keys), isServed: true
        ) { plan in
            [
                "protocol: zulip", "apps: [load]", "keys: \(plan.directory)/bouncer.keys", "sign_up: open"
            ] + (plan.fcm == nil ? [] : ["fcm_app: load"])
        }
    }

    func makeOrigin(host: String, publicKey: [UInt8], bundle: String, world: World) -> any LoadOrigin {
        ZulipLoadOrigin(host: host, publicKey: publicKey, bundle: bundle, world: world)
    }

    /// What names a push: the first 15 characters of its ciphertext, 90 random bits. Short enough to need no
    /// memory of its own.
    static func mark(ofCiphertext text: String) -> String { String(text.prefix(markBytes)) }

    private static let markBytes = 15

    func mark(in body: [UInt8]) -> String? {
        Self.characters(Self.markBytes, behind: "\"encrypted_data\":\"", in: body)
    }

    func areAlive(_ answer: String) -> Bool { answer.contains(#""delete_token_ids":[]"#) }

    func taken(_ pushes: Int) -> String { "\"apple_successfully_sent_count\":\(pushes)," }

    var attacks: [SiegeAttack] { ZulipAttacks.all }
}
