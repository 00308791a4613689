import PushModel
package import Secp256k1Keys
import WireFormats

/// Where one installation of a person is reached: a server, and the token it wants to see.
package struct Coordinates: Sendable {
    package let installationID: Secret
    package let server: PublicPoint
    package let token: Secret
    package let version: UInt64
    /// Whether the person has signed the version: in a contact code. A server may name any.
    package let isSigned: Bool

    /// What a server or a contact code says of one installation.
    package enum Said: Sendable {
        case token(Coordinates)
        /// It has a registration of this version, and no token that the reader can open: the person has
        /// withdrawn it, or lets only others send.
        case withheld(installation: Secret, version: UInt64)
    }

    /// Judges what a server or a contact code says (§12).
    ///
    /// - Parameter reader: the sender's own key, with which a list of allowed keys is tried.
    /// - Parameter target: whom the information has to be about.
    /// - Parameter server: who signed the response; `nil` in a contact code, which names it.
    /// - Returns: `nil` when it is about somebody else, malformed, or the grant does not show that the
    ///   target has authorised this server for this token.
    package static func judge(
        _ info: PushNotificationQueryInfo, reader: Secp256k1KeyPair, target: PublicPoint,
        server: PublicPoint?
    ) -> Said? {
        guard info.publicKey == StatusHash.person(target),
            (1...StatusLimits.installationBytes).contains(info.installationID.count),
            info.accessToken.count == 0 || AccessToken.isUUID(info.accessToken)
        else { return nil }
        guard let token = token(in: info, reader: reader, target: target) else {
            return .withheld(installation: info.installationID, version: info.version)
        }
        guard let place = server ?? EndRows.point(bytes: info.serverPublicKey),
            Grant.holds(info.grant, client: target, server: place, accessToken: token)
        else { return nil }
        return .token(
            Coordinates(
                installationID: info.installationID, server: place, token: token, version: info.version,
                isSigned: server == nil))
    }

    private static func token(
        in info: PushNotificationQueryInfo, reader: Secp256k1KeyPair, target: PublicPoint
    ) -> Secret? {
        if info.accessToken.count > 0 { return info.accessToken }
        guard !info.allowedKeyList.isEmpty else { return nil }
        let shared = reader.sharedX(with: target)
        for entry in info.allowedKeyList.prefix(StatusLimits.triedKeys) {
            // An entry for somebody else does not open.
            if let token = try? StatusBox.open(entry, key: shared), AccessToken.isUUID(token) { return token }
        }
        return nil
    }

    // MARK: keeping

    var row: [Secret] {
        [
            installationID, EndRows.text(server), token, Secret(String(version).utf8)
        ] + (isSigned ? [Self.signed] : [])
    }

    private static var signed: Secret { Secret("signed".utf8) }

    init(installationID: Secret, server: PublicPoint, token: Secret, version: UInt64, isSigned: Bool) {
        self.installationID = installationID
        self.server = server
        self.token = token
        self.version = version
        self.isSigned = isSigned
    }

    /// - Returns: `nil` for a row that ``row`` has not written. Earlier versions did not say who had named
    /// the   version: then it counts as a server's word.
    init?(_ row: ArraySlice<Secret>) {
        let row = Array(row)
        guard row.count == 4 || row.count == 5 && row[4] == Self.signed,
            let server = EndRows.point(row[1]), let version = UInt64(row[3].word),
            AccessToken.isUUID(row[2])
        else { return nil }
        self.init(
            installationID: row[0], server: server, token: row[2], version: version,
            isSigned: row.count == 5)
    }
}

/// What a sending client knows of one person.
struct StatusTarget: Sendable {
    /// The key that the person's registrations are made with: the chat key, or the one of anonymous mode.
    var pushKey: PublicPoint
    private(set) var coordinates: [Coordinates] = []
    /// Installations that withhold their token from us, each since its version: an older token is stale.
    private var withheld: [(installation: Secret, version: UInt64)] = []
    /// When each installation was last seen to do something.
    private var activity: [(id: Secret, at: UnixTime)] = []
    var contactTopicKey: Secret?
    var queryTopicKey: Secret?
    /// Whether the contact code's history has been read in this run.
    var hasHistory = false
    var lastQuery: UnixTime?
    /// A server said that a token is wrong: the person is asked about again, whatever the time.
    var mustQuery = false
    var usedAt: UnixTime

    init(_ pushKey: PublicPoint, now: UnixTime) {
        self.pushKey = pushKey
        usedAt = now
    }

    /// Takes what is as new as what is known: what a server says by its own line of versions, because nobody
    /// signs them, and a contact code by the person's. A newer contact code replaces all older ones of its
    /// installation, whoever told of them.
    mutating func learn(_ one: Coordinates) {
        let signed = newestSigned(of: one.installationID)
        let own = coordinates.first { $0.installationID == one.installationID && $0.server == one.server }
        guard one.version >= signed, one.version >= own?.version ?? 0 else { return }
        coordinates.removeAll {
            $0.installationID == one.installationID
                && ($0.server == one.server || one.isSigned && $0.version < one.version)
        }
        coordinates.append(one)
        if coordinates.count > StatusLimits.targetCoordinates { makeRoom() }
    }

