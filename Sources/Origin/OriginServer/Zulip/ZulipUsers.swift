import Delivery
import PushModel
import Synchronization
package import ZulipPush

/// Why a user's registrations did not change.
package enum ZulipUsersRefusal: DeferringError {
    /// The client's fault; nothing has changed.
    case refused(OriginRefusal)
    case origin(OriginError)

    package var codeText: String {
        switch self {
        case .refused(let refusal): refusal.code
        case .origin(let error): error.codeText
        }
    }
    package var sentence: String {
        switch self {
        case .refused(let refusal): refusal.sentence
        case .origin(let error): error.sentence
        }
    }

    package static func overloaded(retryAfter: Duration?) -> Self {
        .origin(.overloaded(retryAfter: retryAfter))
    }
    package static func rateLimited(retryAfter: Duration) -> Self {
        .origin(.rateLimited(retryAfter: retryAfter))
    }
    package var isOverloaded: Bool { if case .origin(let error) = self { error.isOverloaded } else { false } }
}

/// The registrations of all users, as rows of the store: the shell around ``ZulipRegistrations``.
///
/// Each user's registrations are one record. A step's changes, the calls that it owes, and the end of calls
/// that are over are one commit; clients are told after the commit, and before anything else happens to this
/// user in this process. If another process on the same store makes the commit fail, the step is repeated
/// with the new state.
package final class ZulipUsers: Sendable {
    package let context: ZulipOriginContext
    package let settings: ZulipOriginSettings
    package let polls: EventPolls
    private let turns = UserTurns()

    /// How often a step is repeated because another process changed the same user's registrations.
    private static let attempts = 8

    package init(_ context: ZulipOriginContext, _ settings: ZulipOriginSettings, polls: EventPolls) {
        self.context = context
        self.settings = settings
        self.polls = polls
    }

    /// A user's registrations, as they stand.
    struct Standing: Sendable {
        let user: String
        var registrations: ZulipRegistrations
        /// `nil`: the user has none yet.
        let revision: UInt64?
    }

    func key(_ user: String) -> RecordKey { context.space.state("zulip", of: user) }

    /// - Parameter id: the number of the intended user, because another may have the name by now.
    /// - Throws: `.unknownUser` for a user who does not exist, or no longer exists.
    func read(_ user: String, realm: String, id: Int64? = nil) async throws(OriginError) -> Standing {
        let records: [Record?]
        do throws(StoreError) {
            records = try await context.registry.find([context.space.user(user), key(user)])
        } catch { throw OriginError(error) }
        guard let person = records.first??.body, let known = OriginUser(body: person),
            id ?? known.id == known.id
        else { throw OriginError(.unknownUser) }
        guard let found = records.last ?? nil else {
            let none = ZulipRegistrations(
                realm: realm, times: settings.times, limit: settings.devicesPerUser)
            return Standing(user: user, registrations: none, revision: nil)
        }
        let read = ZulipRegistrations(
            body: found.body, realm: realm, times: settings.times, limit: settings.devicesPerUser)
        guard let read else { throw OriginError(.damagedRecord) }
        return Standing(user: user, registrations: read, revision: found.revision)
    }

    /// A record of the store as one user's registrations.
    ///
    /// - Returns: `nil` for one that cannot be read.
    func read(_ record: Record, realm: String) -> (user: String, ZulipRegistrations)? {
        let name = record.key.name.reveal { String(decoding: $0, as: UTF8.self) }
        let read = ZulipRegistrations(
            body: record.body, realm: realm, times: settings.times, limit: settings.devicesPerUser)
        return read.map { (name, $0) }
    }

    /// Ends registrations that no answer has ended: looks at each user who has owed one for a day or longer,
    /// or, if that is shorter, for as long as one is owed.
    package func sweep() async throws(OriginError) {
        var after: UInt64 = 0
        let old = context.world.now() - min(settings.times.end, ZulipOriginLimits.deployedRegistrationEnd)
        var seen: Set<String> = []
        while true {
            let page: [Record]
            do throws(StoreError) {
                page = try await context.registry.page(.space(context.space.calls), after: after, limit: 256)
            } catch { throw OriginError(error) }
            for record in page where record.touchedAt <= old {
                guard let subject = RegistrationSubject(record.body), seen.insert(subject.user).inserted
                else { continue }
                do throws(ZulipUsersRefusal) {
                    try await change(
                        subject.user, realm: subject.realm, { _ in ZulipStep() }, behind: { _, _ in })
                } catch { throw OriginError(.overloaded) }
            }
            guard page.count == 256, let last = page.last else { return }
            after = last.revision
        }
    }

    /// Does something in a user's turn, so that none of their registrations changes meanwhile.
    package func during<Result: Sendable>(
        _ user: String, _ work: () async throws(OriginError) -> Result
    ) async throws(OriginError) -> Result {
        try await turns.take(user, work)
    }

    /// Something happens to a user's registrations.
    ///
    /// - Parameter id: the number of the intended user; `nil`: the one who has the name.
    /// - Parameter event: makes the step; it may be asked again, of other registrations.
    /// - Parameter behind: called with the committed state, in the same turn, so that nothing happens to the
    ///   user in between.
    package func change<Reply: Sendable>(
        _ user: String, realm: String, id: Int64? = nil,
        _ event: @Sendable (inout ZulipRegistrations) throws(OriginRefusal) -> ZulipStep,
        behind: @Sendable (ZulipRegistrations, ZulipStep) throws(OriginRefusal) -> Reply
    ) async throws(ZulipUsersRefusal) -> Reply {
        try await turns.take(user) { () throws(ZulipUsersRefusal) in
            let (registrations, step) = try await self.commit(user, realm: realm, id: id, event)
            do throws(OriginRefusal) { return try behind(registrations, step) } catch {
                throw .refused(error)
            }
        }
    }

    private func commit(
        _ user: String, realm: String, id: Int64?,
        _ event: @Sendable (inout ZulipRegistrations) throws(OriginRefusal) -> ZulipStep
    ) async throws(ZulipUsersRefusal) -> (ZulipRegistrations, ZulipStep) {
        for _ in 0..<Self.attempts {
            var standing: Standing
            do throws(OriginError) { standing = try await read(user, realm: realm, id: id) } catch {
                throw .origin(error)
            }
            let now = context.world.now()
            // Registrations whose time is over end first. Their calls are already owed.
            var events = standing.registrations.tick(now: now)
            events.calls = []
            let step: ZulipStep
            do throws(OriginRefusal) { step = try event(&standing.registrations) } catch {
                throw .refused(error)
            }
            do throws(ZulipUsersRefusal) {
                guard try await commit(standing, events, step, now) else { continue }
            } catch {
                // The commit may still have been made, and clients would not be told of it: clients whose
                // queue is gone ask for the state again.
                if !(events.events + step.events).isEmpty { polls.closeAll(of: user) }
                throw error
            }
            polls.add(events.events + step.events, of: user)
            for alert in events.alerts + step.alerts { context.alert(alert, realm) }
            return (standing.registrations, step)
        }
        throw .origin(OriginError(.overloaded))
    }

    /// - Returns: false when the registrations have changed meanwhile.
    private func commit(
        _ standing: Standing, _ first: ZulipStep, _ second: ZulipStep, _ now: UnixTime
    ) async throws(ZulipUsersRefusal) -> Bool {
        let changed = first.changes + second.changes
        guard !changed.isEmpty || !second.calls.isEmpty else { return true }
        let key = key(standing.user)
        let owner = context.space.user(standing.user)
        let record = Record(
            key: key, owner: owner, touchedAt: now, body: standing.registrations.encoded())
        var changes: [Change] = [
            .put(record, if: standing.revision.map { .revision($0) } ?? .absent)
        ]
        for case .removeItem(let item) in changed {
            changes.append(.delete(context.space.call(item, of: standing.user), if: .any))
        }
        var pushes: [Push] = []
        for call in second.calls {
            guard let push = push(call, standing, now) else { throw .origin(OriginError(.overloaded)) }
            changes.append(
                .put(
                    Record(
                        key: context.space.call(call.id.item, of: standing.user), owner: owner,
                        touchedAt: now, body: subject(call.id.item, standing)),
                    if: .any))
            pushes.append(push)
        }
        var verdict = Verdict<Bool, OriginError>(
            pushes: pushes, changes: changes, reply: .now(true),
            refusal: { _ in OriginError(.nameTaken) })
        verdict.turns = .byOrigin
        do throws(IntakeRefusal<OriginError>) {
            return try await context.intake.admit(verdict, instance: context.space.instance)
        } catch {
            switch error {
            case .refused: return false
            case .overloaded, .tooFarAhead: throw .origin(OriginError(.overloaded))
            }
        }
    }

    /// A registration as it is owed. It is owed a little longer than its item lasts, so that its end is told
    /// by the item.
    ///
    /// - Returns: `nil` when the server has not signed up, where a door has refused the call before.
    private func push(_ call: ZulipQueuedCall, _ standing: Standing, _ now: UnixTime) -> Push? {
        guard let origin = context.origin() else { return nil }
        let made = call.call(by: origin)
        return Push(
            message: .uplink(
                UplinkMessage(
                    kind: .registration, method: .post, server: "", path: Secret(made.url.utf8),
                    contentType: made.contentType, body: made.body,
                    subject: subject(call.id.item, standing))),
            pushClass: .normal, origin: Secret(standing.user.utf8),
            record: context.space.call(call.id.item, of: standing.user), touchedAt: now,
            custodyEnds: now + settings.times.end + .seconds(7_200), repeatIdentity: nil)
    }

    private func subject(_ item: UInt64, _ standing: Standing) -> Secret {
        RegistrationSubject(user: standing.user, realm: standing.registrations.realm, item: item).body
    }
}

