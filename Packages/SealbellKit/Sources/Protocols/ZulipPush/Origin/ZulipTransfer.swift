public import PushModel
import WireFormats

/// Taking back a host name whose key was lost (§5.2, "Transfer"): what the relay answers, and what the host
/// shows in between.
public enum ZulipTransfer {
    /// The host shows the secret below this path, behind its access token and followed by a slash.
    public static let path = "/api/v1/zulip-services/verify/"

    /// For ten minutes a relay takes the secret; the host shows it no longer.
    public static let life = Duration.seconds(600)

    /// The secret in the relay's answer to ``ZulipOrigin/transfer(hostname:)``: 1 to 128 bytes; `nil` where
    /// there is none.
    public static func secret(in answer: Secret) -> Secret? {
        members(answer, ["verification_secret"])?[0]
    }

    /// Id and key in the relay's answer to ``ZulipOrigin/verifyChallenge(hostname:accessToken:)``: a
    /// canonical lower-case UUID and 64 characters; `nil` where they are not both there.
    public static func credentials(in answer: Secret) -> (id: String, key: Secret)? {
        guard let found = members(answer, ["zulip_org_id", "zulip_org_key"]),
            let id = found[0].reveal({ UUIDText($0) }), found[1].count == ZulipLimits.organizationKeyBytes
        else { return nil }
        return (id.text, found[1])
    }

    /// What the host shows: 200 and this body.
    public static func body(showing secret: Secret) -> Secret {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("result", "success")
        writer.member("msg", "")
        writer.member("verification_secret", utf8: secret)
        writer.endObject()
        return writer.takeSecret()
    }

    private static let valueBytes = 128

    /// Texts of these names, each of 1 to 128 bytes; of doubled ones the last.
    private static func members(_ body: Secret, _ names: [StaticString]) -> [Secret]? {
        var found = [Secret?](repeating: nil, count: names.count)
        let isRead = body.reveal { bytes in
            guard bytes.count <= ZulipOriginLimits.answerBytes else { return false }
            var reader = JSONReader(bytes, depthLimit: ZulipLimits.jsonDepth)
            do throws(FormatError) {
                try reader.beginObject()
                while let name = try reader.nextMember() {
                    guard let index = names.firstIndex(where: { name.equals($0) }),
                        try reader.peek() == .string
                    else {
                        try reader.skipValue()
                        continue
                    }
                    let value = try reader.readString().secret()
                    found[index] = (1...valueBytes).contains(value.count) ? value : nil
                }
                try reader.end()
                return true
            } catch {
                // What is no JSON object is no answer of this protocol.
                return false
            }
        }
        let all = found.compactMap(\.self)
        return isRead && all.count == names.count ? all : nil
    }
}
