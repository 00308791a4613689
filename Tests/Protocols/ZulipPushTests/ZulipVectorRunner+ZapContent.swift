import Primitives
import PushModel
import Testing
import WireFormats
import ZulipPush

extension ZulipVectorRunner {
    /// Seals what the row seals, byte for byte, and opens it.
    func zapContent(_ row: JSONValue) throws -> Bool {
        let pair = try X25519KeyPair(privateKey: secret(row, "push_private_key"))
        let key = try PushPublicKey(base64: text(row, "push_public_key"))
        guard Base64.text(pair.publicKey) == key.base64 else { return false }
        let content = Secret(try text(row, "encrypted_content").utf8)
        let plain = try? AccountBox.open(content, with: pair)  // Whether it opens is the question.
        guard row["decrypts"]?.bool == true else { return plain == nil }
        let expected = Secret(try text(row, "plaintext").utf8)
        let ephemeral = try X25519KeyPair(privateKey: secret(row, "ephemeral_private"))
        let again = try AccountBox.seal(expected, to: key, ephemeral: ephemeral)
        return isSame(plain, expected) && again == content
    }
}
