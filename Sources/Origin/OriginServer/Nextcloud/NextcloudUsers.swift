package import Delivery
package import NextcloudPush
package import PushModel
import RSAKeys
import Synchronization

/// What the Nextcloud half of an origin needs.
package struct NextcloudOriginContext: Sendable {
    package let space: OriginSpace
    package let people: OriginPeople
    package let registry: any Registry
    package let intake: Intake
    package let world: World
    /// The public address, which is part of every user's name.
    package let url: String
    package let origin: NextcloudOrigin

    package init(
        space: OriginSpace, people: OriginPeople, registry: any Registry, intake: Intake, world: World,
        url: String, origin: NextcloudOrigin
    ) {
        self.space = space
        self.people = people
        self.registry = registry
        self.intake = intake
        self.world = world
        self.url = url
        self.origin = origin
    }
}

/// Devices and notifications of all users, as rows of the store: the shell around
/// ``NextcloudRegistrations``. Each user has one record, with the key pair that vouches for them, and one for
/// each notification (docs/decisions/0125-texts-that-are-read-again.md).
package final class NextcloudUsers: Sendable {
    let context: NextcloudOriginContext
    private let turns = UserTurns()

    private static let attempts = 8
    private static let format: UInt8 = 0x82

    package init(_ context: NextcloudOriginContext) { self.context = context }

    /// What one user has.
    struct Standing: Sendable {
        let key: RSAPrivateKey
        var registrations: NextcloudRegistrations
        /// `nil`: the record is yet to be written.
        let revision: UInt64?
    }

    /// What an event finds beside the registrations.
    struct Moment: Sendable {
        let person: NextcloudUser
        let conditions: PushConditions
        let now: UnixTime
        let texts: [StoredNotification]
    }

    private func key(_ user: String) -> RecordKey { context.space.state("cloud", of: user) }

    private func read(_ user: String) async throws(OriginError) -> Standing? {
        let found: Record?
        do throws(StoreError) { found = try await context.registry.find([key(user)]).first ?? nil } catch {
            throw OriginError(error)
        }
        guard let found else { return nil }
        let read: Standing? = found.body.reveal { bytes in
            var reader = StoredReader(bytes)
            // A damaged key is a damaged record, whatever the library says of it.
            guard reader.byte() == Self.format, let pem = reader.secret(),
                let key = try? RSAPrivateKey(pem: pem), let body = reader.secret(), reader.isAtEnd,
                let registrations = NextcloudRegistrations(body: body)
            else { return nil }
            return Standing(key: key, registrations: registrations, revision: found.revision)
        }
        guard let read else { throw OriginError(.damagedRecord) }
        return read
    }

    /// Notifications by their numbers; those that cannot be read are skipped.
    private func texts(
        _ ids: [Int64], of user: String
    ) async throws(OriginError) -> [StoredNotification] {
        guard !ids.isEmpty else { return [] }
        do throws(StoreError) {
            let found = try await context.registry.find(ids.map { context.space.note($0, of: user) })
            return zip(ids, found).compactMap { id, record in
                record.flatMap { StoredNotification(body: $0.body) }.flatMap { $0.id == id ? $0 : nil }
            }
        } catch { throw OriginError(error) }
    }

    private func notes(of step: NextcloudStep, _ user: String, _ now: UnixTime) -> [Change] {
        let added = step.added.map { stored in
            Change.put(
                Record(
                    key: context.space.note(stored.id, of: user), owner: context.space.user(user),
                    touchedAt: now, expiresAt: stored.endsAt, body: stored.encoded()), if: .any)
        }
        return added + step.removed.map { .delete(context.space.note($0, of: user), if: .any) }
    }

    private func record(_ user: String, _ standing: Standing, _ now: UnixTime) -> Record {
        let (pem, body) = (standing.key.pem, standing.registrations.encoded())
        return Record(
            key: key(user), owner: context.space.user(user), touchedAt: now,
            body: Secret(stored: StoredSize.byte + StoredSize.of(pem) + StoredSize.of(body)) {
                $0.put(Self.format)
                $0.put(pem)
                $0.put(body)
            })
    }

    private func make() throws(OriginError) -> Standing {
        do throws(RSAError) {
            return Standing(key: try .generate(), registrations: NextcloudRegistrations(), revision: nil)
        } catch { throw OriginError(.overloaded) }
    }

    /// Does something in a user's turn, so that none of their registrations changes meanwhile.
    package func during<Result: Sendable>(
        _ user: String, _ work: () async throws(OriginError) -> Result
    ) async throws(OriginError) -> Result {
        try await turns.take(user, work)
    }

    /// Everything that can happen to a user.
    ///
    /// - Parameter makes: false: nothing happens to a user who has no record.
    /// - Parameter needs: numbers of the notifications whose texts the event reads.
    /// - Parameter event: makes the step; it may be asked again, of what stands then.
    func change(
        _ user: OriginUser, makes: Bool = true, beside: @Sendable (Int) -> [Change] = { _ in [] },
        needs: @Sendable (NextcloudRegistrations) -> [Int64] = { _ in [] },
        _ event:
            @Sendable (inout NextcloudRegistrations, Moment) throws(NextcloudError) -> NextcloudStep
    ) async throws(OriginError) -> NextcloudStep? {
        try await turns.take(user.name) { () throws(OriginError) in
            for _ in 0..<Self.attempts {
                var found = try await self.read(user.name)
                if found == nil, makes { found = try self.make() }
                guard try await self.context.people.user(user.name)?.id == user.id else {
                    throw OriginError(.unknownUser)
                }
                guard var standing = found else { return nil }
                let now = self.context.world.now()
                let person = NextcloudUser(
                    cloudID: AppPasswordIdentity.cloudID(user: user.name, serverURL: self.context.url),
                    key: standing.key)
                let moment = Moment(
                    person: person, conditions: user.conditions(now), now: now,
                    texts: try await self.texts(needs(standing.registrations), of: user.name))
                let step: NextcloudStep
                do throws(NextcloudError) { step = try event(&standing.registrations, moment) } catch {
                    throw OriginError(error.code == .sealingFailed ? .overloaded : .tooMuchContent)
                }
                // A key that was given to a device must still exist when the device asks again.
                guard step.hasChanged || standing.revision == nil || !step.entries.isEmpty else {
                    return step
                }
                let changes = beside(step.entries.count)
                if try await self.commit(user, standing, step, changes, now) { return step }
            }
            throw OriginError(.overloaded)
        }
    }

    /// One device of a user, as an operator sees it.
    package struct Summary: Sendable {
        /// Of its app password.
        package let number: Int64
        /// Which apps' pushes it is for.
        package let group: String
        /// As it named it.
        package let proxy: String
    }

    package func summary(of user: OriginUser) async throws(OriginError) -> [Summary] {
        (try await read(user.name)?.registrations.devices ?? []).map {
            Summary(number: $0.tokenID, group: $0.group.rawValue, proxy: $0.proxyServer)
        }
    }

    /// Removes one device, with its app password.
    ///
    /// - Returns: whether it was there.
    package func drop(_ number: Int64, of user: OriginUser) async throws(OriginError) -> Bool {
        guard
            try await read(user.name)?.registrations.devices.contains(where: { $0.tokenID == number })
                ?? false
        else { return false }
        // The password first: if the process is killed in between, the device can still be named, and the
        // password no longer works.
        try await context.people.revoke(number, of: user.name)
        let origin = context.origin
        _ = try await change(user, makes: false) { registrations, moment throws(NextcloudError) in
            try registrations.receive(
                .revoke,
                from: NextcloudCaller(
                    session: NextcloudSession(user: moment.person, tokenID: number), userID: user.name,
                    displayName: user.name, userAgent: ""),
                conditions: moment.conditions, at: origin, now: moment.now)
        }
        return true
    }

    private func commit(
        _ user: OriginUser, _ standing: Standing, _ step: NextcloudStep, _ beside: [Change], _ now: UnixTime
    ) async throws(OriginError) -> Bool {
        let put = Change.put(
            record(user.name, standing, now), if: standing.revision.map { .revision($0) } ?? .absent)
        var verdict = Verdict<Bool, OriginError>(
            pushes: step.byProxy.compactMap { push(Waiting($0, now), of: user.name, now) },
            changes: [put] + notes(of: step, user.name, now) + beside, reply: .now(true),
            refusal: { _ in OriginError(.nameTaken) })
        verdict.turns = .byOrigin
        return try await admit(verdict)
    }

    private func admit(_ verdict: Verdict<Bool, OriginError>) async throws(OriginError) -> Bool {
        do throws(IntakeRefusal<OriginError>) {
            return try await context.intake.admit(verdict, instance: context.space.instance)
        } catch {
            if case .refused = error { return false }
            throw OriginError(.overloaded)
        }
    }

    // MARK: Calls to proxies

    /// Entries of one call.
    struct Waiting: Sendable {
        let all: [ProxyQueue.Waiting]

        init(_ all: [ProxyQueue.Waiting]) { self.all = all }

        init(_ entries: [SealedEntry], _ now: UnixTime) {
            all = entries.map { ProxyQueue.Waiting($0, since: now) }
        }
    }

    private func push(_ waiting: Waiting, of user: String, _ now: UnixTime) -> Push? {
        // All are of one kind, because a phone that rings for an old call is worse than silence.
        guard let end = waiting.all.map(\.until).min() else { return nil }
        let call = context.origin.call(waiting.all.map(\.entry))
        let split = call.url.splitBehindHost
        return Push(
            message: .uplink(
                UplinkMessage(
                    kind: .proxy, method: .post, server: split.server, path: Secret(split.path.utf8),
                    contentType: "application/x-www-form-urlencoded", body: call.body,
                    subject: ProxySubject(user: user, waiting: waiting.all).body)),
            pushClass: .normal, origin: Secret(user.utf8), record: key(user), touchedAt: now,
            custodyEnds: end, repeatIdentity: nil)
    }

    /// Fields of a call beside its body's type.
    func headers(of subject: ProxySubject) -> [(name: String, value: String)] {
        context.origin.call(subject.waiting.map(\.entry)).headers
            .filter { $0.name.lowercased() != "content-type" }
            .map { field in (field.name, field.value.reveal { String(decoding: $0, as: UTF8.self) }) }
    }

    var takesPublicProxiesOnly: Bool { context.origin.settings.localProxies == .refused }

    /// A proxy has answered: devices that it does not know are removed, and entries that it may take in
    /// smaller parts are owed again.
    ///
    /// - Returns: when the same is to be asked again; `nil`: it is over.
    func settle(
        _ answer: CallAnswer, _ subject: ProxySubject
    ) async throws(OriginError) -> (again: Duration?, isLost: Bool) {
        let now = context.world.now()
        var generator = WorldGenerator(world: context.world)
        let reading = ProxyReading(answer)
        let judgement = ProxyJudgement(
            reading, to: subject.waiting, failures: 0, now: now, using: &generator)
        let entries = subject.waiting.map(\.entry)
        if let user = try await context.people.user(subject.user) {
            _ = try await change(user, makes: false) { registrations, _ throws(NextcloudError) in
                NextcloudStep(settled: registrations.settle(reading, to: entries))
            }
        }
        guard !judgement.again.isEmpty else { return (nil, judgement.lost > 0) }
        if answer.status == 413 {
            let verdict = Verdict<Bool, OriginError>(
                pushes: judgement.again.compactMap { push(Waiting($0), of: subject.user, now) }, changes: [],
                reply: .now(true))
            _ = try await admit(verdict)
            return (nil, false)
        }
        return (answer.pause(now: now) ?? .zero, false)
    }
}

