import Crypto
package import HTTP2Client
package import PushModel
import Synchronization

/// A provider token as it goes into requests: one object for all of them.
package final class APNsToken: Sendable {
    package let authorization: HTTP2Authorization
    /// Rises with each token of a credential.
    package let serial: Int
    package let mintedAt: ContinuousClock.Instant
    /// The same moment by the wall clock, which the token tells Apple.
    let datedAt: UnixTime
    /// It replaced a token whose date was wrong because the clock was set.
    let mendsDate: Bool

    init(
        authorization: HTTP2Authorization, serial: Int, mintedAt: ContinuousClock.Instant, datedAt: UnixTime,
        mendsDate: Bool
    ) {
        self.authorization = authorization
        self.serial = serial
        self.mintedAt = mintedAt
        self.datedAt = datedAt
        self.mendsDate = mendsDate
    }
}

/// One APNs signing key: mints provider tokens (docs/push-services.md §2.2), one at a time for all lanes of
/// the key.
///
/// A token serves 50 minutes; none is minted within 20 minutes of the last, unless the clock was set in
/// between, for then the date of the last is wrong. Signed with swift-crypto rather
/// than a JWT library, so that the token is never a `String`.
package actor APNsCredential {
    /// Apple refuses tokens older than an hour; deployed senders renew at 50 minutes.
    static let renewAfter: Duration = .seconds(50 * 60)
    /// Renewing more often is `TooManyProviderTokenUpdates`.
    static let renewNoSoonerThan: Duration = .seconds(20 * 60)
    /// If the clock was set by more than this, the token's date is wrong.
    static let clockSkew: Duration = .seconds(60)
    /// A clock that is set again and again causes at most one token a minute.
    static let mendNoSoonerThan: Duration = .seconds(60)
    /// An `iat` in the future is `InvalidProviderToken`: leeway for a clock that is a little fast.
    static let backdatedBy: Duration = .seconds(5)

    private let team: String
    private let keyID: String
    private let key: P256.Signing.PrivateKey
    private let world: World
    /// The newest token, readable without a hop: every request asks.
    private nonisolated let newest = Mutex<APNsToken?>(nil)

    /// - Parameters:
    ///   - team: Apple's team id, ten characters.
    ///   - keyID: the key's id, ten characters.
    ///   - key: the `.p8` file, PKCS#8 PEM.
    /// - Throws: `.badIdentifier`, `.badSigningKey`.
    package init(team: String, keyID: String, key: Secret, world: World) throws(APNsError) {
        guard Self.isIdentifier(team), Self.isIdentifier(keyID) else { throw APNsError(.badIdentifier) }
        // The library's words are dropped: they may quote the key.
        guard let der = SignedToken.der(fromPEM: key),
            let parsed = der.reveal({ try? P256.Signing.PrivateKey(derRepresentation: Array($0)) })
        else { throw APNsError(.badSigningKey) }
        self.team = team
        self.keyID = keyID
        self.key = parsed
        self.world = world
    }

    /// The token to send with now. Each process signs its own: Apple counts them by connection.
    package nonisolated func token() async -> APNsToken {
        if let token = current() { return token }
        return await renew(ifOlderThan: Self.renewAfter)
    }

    /// The newest token while it is valid, which is nearly always; `nil`: ``token()`` makes one.
    nonisolated func current() -> APNsToken? {
        guard let token = newest.withLock({ $0 }), serves(token, for: Self.renewAfter) else { return nil }
        return token
    }

    /// Apple says that the token has expired. True when another one may be tried: a newer one exists, or this
    /// one is old enough to be replaced. False: our clock is wrong, and more tokens would not help.
    package func expired(_ token: APNsToken) -> Bool {
        renew(ifOlderThan: Self.renewNoSoonerThan).serial > token.serial
    }

    private nonisolated func serves(_ token: APNsToken, for span: Duration) -> Bool {
        let age = world.instant() - token.mintedAt
        return age < span && !isMisdated(token, ofAge: age)
    }

    /// The wall clock was set since, so that Apple takes the token for one of another time.
    private nonisolated func isMisdated(_ token: APNsToken, ofAge age: Duration) -> Bool {
        if token.mendsDate, age < Self.mendNoSoonerThan { return false }
        let step = world.now().since(token.datedAt) - age
        // As numbers: every request asks.
        return step.attoseconds.magnitude > Self.clockSkew.attoseconds.magnitude
    }

    private func renew(ifOlderThan age: Duration) -> APNsToken {
        let last = newest.withLock { $0 }
        if let last, serves(last, for: age) { return last }
        let token = APNsToken(
            authorization: HTTP2Authorization(scheme: "bearer", token: signed()),
            serial: (last?.serial ?? 0) + 1, mintedAt: world.instant(), datedAt: world.now(),
            mendsDate: last.map { isMisdated($0, ofAge: world.instant() - $0.mintedAt) } ?? false)
        newest.withLock { $0 = token }
        return token
    }

    private func signed() -> Secret {
        let issued = (world.now() - Self.backdatedBy).seconds
        let input = SignedToken.signingInput(
            header: Array("{\"alg\":\"ES256\",\"kid\":\"\(keyID)\"}".utf8),
            claims: Array("{\"iss\":\"\(team)\",\"iat\":\(issued)}".utf8))
        guard let signature = try? key.signature(for: input) else {
            // A parsed P-256 key signs any bytes.
            preconditionFailure("P-256 signing failed")
        }
        return SignedToken.complete(input, signature: signature.rawRepresentation)
    }

    private static func isIdentifier(_ text: String) -> Bool {
        text.utf8.count == 10
            && text.utf8.allSatisfy {
                (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0)
                    || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
            }
    }
}
