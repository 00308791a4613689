import Primitives
import PushModel

/// What was signed later wins, however much it was delayed; and a phone whose clock is ahead of the relay's
/// must not block what comes after it (docs/decisions/0096).
enum SignatureOrder {
    /// Whether a subscription replaces a living one, or may follow one whose token was reported dead.
    static func renews(_ signedAt: Int64, _ known: Record, now: UnixTime) -> Bool {
        signedAt >= SessionVersion.signedAt(known.version) || isAfterAhead(signedAt, known, now)
    }

    /// Whether an end is later than a living subscription. Within one second the end counts as later: nobody
    /// who wants to leave is kept.
    static func ends(_ signedAt: Int64, _ known: Record, now: UnixTime) -> Bool {
        renews(signedAt, known, now: now)
    }

    /// Whether a subscription is later than an end.
    ///
    /// Within one second the order of arrival decides, as long as the end has only just arrived: somebody
    /// turned a switch off and on. After that, the same call is a repeat, whoever sends it.
    static func follows(_ claim: SessionClaim, _ known: Record, now: UnixTime) -> Bool {
        let end = SubscriptionEnd(known.body)
        let time = SessionVersion.signedAt(known.version)
        if claim.signedAt > time { return true }
        if claim.signedAt == time, end.isOfThatSecond {
            let age = now.since(known.touchedAt)
            return age >= .zero && age <= SessionLimits.sameSecond
        }
        return isAfterAhead(claim.signedAt, known, now) && !end.isRepeat(claim)
    }

    /// A time that is still in the future by our own clock does not show what came later: anything signed
    /// since we took it is later.
    private static func isAfterAhead(_ signedAt: Int64, _ known: Record, _ now: UnixTime) -> Bool {
        SessionVersion.signedAt(known.version) > now.seconds && signedAt >= known.touchedAt.seconds
    }
}

/// What is kept of a subscription that has ended: the time when the end was signed, as the record's version,
/// and a hash of the ended subscription's signature, by which a repeat is recognised. Neither account nor
/// token.
struct SubscriptionEnd {
    /// Whether the end was signed in the second that the version names; if not, it ended something signed
    /// later.
    let isOfThatSecond: Bool
    /// 16 bytes; `nil`: it ended nothing.
    private let ended: Digest16?

    /// Form, whether it is of that second, hash.
    private static let form: UInt8 = 1

    /// - Parameter known: what it ends; the hash of an earlier end is kept.
    init(isOfThatSecond: Bool, signature: Secret?, after known: Record? = nil) {
        self.isOfThatSecond = isOfThatSecond
        ended = signature.map(Self.hash) ?? known.flatMap { SubscriptionEnd($0.body).ended }
    }

    /// What cannot be read is an end in its second, of an unknown subscription.
    init(_ body: Secret) {
        let read = body.reveal { bytes -> (Bool, Digest16?)? in
            guard bytes.count >= 2, bytes[0] == Self.form else { return nil }
            return (bytes[1] == 1, Digest16(bytes.dropFirst(2)))
        }
        (isOfThatSecond, ended) = read ?? (true, nil)
    }

    var body: Secret { Secret([Self.form, isOfThatSecond ? 1 : 0] + (ended?.bytes ?? [])) }

    func isRepeat(_ claim: SessionClaim) -> Bool { ended == Self.hash(claim.signature) }

    private static func hash(_ signature: Secret) -> Digest16 {
        KeyedHash.digest16(key: use) { $0.update(signature) }
    }

    /// Not secret: it separates this hash from others.
    private static let use = Secret("sealbell/session/end".utf8)
}