/// What an owed call to a proxy is about.
struct ProxySubject: Sendable {
    let user: String
    let waiting: [ProxyQueue.Waiting]

    static let format: UInt8 = 4

    init(user: String, waiting: [ProxyQueue.Waiting]) {
        self.user = user
        self.waiting = waiting
    }

    var body: Secret {
        let bodies = waiting.map { $0.encoded() }
        let size =
            StoredSize.byte + StoredSize.of(user) + bodies.reduce(0) { $0 + StoredSize.of($1) }
        return Secret(stored: size) { writer in
            writer.put(Self.format)
            writer.put(user)
            for body in bodies { writer.put(body) }
        }
    }

    init?(_ body: Secret) {
        let read: ProxySubject? = body.reveal { bytes in
            var reader = StoredReader(bytes)
            guard reader.byte() == Self.format, let user = reader.text() else { return nil }
            var waiting: [ProxyQueue.Waiting] = []
            while !reader.isAtEnd {
                guard let one = reader.secret().flatMap({ ProxyQueue.Waiting(body: $0) }) else { return nil }
                waiting.append(one)
            }
            return ProxySubject(user: user, waiting: waiting)
        }
        guard let read, !read.waiting.isEmpty else { return nil }
        self = read
    }
}

extension OriginUser {
    /// The time at which an app password was last used is not kept: each counts as in use.
    fileprivate func conditions(_ now: UnixTime) -> PushConditions {
        let passwords = credentials.filter { $0.kind == .appPassword }
        return PushConditions(
            appPasswords: Dictionary(
                passwords.map { ($0.id, AppPasswordState(lastUsedAt: now)) }, uniquingKeysWith: { $1 }))
    }
}

extension String {
    /// Scheme, host and port; and what follows.
    fileprivate var splitBehindHost: (server: String, path: String) {
        let place = firstRange(of: "://")?.upperBound ?? startIndex
        let end = self[place...].firstIndex(of: "/") ?? endIndex
        return (String(self[..<end]), String(self[end...]))
    }
}