/// What an owed registration is about.
struct RegistrationSubject: Sendable {
    let user: String
    let realm: String
    let item: UInt64

    private static let format: UInt8 = 1

    var body: Secret {
        Secret(stored: StoredSize.byte + StoredSize.of(user) + StoredSize.of(realm) + StoredSize.word) {
            $0.put(Self.format)
            $0.put(user)
            $0.put(realm)
            $0.put(Int64?.some(Int64(bitPattern: item)))
        }
    }

    init(user: String, realm: String, item: UInt64) {
        self.user = user
        self.realm = realm
        self.item = item
    }

    init?(_ body: Secret) {
        let read: RegistrationSubject? = body.reveal { bytes in
            var reader = StoredReader(bytes)
            guard reader.byte() == Self.format, let user = reader.text(), let realm = reader.text(),
                let item = reader.optionalWord() ?? nil, reader.isAtEnd
            else { return nil }
            return RegistrationSubject(user: user, realm: realm, item: UInt64(bitPattern: item))
        }
        guard let read else { return nil }
        self = read
    }
}

extension HTTPCall {
    /// Of the body; empty: there is none.
    var contentType: String {
        headers.first { $0.name.lowercased() == "content-type" }?.value.reveal {
            String(decoding: $0, as: UTF8.self)
        } ?? ""
    }
}
