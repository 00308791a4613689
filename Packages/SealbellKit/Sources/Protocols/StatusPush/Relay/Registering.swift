import Primitives
import PushModel
import Secp256k1Keys

/// Registrations, check by check (docs/conformance/status.md has the order).
extension StatusRelay {
    func register(_ box: Secret, _ inbound: StatusInbound) async throws(StatusError) -> StatusVerdict {
        let plain = try open(box, of: inbound.signer)
        let person = StatusHash.person(inbound.signer)
        try take(Toll(allowances.ownRegistrations, of: Self.payer(person)))
        let registration = try PushNotificationRegistration(reading: plain)
        let name = keys.registration(of: person, installation: registration.installationID)
        let known = try await checkVersion(registration, name)
        let change: [Change]
        if registration.unregister {
            change = try await unregistering(registration, name, person, known)
        } else {
            try check(registration, by: inbound.signer)
            change = try await registering(registration, name, person)
        }
        let response = PushNotificationRegistrationResponse(
            success: true, requestID: Secret(SHAKE256.hash64(box)))
        return Verdict(
            changes: change, reply: .now(StatusReply(to: inbound.signer, .registration(response))),
            // The first means that the version was taken since it was read; the others mean that another
            // registration came first.
            refusal: { StatusError($0 == 0 ? .outdatedVersion : .overloaded) },
            notes: [NoteCode(registration.unregister ? "status.unregistered" : "status.registered")])
    }

    /// A registration that does not open proves nothing: it is charged to nobody and not answered. Deployed
    /// servers answer it.
    private func open(_ box: Secret, of client: PublicPoint) throws(StatusError) -> Secret {
        do throws(StatusError) {
            return try StatusBox.open(box, key: identity.sharedX(with: client))
        } catch {
            if policy.isStatusGo { try take(Toll(allowances.unopened, of: .everybody)) }
            throw error
        }
    }

    private func take(_ toll: Toll) throws(StatusError) {
        if let wait = charge(toll) { throw .rateLimited(retryAfter: wait) }
    }

    /// The signature and the box have proved the key.
    private static func payer(_ person: Secret) -> Payer {
        let half = person.reveal { Digest16(UnsafeRawBufferPointer(rebasing: $0.prefix(16))) }
        return half.map { .peer($0) } ?? .everybody
    }

    /// - Returns: what is stored under that name.
    private func checkVersion(
        _ registration: PushNotificationRegistration, _ name: RecordKey
    ) async throws(StatusError) -> Record? {
        if policy.isStatusGo, registration.version == 0 { throw StatusError(.outdatedVersion) }
        let id = registration.installationID
        let isNamed = policy.isStatusGo ? AccessToken.isUUID(id) : id.count > 0
        guard isNamed, id.count <= StatusLimits.installationBytes, registration.version > 0 else {
            throw StatusError(.malformedRegistration)
        }
        let known = try await find([name])[0]
        if let known, known.version >= registration.version { throw StatusError(.outdatedVersion) }
        return known
    }

    private func check(
        _ registration: PushNotificationRegistration, by client: PublicPoint
    ) throws(StatusError) {
        let isAssigned = registration.tokenType == .apn || registration.tokenType == .firebase
        // A kind of token that no service of the instance takes at present; this is checked before everything
        // else.
        guard isAssigned || policy.isStatusGo, policy.serves(registration.tokenType) else {
            throw StatusError(.unsupportedTokenType)
        }
        guard registration.tokenType != .unknown, isToken(registration),
            AccessToken.isUUID(registration.accessToken), isTopic(registration)
        else { throw StatusError(.malformedRegistration) }
        guard policy.serves(registration) else { throw StatusError(.unsupportedTokenType) }
        guard
            Grant.holds(
                registration.grant, client: client, server: identity.point,
                accessToken: registration.accessToken)
        else { throw StatusError(.refusedGrant) }
    }

    /// A device token goes into a path or into JSON. An Apple token that is not hexadecimal is accepted, as
    /// in deployed servers; its first push ends the registration.
    private func isToken(_ registration: PushNotificationRegistration) -> Bool {
        let token = registration.deviceToken
        let isApple = registration.tokenType == .apn
        return (1...(isApple ? StatusLimits.appleTokenBytes : StatusLimits.deviceTokenBytes))
            .contains(token.count) && token.reveal { $0.allSatisfy { (0x21...0x7E).contains($0) } }
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
            address: keys.address(of: registration.deviceToken, bundle: bundle),
            version: registration.version, touchedAt: now, body: StatusRow(person: person, registration).body)
        let topics = [WakuTopic.query(of: person), WakuTopic.prefixedQuery(of: person)]
        let known = try await find(topics.map { keys.topic($0) })
        // People who are already followed need no new topic key, and do not wait for those who do.
        if known.contains(where: { $0.flatMap { FollowedTopic($0) } == nil }),
            !takesNewcomer()
        {
            throw StatusError(.overloaded)
        }
        var changes: [Change] = [.put(record, if: .versionBelow(registration.version))]
        for (topic, known) in zip(topics, known) {
            // Written again each time, so that another installation's end does not remove it.
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

    private func takesNewcomer() -> Bool { charge(Toll(allowances.registrations, of: .everybody)) == nil }

    @concurrent
    private static func derive(_ topic: WakuTopic) async -> Secret { TopicKey.derive(from: topic) }

    /// Only the version stays, under a name that reveals neither person nor installation. This holds on first
    /// contact too, because otherwise an earlier registration could be replayed.
    private func unregistering(
        _ registration: PushNotificationRegistration, _ name: RecordKey, _ person: Secret, _ known: Record?
    ) async throws(StatusError) -> [Change] {
        // A key without a registration here leaves a row behind, and keys cost nothing: it counts as a
        // newcomer.
        guard known != nil || takesNewcomer() else { throw StatusError(.overloaded) }
        let now = world.now()
        // A message has no time, so somebody who kept one may replay it years later: if there was a
        // registration, its version stays. If there was none, only messages that nodes still keep can come.
        let wasRegistered = known.map { $0.state != .tombstone || $0.expiresAt == .distantFuture } ?? false
        // The hour at which somebody left reveals less than the millisecond, and nothing depends on it.
        let hour = Self.hour(of: now)
        let ends = hour + .seconds(3_600) + StatusLimits.requestMemory
        let tombstone = Record(
            key: name, version: registration.version, state: .tombstone, touchedAt: hour,
            expiresAt: wasRegistered ? .distantFuture : ends, body: .none)
        return try await [.put(tombstone, if: .versionBelow(registration.version))]
            + unfollowing(person, besides: registration.installationID)
    }

    /// The hour that has begun.
    static func hour(of time: UnixTime) -> UnixTime {
        UnixTime(milliseconds: time.milliseconds / 3_600_000 * 3_600_000)
    }
}
