import Primitives
import PushModel
import Secp256k1Keys

/// Registrations, check by check (docs/conformance/status.md has the order).
extension StatusRelay {
    func register(_ box: Secret, _ inbound: StatusInbound) async throws(StatusError) -> StatusVerdict {
        let plain = try StatusBox.open(box, key: identity.sharedX(with: inbound.signer))
        let registration = try PushNotificationRegistration(reading: plain)
        let person = StatusHash.person(inbound.signer)
        let name = keys.registration(of: person, installation: registration.installationID)
        try await checkVersion(registration, name)
        let change: [Change]
        if registration.unregister {
            change = try await unregistering(registration, name, person)
        } else {
            try check(registration, by: inbound.signer)
            change = try await registering(registration, name, person)
        }
        let response = PushNotificationRegistrationResponse(
            success: true, requestID: Secret(SHAKE256.hash64(box)))
        return Verdict(
            changes: change, reply: .now(StatusReply(to: inbound.signer, .registration(response))),
            // Of the first the version was taken since it was looked at; the others met another registration.
            refusal: { StatusError($0 == 0 ? .outdatedVersion : .overloaded) },
            notes: [NoteCode(registration.unregister ? "status.unregistered" : "status.registered")])
    }

    private func checkVersion(
        _ registration: PushNotificationRegistration, _ name: RecordKey
    ) async throws(StatusError) {
        if policy.isStatusGo, registration.version == 0 { throw StatusError(.outdatedVersion) }
        let id = registration.installationID
        let isNamed = policy.isStatusGo ? AccessToken.isUUID(id) : id.count > 0
        guard isNamed, id.count <= StatusLimits.installationBytes, registration.version > 0 else {
            throw StatusError(.malformedRegistration)
        }
        if let known = try await find([name])[0], known.version >= registration.version {
            throw StatusError(.outdatedVersion)
        }
    }

    private func check(
        _ registration: PushNotificationRegistration, by client: PublicPoint
    ) throws(StatusError) {
        let isAssigned = registration.tokenType == .apn || registration.tokenType == .firebase
        if !policy.isStatusGo, !isAssigned { throw StatusError(.unsupportedTokenType) }
        guard registration.tokenType != .unknown,
            (1...StatusLimits.deviceTokenBytes).contains(registration.deviceToken.count),
            AccessToken.isUUID(registration.accessToken), isTopic(registration)
        else { throw StatusError(.malformedRegistration) }
        guard
            Grant.holds(
                registration.grant, client: client, server: identity.point,
                accessToken: registration.accessToken)
        else { throw StatusError(.refusedGrant) }
    }

    /// An APNs topic goes into a header field.
    private func isTopic(_ registration: PushNotificationRegistration) -> Bool {
        let topic = registration.apnTopic
        guard topic.count <= StatusLimits.apnTopicBytes,
            topic.reveal({ $0.allSatisfy { (0x21...0x7E).contains($0) } })
        else { return false }
        return topic.count > 0 || policy.isStatusGo || policy.defaultBundle != nil
            || registration.tokenType != .apn
    }

    private func registering(
        _ registration: PushNotificationRegistration, _ name: RecordKey, _ person: Secret
    ) async throws(StatusError) -> [Change] {
        let now = world.now()
        let isApple = registration.tokenType == .apn
        let bundle = isApple ? StatusPayload.bundle(registration, policy) : nil
        let record = Record(
            key: name, owner: keys.owner(person),
            address: StatusKeys.address(of: registration.deviceToken, bundle: bundle),
            version: registration.version, touchedAt: now, body: StatusRow(person: person, registration).body)
        let topics = [WakuTopic.query(of: person), WakuTopic.prefixedQuery(of: person)]
        let known = try await find(topics.map { keys.topic($0) })
        var changes: [Change] = [.put(record, if: .versionBelow(registration.version))]
        for (topic, known) in zip(topics, known) {
            // Written anew each time, so that another installation's end does not take it away.
            let key: Secret
            if let followed = known.flatMap({ FollowedTopic($0) }) {
                key = followed.key
            } else {
                key = await Self.derive(topic)
            }
            changes.append(.put(FollowedTopic.record(topic, key: key, keys, now: now), if: .any))
        }
        return changes
    }

    @concurrent
    private static func derive(_ topic: WakuTopic) async -> Secret { TopicKey.derive(from: topic) }

    /// The version stays, under a name that tells neither person nor installation, and nothing else does: on
    /// first contact too, because else a registration from before could come again.
    private func unregistering(
        _ registration: PushNotificationRegistration, _ name: RecordKey, _ person: Secret
    ) async throws(StatusError) -> [Change] {
        let tombstone = Record(
            key: name, version: registration.version, state: .tombstone, touchedAt: world.now(), body: .none)
        var changes: [Change] = [.put(tombstone, if: .versionBelow(registration.version))]
        let others = try await rows(person).filter { row in
            row.state == .live
                && StatusRow(row).map { !($0.registration.installationID == registration.installationID) }
                    ?? false
        }
        guard others.isEmpty else { return changes }
        let topics = [WakuTopic.query(of: person), WakuTopic.prefixedQuery(of: person)]
        for record in try await find(topics.map { keys.topic($0) }) {
            if let record { changes.append(.delete(record.key, if: .revision(record.revision))) }
        }
        return changes
    }
}
