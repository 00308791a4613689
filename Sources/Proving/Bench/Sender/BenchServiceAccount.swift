import CryptoExtras
import PushModel
import WireFormats

/// A Firebase service account that exists for one run, and the grants that a token endpoint would give it.
enum BenchServiceAccount {
    /// A fresh key: generating 2,048 bits of RSA takes a good tenth of a second.
    ///
    /// - Throws: what the library throws when it has no randomness.
    static func make() throws -> Secret {
        let key = try _RSA.Signing.PrivateKey(keySize: .bits2048)
        let account: JSONObject = [
            "type": .string("service_account"), "project_id": .string("bench"),
            "private_key_id": .string("0123456789abcdef"), "private_key": .string(key.pkcs8PEMRepresentation),
            "client_email": .string("bench@bench.iam.gserviceaccount.com"),
            "token_uri": .string("https://oauth2.invalid/token")
        ]
        return Secret(JSONValue.object(account).serialized())
    }

    /// Grants an hour to anyone who asks, without a network.
    struct Grants: WebFetch {
        func fetch(_ request: WebRequest) async throws(WebError) -> WebAnswer {
            let body = #"{"access_token":"ya29.bench","expires_in":3599,"token_type":"Bearer"}"#
            return WebAnswer(status: 200, retryAfter: nil, body: Secret(Array(body.utf8)))
        }
    }
}
