import Primitives
package import PushModel
package import Secp256k1Keys

/// Telling servers, and what their answers mean (§11).
extension StatusInstallation {
    /// What is to be published now: registrations at servers that do not have the newest version, and the
    /// advertisement if something has changed or its time has come.
    ///
    /// A server that does not answer is told again after 15 s · n · 2^n, twelve times at most; then
    /// ``retry()`` or the next change begins anew.
    package mutating func due(
        now: UnixTime, using generator: inout some RandomNumberGenerator
    ) -> [WakuMessage] {
        outgoing(now, &generator).map(\.message)
    }

    /// The same, each with what it is about.
    mutating func outgoing(
        _ now: UnixTime, _ generator: inout some RandomNumberGenerator
    ) -> [(message: WakuMessage, matter: Matter)] {
        notice(&generator)
        var messages: [(message: WakuMessage, matter: Matter)] = []
        for place in standings.indices where standings[place].isDue(now) {
            if standings[place].goal == .registered {
                guard isReceiving, token != nil, settings != nil, told != nil else { continue }
            }
            let message = registration(place, now, &generator)
            let request = standings[place].requests.last ?? Secret([])
            messages.append((message, .registration(standings[place].server, request: request)))
        }
        return messages + advertisement(now, &generator).map { ($0, .advertisement) }
    }

    /// When ``due(now:using:)`` has something again; `nil` when nothing waits for time.
    package var nextDeadline: UnixTime? {
        let canRegister = isReceiving && isReady
        if canRegister, told != fingerprint { return .distantPast }
        let times = standings.filter { $0.goal == .unregistered || canRegister }.compactMap(\.dueAt)
        // A list of allowed keys cannot be made before the app has told the contacts.
        let advertisement = isReceiving && settings == nil ? nil : advertisementDue
        return (times + [advertisement].compactMap(\.self)).min()
    }

    /// What a message of this account's is about.
    enum Matter: Sendable {
        case registration(PublicPoint, request: Secret)
        case advertisement
    }

    /// What an answer means.
    package enum Event: Sendable, Hashable {
        /// The server has the newest version; the advertisement follows.
        case registered(PublicPoint)
        /// The server has forgotten the account.
        case unregistered(PublicPoint)
        /// It holds a higher version: it is told a still higher one.
        case versionRaised(PublicPoint)
        /// It does not take the registration, and is not asked again before something changes.
        case refused(PublicPoint, Refusal)
        /// It could not; it is asked again later.
        case later(PublicPoint)
        /// Another installation of the account has advertised its servers.
        case otherInstallation
    }

    package enum Refusal: Sendable, Hashable { case malformed, unsupportedToken, versionMismatch }

    /// Topics on which answers and the account's own advertisements arrive.
    package var topics: [String] {
        [WakuTopic.partitioned(of: key.point).contentTopic, WakuTopic.contactCode(of: key.point).contentTopic]
    }

    /// Takes a message of one of ``topics``.
    ///
    /// - Returns: `nil` for what is for somebody else, of another protocol, from a server that was not asked,
    ///   or no answer to the newest version; nothing has changed then.
    package mutating func receive(_ message: WakuMessage, now: UnixTime) -> Event? {
        if message.contentTopic == WakuTopic.contactCode(of: key.point).contentTopic,
            let event = receiveAdvertisement(message, now)
        {
            return event
        }
        guard message.contentTopic == WakuTopic.partitioned(of: key.point).contentTopic,
            let metadata = EndMessages.open(message, with: key),
            metadata.type == .registrationResponse,
            let place = standings.firstIndex(where: { $0.server == metadata.signer }),
            // Whatever does not parse is no answer.
            let answer = metadata.payload.reveal({ try? PushNotificationRegistrationResponse(reading: $0) }),
            standings[place].requests.contains(where: { $0 == answer.requestID })
        else { return nil }
        return settle(place, answer)
    }

    private mutating func settle(
        _ place: Int, _ answer: PushNotificationRegistrationResponse
    ) -> Event? {
        let server = standings[place].server
        guard !standings[place].isLevel else { return nil }
        if answer.success {
            standings[place].reached = standings[place].target
            standings[place].mismatches = 0
            standings[place].requests = []
            if standings[place].goal == .registered {
                advertises = true
                return .registered(server)
            }
            forgetLeftServers()
            return .unregistered(server)
        }
        switch answer.error {
        case .malformedMessage:
            standings[place].halt = .malformed
            return .refused(server, .malformed)
        case .unsupportedTokenType:
            standings[place].halt = .unsupportedToken
            return .refused(server, .unsupportedToken)
        case .versionMismatch:
            return raise(place) ? .versionRaised(server) : .refused(server, .versionMismatch)
        default:
            return .later(server)
        }
    }

