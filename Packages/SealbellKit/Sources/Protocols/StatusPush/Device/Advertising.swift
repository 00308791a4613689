import PushModel
import Secp256k1Keys
import WireFormats

/// The contact code: which servers serve each installation of the account, for anybody to read.
extension StatusInstallation {
    /// When the advertisement is to be published; `nil`: there is nothing to say.
    var advertisementDue: UnixTime? {
        if advertises { return .distantPast }
        guard let lastAdvertisement, hasServers else { return nil }
        return lastAdvertisement + StatusLimits.advertisementPeriod
    }

    private var hasServers: Bool {
        isReceiving && standings.contains { $0.goal == .registered && $0.isLevel && $0.reached > 0 }
    }

    /// In as many messages as a network carries one by one: with contacts only, each server has the whole
    /// list of them.
    mutating func advertisement(
        _ now: UnixTime, _ generator: inout some RandomNumberGenerator
    ) -> [WakuMessage] {
        // A list of allowed keys cannot be made before the app has told the contacts.
        if isReceiving, settings == nil { return [] }
        guard let due = advertisementDue,
            due <= now || due.since(now) > StatusLimits.advertisementPeriod
        else { return [] }
        others.tidy(now)
        let parts = MessageParting.parts(ownInfo(&generator) + others.info)
        let topic = WakuTopic.contactCode(of: key.point)
        let topicKey = contactTopicKey ?? TopicKey.derive(from: topic)
        contactTopicKey = topicKey
        var messages: [WakuMessage] = []
        for info in parts {
            let code = ContactCodeAdvertisement(pushNotificationInfo: info, parts: parts.count)
            messages.append(
                EndMessages.sealContactCode(
                    code.encoded(), installationID: Secret(installationID.utf8), signedBy: key, on: topic,
                    topicKey: topicKey, now, &generator))
        }
        advertises = false
        lastAdvertisement = now
        return messages
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
        guard let source = found.installationID, !(source == mine),
            source.count <= StatusLimits.installationBytes
        else { return nil }
        let hash = StatusHash.person(key.point)
        let info = found.advertisement.pushNotificationInfo.filter {
            $0.installationID == source && $0.publicKey == hash
        }
        guard others.note(source, info, isPart: found.advertisement.isPart, now) else { return nil }
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

    /// - Parameter isPart: what it does not name was not withdrawn.
    /// - Returns: whether there is something new to say.
    mutating func note(
        _ id: Secret, _ info: [PushNotificationQueryInfo], isPart: Bool = false, _ now: UnixTime
    ) -> Bool {
        let place = list.firstIndex { $0.id == id }
        let known = place.map { list[$0].info } ?? []
        // An old advertisement that comes again takes nothing back.
        let versions = known.map(\.version).max() ?? 0
        if let newest = info.map(\.version).max(), newest < versions { return false }
        if let place { list[place].seenAt = now }
        guard !info.isEmpty else {
            guard !isPart, let place else { return false }
            list.remove(at: place)
            return true
        }
        let others = isPart ? Self.without(Self.versions(info), known) : []
        let all = Array((others + info).prefix(StatusLimits.deviceServers))
        guard Self.versions(known) != Self.versions(all) else { return false }
        let encoded = ContactCodeAdvertisement(pushNotificationInfo: all).encoded()
        let taken = list.reduce(0) { $0 + $1.encoded.count } - (place.map { list[$0].encoded.count } ?? 0)
        // It advertises itself. To make room for it would be new each time that one of two comes.
        guard encoded.count <= StatusLimits.otherInstallationBytes - taken else { return false }
        if let place {
            (list[place].info, list[place].encoded) = (all, encoded)
            return true
        }
        if list.count >= StatusLimits.otherInstallations,
            let oldest = list.indices.min(by: { list[$0].seenAt < list[$1].seenAt })
        {
            list.remove(at: oldest)
        }
        list.append(One(id: id, info: all, encoded: encoded, seenAt: now))
        return true
    }

    /// What is said of servers that are not among these.
    private static func without(
        _ servers: [PublicPoint: UInt64], _ info: [PushNotificationQueryInfo]
    ) -> [PushNotificationQueryInfo] {
        info.filter { one in
            EndRows.point(bytes: one.serverPublicKey).map { servers[$0] == nil } ?? false
        }
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

    var rows: [[Secret]] { list.map { [$0.id.hexDigits, EndRows.text($0.seenAt), $0.encoded.hexDigits] } }

    /// - Returns: `false` for a row that ``rows`` has not written.
    mutating func add(row: [Secret]) -> Bool {
        guard row.count == 3, list.count < StatusLimits.otherInstallations,
            let id = row[0].fromHex, let seenAt = EndRows.time(row[1]), let encoded = row[2].fromHex,
            // Then it is not one that was kept.
            let code = encoded.reveal({ try? ContactCodeAdvertisement(reading: $0) })
        else { return false }
        list.append(One(id: id, info: code.pushNotificationInfo, encoded: encoded, seenAt: seenAt))
        return true
    }
}