    /// The oldest word goes of the server that has most of them: a server that tells of many installations,
    /// as nothing keeps it from doing, takes no other's place.
    private mutating func makeRoom() {
        let counts = Dictionary(coordinates.map { ($0.server, 1) }, uniquingKeysWith: +)
        let most = counts.values.max() ?? 0
        guard
            let place = coordinates.firstIndex(where: { counts[$0.server] == most && !$0.isSigned })
                ?? coordinates.indices.first
        else { return }
        coordinates.remove(at: place)
    }

    /// The installation's contact code of a newer version has no token for us, so that an older one is
    /// dropped: a server would answer WRONG_TOKEN. The version stays, because messages come in any order.
    ///
    /// - Returns: whether it is newer than what is known.
    mutating func withhold(_ installation: Secret, since version: UInt64) -> Bool {
        guard version > newestSigned(of: installation) else { return false }
        coordinates.removeAll { $0.installationID == installation }
        withheld.removeAll { $0.installation == installation }
        withheld.append((installation, version))
        if withheld.count > StatusLimits.targetCoordinates { withheld.removeFirst() }
        return true
    }

    /// By what the person has signed.
    private func newestSigned(of installation: Secret) -> UInt64 {
        let known = coordinates.filter { $0.isSigned && $0.installationID == installation }.map(\.version)
        let without = withheld.filter { $0.installation == installation }.map(\.version)
        return (known + without).max() ?? 0
    }

    mutating func forget(_ installation: Secret, at server: PublicPoint, token: Secret) {
        coordinates.removeAll {
            $0.installationID == installation && $0.server == server && $0.token == token
        }
    }

    mutating func saw(_ installation: Secret, at time: UnixTime) {
        let last = activity.first { $0.id == installation }?.at
        activity.removeAll { $0.id == installation }
        activity.insert((installation, max(time, last ?? time)), at: 0)
        if activity.count > StatusLimits.targetCoordinates { activity.removeLast() }
    }

    func servers(of installation: Secret) -> [Coordinates] {
        coordinates.filter { $0.installationID == installation }
    }

    /// Installations to notify, those that were active last first.
    ///
    /// - Parameter wanted: those that the message is for; `nil`: all.
    func installations(_ wanted: [Secret]?, atMost limit: Int) -> [Secret] {
        // What the person has signed first; of each server the first that it told of beside each other's
        // first, so that one that tells of many leaves places to others.
        var ids: [(id: Secret, rank: Int)] = []
        var told: [PublicPoint: Int] = [:]
        for one in coordinates {
            let rank = one.isSigned ? 0 : told[one.server, default: 0] + 1
            if !one.isSigned { told[one.server] = rank }
            if let place = ids.firstIndex(where: { $0.id == one.installationID }) {
                ids[place].rank = min(ids[place].rank, rank)
            } else if wanted?.contains(where: { $0 == one.installationID }) ?? true {
                ids.append((one.installationID, rank))
            }
        }
        let ordered = ids.enumerated().sorted { left, right in
            let (l, r) = (lastActivity(left.element.id), lastActivity(right.element.id))
            if l != r { return l > r }
            return (left.element.rank, left.offset) < (right.element.rank, right.offset)
        }
        let most = min(max(limit, StatusLimits.leastInstallations), StatusLimits.mostInstallations)
        return ordered.prefix(most).map(\.element.id)
    }

    private func lastActivity(_ id: Secret) -> UnixTime {
        activity.first { $0.id == id }?.at ?? .distantPast
    }

    // MARK: keeping

    func rows(_ person: PublicPoint) -> [[Secret]] {
        var rows = [
            [
                Secret("person".utf8), EndRows.text(person), EndRows.text(pushKey), EndRows.text(lastQuery),
                EndRows.text(usedAt), contactTopicKey?.hexDigits ?? Secret([]),
                queryTopicKey?.hexDigits ?? Secret([])
            ]
        ]
        for one in coordinates { rows.append([Secret("server".utf8)] + one.row) }
        for one in withheld {
            rows.append([Secret("withheld".utf8), one.installation, Secret(String(one.version).utf8)])
        }
        for one in activity { rows.append([Secret("active".utf8), one.id, EndRows.text(one.at)]) }
        return rows
    }

    /// - Returns: `nil` for a row that ``rows(_:)`` has not written.
    init?(row: [Secret]) {
        guard row.count == 7, let pushKey = EndRows.point(row[2]), let usedAt = EndRows.time(row[4]) else {
            return nil
        }
        self.init(pushKey, now: usedAt)
        lastQuery = EndRows.time(row[3])
        contactTopicKey = EndRows.topicKey(row[5])
        queryTopicKey = EndRows.topicKey(row[6])
    }

    /// - Returns: `false` for a row that ``rows(_:)`` has not written.
    mutating func add(row: [Secret]) -> Bool {
        switch row.first?.word {
        case "server":
            guard let one = Coordinates(row.dropFirst()), coordinates.count < StatusLimits.targetCoordinates
            else { return false }
            coordinates.append(one)
        case "withheld":
            guard row.count == 3, let version = UInt64(row[2].word),
                withheld.count < StatusLimits.targetCoordinates
            else { return false }
            withheld.append((row[1], version))
        case "active":
            guard row.count == 3, let at = EndRows.time(row[2]),
                activity.count < StatusLimits.targetCoordinates
            else { return false }
            activity.append((row[1], at))
        default: return false
        }
        return true
    }
}
