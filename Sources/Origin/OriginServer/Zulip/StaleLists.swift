import Delivery
import PushModel
import Uplink
import ZulipPush

/// The daily request for the dead phones of a realm (§14.7), one call for each page.
///
/// The time of a realm's next request is stored, so that restarts do not repeat it, and an outage is made up
/// for once.
package struct StaleLists: Sendable {
    private let users: ZulipUsers
    private var context: ZulipOriginContext { users.context }

    package init(_ users: ZulipUsers) { self.users = users }

    /// Owes the first page for each realm that is due.
    ///
    /// - Parameter atOnce: regardless of the stored time, because an administrator asks for it.
    package func look(atOnce: Bool = false) async throws(OriginError) {
        guard context.origin() != nil else { return }
        let realms = context.people.realms
        let records: [Record?]
        do throws(StoreError) {
            records = try await context.registry.find(realms.map { context.space.stale($0.uuid) })
        } catch { throw OriginError(error) }
        let now = context.world.now()
        var generator = WorldGenerator(world: context.world)
        for (realm, record) in zip(realms, records) {
            let next = record.flatMap { Self.next($0) }
            let first = call(StaleSubject(realm: realm.uuid, after: 0, pages: 0, askedAt: now))
            if let record, let next, next <= now || atOnce {
                let after = StaleListRun.nextRun(using: &generator)
                try await commit(
                    [first], at(realm.uuid, now + after), .revision(record.revision)
                )
            } else if next == nil {
                let wait =
                    atOnce
                    ? StaleListRun.nextRun(using: &generator) : StaleListRun.firstRun(using: &generator)
                try await commit(
                    atOnce ? [first] : [], at(realm.uuid, now + wait), .absent)
            }
        }
    }

    private static func next(_ record: Record) -> UnixTime? {
        record.body.reveal { bytes in
            var reader = StoredReader(bytes)
            guard let next = reader.optionalWord() ?? nil, reader.isAtEnd else { return nil }
            return UnixTime(milliseconds: next)
        }
    }

    private func at(_ realm: String, _ next: UnixTime) -> Record {
        Record(
            key: context.space.stale(realm), touchedAt: context.world.now(),
            body: Secret(stored: StoredSize.word) { $0.put(Int64?.some(next.milliseconds)) })
    }

    private func commit(
        _ pushes: [Push?], _ record: Record?, _ condition: Condition = .any
    ) async throws(OriginError) {
        var verdict = Verdict<Bool, OriginError>(
            pushes: pushes.compactMap(\.self), changes: record.map { [.put($0, if: condition)] } ?? [],
            reply: .now(true), refusal: { _ in OriginError(.nameTaken) })
        verdict.turns = .byOrigin
        do throws(IntakeRefusal<OriginError>) {
            _ = try await context.intake.admit(verdict, instance: context.space.instance)
        } catch {
            // Another process was first.
            if case .refused = error { return }
            throw OriginError(.overloaded)
        }
    }

    private func call(_ subject: StaleSubject) -> Push? {
        guard let origin = context.origin() else { return nil }
        let made = StaleListRun(realm: subject.realm, after: subject.after).call(by: origin)
        let now = context.world.now()
        return Push(
            message: .uplink(
                UplinkMessage(
                    kind: .staleList, method: .get, server: "", path: Secret(made.url.utf8),
                    contentType: "", body: Secret([]), subject: subject.body)),
            pushClass: .background, origin: Secret(subject.realm.utf8), record: nil, touchedAt: now,
            custodyEnds: now + ZulipOriginLimits.staleInterval, repeatIdentity: nil)
    }

    // MARK: Answers

    func take(_ answer: CallAnswer, to message: UplinkMessage) async -> UplinkVerdict {
        guard let subject = StaleSubject(message.subject) else { return .refused }
        var run = StaleListRun(realm: subject.realm, after: subject.after, pages: subject.pages)
        var generator = WorldGenerator(world: context.world)
        let step = run.take(answer, now: context.world.now(), using: &generator)
        if let fault = step.fault { context.alert(.staleList(fault), subject.realm) }
        if answer.status == 401 { return .callerRefused }
        if answer.mayPass { return .again(after: step.nextRun ?? .zero, blames: true) }
        do throws(OriginError) {
            if !step.ids.isEmpty { try await end(step.ids, subject) }
            if run.isUnderWay {
                var next = subject
                next.after = run.after
                next.pages = run.pages
                try await commit([call(next)], nil)
            }
        } catch { return .uncommitted }
        return step.fault == nil ? .done : .refused
    }

    /// Of users whose registrations have one of these ids. All are looked through: the list is short, and
    /// comes once a day.
    private func end(_ ids: [Int64], _ subject: StaleSubject) async throws(OriginError) {
        let dead = Set(ids)
        var after: UInt64 = 0
        while true {
            let page: [Record]
            do throws(StoreError) {
                page = try await context.registry.page(
                    .space(users.key("").space), after: after, limit: 256)
            } catch { throw OriginError(error) }
            for record in page {
                guard let (name, rows) = users.read(record, realm: subject.realm),
                    rows.accounts.values.contains(where: { $0.deviceID.map { dead.contains($0) } ?? false }),
                    let user = try await context.people.user(name), user.realm == subject.realm
                else { continue }
                do throws(ZulipUsersRefusal) {
                    try await users.change(
                        user.name, realm: subject.realm,
                        { $0.end(devices: ids, realm: subject.realm, askedAt: subject.askedAt) },
                        behind: { _, _ in })
                } catch { throw OriginError(.overloaded) }
            }
            // A record that was changed meanwhile comes again with a newer revision. The walk still ends,
            // because registrations that have ended have no id any more.
            guard page.count == 256, let last = page.last else { return }
            after = last.revision
        }
    }
}

/// What an owed page is about.
private struct StaleSubject {
    let realm: String
    var after: Int64
    /// Pages of this run so far, so that an endless list is not asked for without end.
    var pages: Int
    /// When the run began.
    let askedAt: UnixTime

    private static let format: UInt8 = 4

    var body: Secret {
        Secret(stored: StoredSize.byte + StoredSize.of(realm) + 3 * StoredSize.word) {
            $0.put(Self.format)
            $0.put(realm)
            $0.put(Int64?.some(after))
            $0.put(Int64?.some(Int64(pages)))
            $0.put(Int64?.some(askedAt.milliseconds))
        }
    }

    init(realm: String, after: Int64, pages: Int, askedAt: UnixTime) {
        self.realm = realm
        self.after = after
        self.pages = pages
        self.askedAt = askedAt
    }

    init?(_ body: Secret) {
        let read: StaleSubject? = body.reveal { bytes in
            var reader = StoredReader(bytes)
            guard reader.byte() == Self.format, let realm = reader.text(),
                let after = reader.optionalWord() ?? nil, let pages = reader.optionalWord() ?? nil,
                let askedAt = reader.optionalWord() ?? nil, reader.isAtEnd
            else { return nil }
            return StaleSubject(
                realm: realm, after: after, pages: Int(clamping: pages),
                askedAt: UnixTime(milliseconds: askedAt))
        }
        guard let read else { return nil }
        self = read
    }
}
