import PushModel
import Secp256k1Keys
import WireFormats

/// The contact code: which servers serve each installation of the account, for anybody to read.
extension StatusDevice {
    /// When the advertisement is to be published; `nil`: there is nothing to say.
    var advertisementDue: UnixTime? {
        if advertises { return .distantPast }
        guard let lastAdvertisement, hasServers else { return nil }
        return lastAdvertisement + StatusLimits.advertisementPeriod
    }

    private var hasServers: Bool {
        isReceiving && standings.contains { $0.goal == .registered && $0.isLevel && $0.reached > 0 }
    }

    mutating func advertisement(
        _ now: UnixTime, _ generator: inout some RandomNumberGenerator
    ) -> WakuMessage? {
        // A list of allowed keys cannot be made before the app has told the contacts.
        if isReceiving, settings == nil { return nil }
        guard let due = advertisementDue,
            due <= now || due.since(now) > StatusLimits.advertisementPeriod
        else { return nil }
        others.tidy(now)
        let code = ContactCodeAdvertisement(pushNotificationInfo: ownInfo(&generator) + others.info)
        let topic = WakuTopic.contactCode(of: key.point)
        let topicKey = contactTopicKey ?? TopicKey.derive(from: topic)
        contactTopicKey = topicKey
        let message = EndMessages.sealContactCode(
            code.encoded(), installationID: Secret(installationID.utf8), signedBy: key, on: topic,
            topicKey: topicKey, now, &generator)
        advertises = false
        lastAdvertisement = now
        return message
    }

    private func ownInfo(
        _ generator: inout some RandomNumberGenerator
    ) -> [PushNotificationQueryInfo] {
        guard isReceiving, let accessToken, let settings else { return [] }
        let list = allowedKeyList(&generator)
        var info: [PushNotificationQueryInfo] = []
        // One that is behind still has the token of before, which is not to be told any more.
        for standing in standings where standing.goal == .registered && standing.isLevel {
            guard standing.reached > 0 else { continue }
            var one = PushNotificationQueryInfo()
            one.installationID = Secret(installationID.utf8)
            one.publicKey = StatusHash.person(key.point)
            one.grant = Grant.sign(by: key, server: standing.server, accessToken: accessToken)
            one.version = standing.reached
            one.serverPublicKey = Secret(standing.server.compressed)
            if settings.contactsOnly {
                one.allowedKeyList = list
            } else {
                one.accessToken = accessToken
            }
            info.append(one)
        }
        return info
    }

    /// What other installations of the account advertise.
    mutating func receiveAdvertisement(_ message: WakuMessage, _ now: UnixTime) -> Event? {
        let topic = WakuTopic.contactCode(of: key.point)
        let topicKey = contactTopicKey ?? TopicKey.derive(from: topic)
        contactTopicKey = topicKey
        guard let found = EndMessages.openContactCode(message, topicKey: topicKey),
            found.signer == key.point
        else { return nil }
        let mine = Secret(installationID.utf8)
        // Only first-hand: what one installation says of another would never end.
        guard let source = found.installationID, !(source == mine), source.count <= 64 else { return nil }
        let hash = StatusHash.person(key.point)
        let info = found.advertisement.pushNotificationInfo.filter {
            $0.installationID == source && $0.publicKey == hash
        }
        guard others.note(source, info, now) else { return nil }
        advertises = advertises || hasServers
        return .otherInstallation
    }
}

/// What other installations of the same account have advertised of themselves.
struct OtherInstallations: Sendable {
    private struct One: Sendable {
        let id: Secret
        var info: [PushNotificationQueryInfo]
        var encoded: Secret
        var seenAt: UnixTime
    }

    private var list: [One] = []

    /// - Returns: whether there is something new to say.
    mutating func note(_ id: Secret, _ info: [PushNotificationQueryInfo], _ now: UnixTime) -> Bool {
        let code = ContactCodeAdvertisement(
            pushNotificationInfo: Array(info.prefix(StatusLimits.deviceServers)))
        let encoded = code.encoded()
        if let place = list.firstIndex(where: { $0.id == id }) {
            let versions = list[place].info.map(\.version).max() ?? 0
            // An old advertisement that comes again takes nothing back.
            if let newest = code.pushNotificationInfo.map(\.version).max(), newest < versions { return false }
            list[place].seenAt = now
            guard !info.isEmpty else {
                list.remove(at: place)
                return true
            }
            guard Self.versions(list[place].info) != Self.versions(code.pushNotificationInfo) else {
                return false
            }
            list[place].info = code.pushNotificationInfo
            list[place].encoded = encoded
            return true
        }
        guard !info.isEmpty else { return false }
        if list.count >= StatusLimits.otherInstallations,
            let oldest = list.indices.min(by: { list[$0].seenAt < list[$1].seenAt })
        {
            list.remove(at: oldest)
        }
        list.append(One(id: id, info: code.pushNotificationInfo, encoded: encoded, seenAt: now))
        return true
    }

    private static func versions(_ info: [PushNotificationQueryInfo]) -> [PublicPoint: UInt64] {
        let pairs = info.compactMap { one in
            EndRows.point(bytes: one.serverPublicKey).map { ($0, one.version) }
        }
        return Dictionary(pairs, uniquingKeysWith: max)
    }

    mutating func tidy(_ now: UnixTime) {
        list.removeAll { now.since($0.seenAt) > StatusLimits.otherInstallationLife }
    }

    var info: [PushNotificationQueryInfo] { list.flatMap(\.info) }

    var rows: [[Secret]] { list.map { [$0.id, EndRows.text($0.seenAt), $0.encoded.hexDigits] } }

    /// - Returns: `false` for a row that ``rows`` has not written.
    mutating func add(row: [Secret]) -> Bool {
        guard row.count == 3, list.count < StatusLimits.otherInstallations,
            let seenAt = EndRows.time(row[1]), let encoded = row[2].fromHex,
            // Then it is not one that was kept.
            let code = encoded.reveal({ try? ContactCodeAdvertisement(reading: $0) })
        else { return false }
        list.append(One(id: row[0], info: code.pushNotificationInfo, encoded: encoded, seenAt: seenAt))
        return true
    }
}