    /// - Returns: `false` when this has been done too often.
    private mutating func raise(_ place: Int) -> Bool {
        let step = UInt64(1) << UInt64(min(standings[place].mismatches, StatusLimits.versionMismatches))
        guard standings[place].mismatches < StatusLimits.versionMismatches,
            max(version, standings[place].target) <= StatusLimits.highestVersion - step
        else {
            standings[place].halt = .versionMismatch
            return false
        }
        // One version line: the others are told the same record under the new number.
        let isOfAll = standings[place].goal == .registered
        _ = raiseVersion(by: step)
        for other in standings.indices where other != place && isOfAll {
            if standings[other].goal == .registered { standings[other].aim(.registered, at: version) }
        }
        standings[place].raise(to: version)
        return true
    }

    // MARK: changes

    /// What all servers are to be told, as a digest.
    var fingerprint: Digest16? {
        guard isReceiving, let token, let settings else { return nil }
        return KeyedHash.digest16(key: rowKey) { hash in
            hash.update(token.service.rawValue)
            for text in [token.text, token.topic] {
                hash.update(count: text.count)
                hash.update(text)
            }
            settings.update(hash)
            if let accessToken, !needsToken { hash.update(accessToken) }
        }
    }

    /// Whether the access token has to be another: there is none, somebody who could know it is no contact
    /// any more, or contacts alone are to know it from now on.
    private var needsToken: Bool {
        guard accessToken != nil, let settings else { return true }
        let present = Set(settings.contacts.map { digest($0) })
        return !tokenContacts.isSubset(of: present) || (settings.contactsOnly && !tokenIsForContacts)
    }

    /// Compares what servers were told with what is so now, and gives a change the next version.
    private mutating func notice(_ generator: inout some RandomNumberGenerator) {
        guard isReceiving, token != nil, let settings else { return }
        if needsToken {
            accessToken = Draw.uuid(&generator)
            tokenContacts = []
            told = nil
        }
        tokenContacts.formUnion(settings.contacts.map { digest($0) })
        tokenIsForContacts = settings.contactsOnly
        guard let fingerprint, fingerprint != told else {
            joinServers()
            return
        }
        guard raiseVersion() else { return }
        told = fingerprint
        for place in standings.indices where isWanted(standings[place]) {
            standings[place].aim(.registered, at: version)
        }
        advertises = advertises || standings.contains { $0.reached > 0 }
    }

    /// A server that came into the list since the last change gets the version that all have.
    private mutating func joinServers() {
        for place in standings.indices where standings[place].target == 0 && isWanted(standings[place]) {
            standings[place].aim(.registered, at: version)
        }
    }

    private func isWanted(_ standing: ServerStanding) -> Bool { standing.goal == .registered }

    // MARK: messages

    private mutating func registration(
        _ place: Int, _ now: UnixTime, _ generator: inout some RandomNumberGenerator
    ) -> WakuMessage {
        let standing = standings[place]
        var record = PushNotificationRegistration()
        record.installationID = Secret(installationID.utf8)
        record.version = standing.target
        if standing.goal == .unregistered {
            record.unregister = true
        } else if let token, let settings, let accessToken {
            record.tokenType = token.service == .apns ? .apn : .firebase
            record.deviceToken = token.text
            record.apnTopic = token.topic
            record.accessToken = accessToken
            record.enabled = settings.isEnabled
            record.grant = Grant.sign(by: key, server: standing.server, accessToken: accessToken)
            record.allowFromContactsOnly = settings.contactsOnly
            record.allowedKeyList = allowedKeyList(&generator)
            record.blockMentions = settings.blocksMentions
            record.blockedChatList = settings.blockedHashes
            record.mutedChatList = settings.mutedChats.map { StatusHash.chat($0) }
            record.allowedMentionsChatList = settings.chatsWithMentions.map { StatusHash.chat($0) }
        }
        let shared = key.sharedX(with: standing.server)
        let box = StatusBox.seal(record.encoded(), key: shared, nonce: Draw.bytes(12, &generator))
        standings[place].note(EndMessages.requestID(box), at: now)
        let topic =
            registrationTopic == .personal
            ? WakuTopic.personal(of: standing.server) : WakuTopic.partitioned(of: standing.server)
        return EndMessages.seal(
            .registration, box, signedBy: key, to: standing.server, on: topic, now,
            &generator)
    }

    /// The access token once for each contact, in no order; empty unless contacts alone may send.
    func allowedKeyList(
        _ generator: inout some RandomNumberGenerator
    ) -> [Secret] {
        guard let settings, settings.contactsOnly, let accessToken else { return [] }
        var list: [Secret] = []
        for contact in settings.contacts.shuffled(using: &generator) {
            list.append(
                StatusBox.seal(
                    accessToken, key: key.sharedX(with: contact), nonce: Draw.bytes(12, &generator)))
        }
        return list
    }
}
