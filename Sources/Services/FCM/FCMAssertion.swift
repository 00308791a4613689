import CryptoExtras
import HTTP2Client
import PushModel
import WireFormats

/// The request for an access token (docs/push-services.md §4.1) and its answer. Pure.
enum FCMAssertion {
    private static let scope = "https://www.googleapis.com/auth/firebase.messaging"
    private static let grantType = "urn:ietf:params:oauth:grant-type:jwt-bearer"
    /// Google allows an hour at most.
    private static let lifetime: Duration = .seconds(3600)
    /// An `iat` in the future is refused: leeway for a clock that is a little fast.
    private static let backdatedBy: Duration = .seconds(5)
    /// Answers take about 1.2 KiB; more is no token.
    private static let answerLimitBytes = 8192
    private static let deadline: Duration = .seconds(10)

    /// A signed assertion as a form, to be posted to the account's token address.
    static func request(for account: FCMServiceAccount, now: UnixTime) -> WebRequest {
        let issued = now - backdatedBy
        var header = JSONWriter()
        header.beginObject()
        header.member("alg", "RS256")
        header.member("typ", "JWT")
        header.member("kid", account.keyID)
        header.endObject()
        var claims = JSONWriter()
        claims.beginObject()
        claims.member("iss", account.email)
        claims.member("scope", scope)
        claims.member("aud", account.tokenURL)
        claims.member("iat", issued.seconds)
        claims.member("exp", (issued + lifetime).seconds)
        claims.endObject()
        let input = SignedToken.signingInput(header: header.bytes, claims: claims.bytes)
        guard let signature = try? account.key.signature(for: input, padding: .insecurePKCS1v1_5) else {
            // A parsed RSA key signs any bytes.
            preconditionFailure("RSA signing failed")
        }
        let token = SignedToken.complete(input, signature: signature.rawRepresentation)
        let form = Form([("grant_type", Array(grantType.utf8)), ("assertion", token.reveal { Array($0) })])
        return WebRequest(
            .post, url: account.tokenURL,
            headers: [("content-type", "application/x-www-form-urlencoded"), ("accept", "application/json")],
            body: Secret(form.encoded()), answerLimitBytes: answerLimitBytes, deadline: deadline,
            publicAddressesOnly: false)
    }

    enum Granted {
        /// An access token and how long it lives.
        case token(Secret, Duration)
        /// The account, its key or our clock is wrong.
        case refused
        /// Ask again, not before that.
        case later(Duration?)
    }

    /// Where an answer names no `expires_in`, what Google gives.
    private static let usualLifetime: Duration = .seconds(3599)

    static func read(_ answer: WebAnswer, now: UnixTime) -> Granted {
        switch answer.status {
        case 200: token(in: answer.body)
        case 400..<500 where answer.status != 429 && isRefusal(answer.body): .refused
        // A passing fault of Google's, or not Google's answer at all: a proxy's page says nothing about the
        // account.
        default: .later(answer.retryAfter.flatMap { RetryAfter.parse($0, now: now) })
        }
    }

    /// An error in OAuth's form (RFC 6749 §5.2) or in that of Google's other services: an object whose
    /// `error` is a text or an object.
    private static func isRefusal(_ body: Secret) -> Bool {
        let error = body.reveal { try? JSONValue.parse(Array($0)) }?["error"]
        return error?.string != nil || error?.object != nil
    }

    private static func token(in body: Secret) -> Granted {
        body.reveal { raw -> Granted in
            do {
                var reader = JSONReader(raw)
                var (token, lifetime) = (Secret?.none, usualLifetime)
                try reader.beginObject()
                while let name = try reader.nextMember() {
                    if name.equals("access_token") {
                        token = try reader.readString().secret()
                    } else if name.equals("expires_in") {
                        if let seconds = try reader.readNumber().int64 {
                            lifetime = .seconds(min(max(seconds, 0), 86_400))
                        }
                    } else {
                        try reader.skipValue()
                    }
                }
                try reader.end()
                guard let token, isBearer(token) else { return .later(nil) }
                return .token(token, lifetime)
            } catch {
                // A 200 without a token: a proxy's page or a fault of Google's, not of our key.
                return .later(nil)
            }
        }
    }

    /// A token must be able to stand in a field's value (RFC 6750 §2.1).
    private static func isBearer(_ token: Secret) -> Bool {
        token.count > 0 && token.reveal { $0.allSatisfy { $0 > 0x20 && $0 < 0x7F } }
    }
}
