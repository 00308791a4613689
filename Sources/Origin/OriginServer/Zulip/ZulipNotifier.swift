import Delivery
package import PushModel
import Uplink
import WireFormats
package import ZulipPush

/// The result of a notification at one device.
package struct NotifiedDevice: Sendable, Hashable {
    package enum State: UInt8, Sendable { case waiting = 0, accepted = 1, dead = 2, refused = 3 }

    /// `account 7`, `device 12`: as the user's clients know it.
    package let name: String
    /// The name that the relay's answers use for it.
    package let relayName: String
    let profile: ZulipProfile
    package var state: State
    package var at: UnixTime
    /// Why it was refused; a word of ours.
    package var reason: String
    /// The id of the push at the relay, as `sealbell why` takes it there; empty: the relay has told none.
    package var reference = ""
}

/// Seals notifications for users' devices, owes them to the relay, and keeps the results for a day.
package struct ZulipNotifier: Sendable {
    private let users: ZulipUsers
    private let calls = NotificationCalls()
    private var context: ZulipOriginContext { users.context }

    /// How long a notification is owed, and what is known of it kept (§14.6).
    package static let life = Duration.seconds(86_400)

    package init(_ users: ZulipUsers) { self.users = users }

    /// - Parameter id: of the notification: 32 hex digits.
    /// - Parameter body: what devices show, sealed before anything is stored.
    /// - Parameter beside: changes for the same commit, by how many devices there are.
    /// - Returns: for how many devices it is owed now; `nil`: a change did not meet its condition.
    /// - Throws: `.origin(.overloaded)`; `.refused` where the content is too large for a push.
    package func notify(
        _ user: OriginUser, id: String, _ body: ZulipNotification.Body, isTest: Bool = false,
        of subject: ZulipQueueItem.Subject? = nil, beside: @Sendable (Int) -> [Change] = { _ in [] }
    ) async throws(ZulipUsersRefusal) -> Int? {
        let standing: ZulipUsers.Standing
        let realm: OriginRealm?
        do throws(OriginError) {
            standing = try await users.read(user.name, realm: user.realm, id: user.id)
            realm = try await context.people.find(realm: user.realm)
        } catch { throw .origin(error) }
        let targets: [ZulipTarget]
        if isTest {
            do throws(OriginRefusal) { targets = try standing.registrations.targets(of: subject) } catch {
                throw .refused(error)
            }
        } else {
            targets = standing.registrations.targets
        }
        let now = context.world.now()
        let devices = standing.registrations.notified(now, only: isTest ? subject : nil)
        var verdict = Verdict<Bool, OriginError>(
            pushes: try pushes(body, targets, user, realm, id, now),
            changes: beside(targets.count) + [.put(record(id, user.name, devices, now), if: .any)],
            reply: .now(true), refusal: { _ in OriginError(.nameTaken) })
        verdict.turns = .byOrigin
        let references = PushReferences()
        verdict.references = references
        do throws(IntakeRefusal<OriginError>) {
            _ = try await context.intake.admit(verdict, instance: context.space.instance)
        } catch {
            if case .refused = error { return nil }
            throw .origin(OriginError(.overloaded))
        }
        for call in references.all.compactMap(\.self) { calls.note(call, of: id) }
        return targets.count
    }

    private func pushes(
        _ body: ZulipNotification.Body, _ targets: [ZulipTarget], _ user: OriginUser,
        _ realm: OriginRealm?, _ id: String, _ now: UnixTime
    ) throws(ZulipUsersRefusal) -> [Push] {
        guard !targets.isEmpty else { return [] }
        guard let origin = context.origin(), let realm else { throw .origin(OriginError(.overloaded)) }
        let notification = ZulipNotification(
            realmURL: realm.url, realmName: realm.name, userID: user.id, body: body)
        var pushes: [Push] = []
        var generator = WorldGenerator(world: context.world)
        for profile in ZulipProfile.allCases {
            let some = targets.filter { $0.profile == profile }
            let calls: [HTTPCall]
            do throws(ZulipError) {
                calls = try origin.notify(notification, to: some, realm: user.realm, using: &generator)
            } catch { throw .origin(OriginError(.tooMuchContent)) }
            let subject = NotificationSubject(
                id: id, user: user.name, realm: user.realm, profile: profile, askedAt: now)
            for call in calls {
                pushes.append(
                    Push(
                        message: .uplink(
                            UplinkMessage(
                                kind: .notification, method: .post, server: "",
                                path: Secret(call.url.utf8), contentType: call.contentType, body: call.body,
                                subject: subject.body)),
                        pushClass: notification.body.pushClass, origin: Secret(user.name.utf8),
                        // It ends with its record, so nothing is sent for a user who was removed.
                        record: context.space.notification(id), touchedAt: now,
                        custodyEnds: now + Self.life, repeatIdentity: nil))
            }
        }
        return pushes
    }

    // MARK: What became of it

    private static let format: UInt8 = 0x72

    private func record(
        _ id: String, _ user: String, _ devices: [NotifiedDevice], _ at: UnixTime
    ) -> Record {
        let size = devices.reduce(StoredSize.byte + StoredSize.of(user)) { size, device in
            size + 2 * StoredSize.byte + StoredSize.word + StoredSize.of(device.name)
                + StoredSize.of(device.relayName) + StoredSize.of(device.reason)
                + StoredSize.of(device.reference)
        }
        let body = Secret(stored: size) { writer in
            writer.put(Self.format)
            writer.put(user)
            for device in devices {
                writer.put(device.name)
                writer.put(device.relayName)
                writer.put(device.profile.stored)
                writer.put(device.state.rawValue)
                writer.put(Int64?.some(device.at.milliseconds))
                writer.put(device.reason)
                writer.put(device.reference)
            }
        }
        return Record(
            key: context.space.notification(id), owner: context.space.user(user), touchedAt: at,
            expiresAt: at + Self.life, body: body)
    }

    /// - Returns: `nil` for an id that nobody knows, or of which a day has passed.
    package func devices(of id: String) async throws(OriginError) -> (user: String, [NotifiedDevice])? {
        guard let read = try await read(id) else { return nil }
        return (read.user, read.devices)
    }

    /// The calls to the relay that a notification became, as far as this process has owed or made them.
    package func calls(of id: String) -> [PushID] { calls.all(of: id) }

    private func read(
        _ id: String
    ) async throws(OriginError) -> (user: String, devices: [NotifiedDevice], record: Record)? {
        let found: Record?
        do throws(StoreError) {
            found = try await context.registry.find([context.space.notification(id)]).first ?? nil
        } catch { throw OriginError(error) }
        guard let found else { return nil }
        let read: (String, [NotifiedDevice])? = found.body.reveal { bytes in
            var reader = StoredReader(bytes)
            guard reader.byte() == Self.format, let user = reader.text() else { return nil }
            var devices: [NotifiedDevice] = []
            while !reader.isAtEnd {
                guard let device = NotifiedDevice(&reader) else { return nil }
                devices.append(device)
            }
            return (user, devices)
        }
        guard let read else { throw OriginError(.damagedRecord) }
        return (read.0, read.1, found)
    }

    /// The relay has answered a notification.
    func settle(_ answer: CallAnswer, _ message: UplinkMessage, _ call: PushID) async -> UplinkVerdict {
        guard let subject = NotificationSubject(message.subject) else { return .refused }
        calls.note(call, of: subject.id)
        switch ZulipOrigin.notifyOutcome(answer, profile: subject.profile) {
        case .retry(let fault):
            if let fault { context.alert(.registrationRefused(fault), subject.realm) }
            if answer.status == 401 { return .callerRefused }
            return .again(after: answer.pause(now: context.world.now()) ?? .zero, blames: true)
        case .sent(let sent):
            return await note(
                subject, sent.deadTokenIDs.map(\.text) + sent.deadDeviceIDs.map { String($0) },
                references: sent.references)
        case .realmIsOff(let fault), .refused(let fault):
            context.alert(.registrationRefused(fault), subject.realm)
            let verdict = await note(subject, [], refusal: fault)
            return verdict == .done ? .refused : verdict
        }
    }

    /// Dead devices end first, because the note reports what has been done.
    private func note(
        _ subject: NotificationSubject, _ dead: [String], references: [String: String] = [:],
        refusal: RelayFault? = nil
    ) async -> UplinkVerdict {
        if !dead.isEmpty {
            let realm = subject.realm
            let (profile, asked) = (subject.profile, subject.askedAt)
            do throws(ZulipUsersRefusal) {
                try await users.change(
                    subject.user, realm: realm,
                    { registrations in
                        profile == .v12
                            ? registrations.end(
                                tokens: dead.compactMap { TokenID($0) }, realm: realm, askedAt: asked)
                            : registrations.end(
                                devices: dead.compactMap { Int64($0) }, realm: realm, askedAt: asked)
                    }, behind: { _, _ in })
            } catch {
                // A removed user has no devices that could end.
                guard case .origin(let error) = error, error.code == .unknownUser else { return .uncommitted }
            }
        }
        return await write(subject, Set(dead), references, refusal)
    }

    private func write(
        _ subject: NotificationSubject, _ dead: Set<String>, _ references: [String: String],
        _ refusal: RelayFault?
    ) async -> UplinkVerdict {
        // Calls of other profiles may be answered at the same time.
        for _ in 0..<8 {
            do throws(OriginError) {
                guard let (user, found, record) = try await read(subject.id) else { return .done }
                var devices = found
                for index in devices.indices where devices[index].profile == subject.profile {
                    devices[index].state =
                        refusal != nil
                        ? .refused : dead.contains(devices[index].relayName) ? .dead : .accepted
                    devices[index].at = context.world.now()
                    devices[index].reason = refusal?.rawValue ?? ""
                    devices[index].reference = references[devices[index].relayName] ?? ""
                }
                var next = self.record(subject.id, user, devices, record.touchedAt)
                next.expiresAt = record.expiresAt
                let applied: Applied
                do throws(StoreError) {
                    applied = try await context.registry.apply([.put(next, if: .revision(record.revision))])
                } catch { throw OriginError(error) }
                if applied == .committed { return .done }
            } catch { return .uncommitted }
        }
        return .uncommitted
    }
}
