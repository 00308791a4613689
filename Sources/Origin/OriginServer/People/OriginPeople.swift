import Primitives
package import PushModel
import Synchronization
import WireFormats

/// The realms and users of an origin.
///
/// Realms are few, and are kept in memory; a process that shares the store reads them again once a minute.
/// Users are looked up one by one.
package final class OriginPeople: Sendable {
    /// As many as one upload to a relay names.
    package static let realmLimit = 1_000

    let space: OriginSpace
    private let registry: any Registry
    private let world: World
    private let known = Mutex<[OriginRealm]>([])

    package init(_ space: OriginSpace, _ registry: any Registry, _ world: World) {
        self.space = space
        self.registry = registry
        self.world = world
    }

    /// 1 to 128 visible ASCII characters without those that a URL, a form or Basic would give a meaning.
    package static func isName(_ name: String) -> Bool {
        let refused = Set("\"'/:\\".utf8)
        return (1...128).contains(name.utf8.count)
            && name.utf8.allSatisfy { (0x21...0x7E).contains($0) && !refused.contains($0) }
    }

    // MARK: Realms

    /// In the order in which they were added.
    package var realms: [OriginRealm] { known.withLock(\.self) }

    package func realm(_ uuid: String) -> OriginRealm? { realms.first { $0.uuid == uuid } }

    /// The same, also where this process has not read it yet: right behind a start, and of a realm that
    /// another process has added.
    package func find(realm uuid: String) async throws(OriginError) -> OriginRealm? {
        if let realm = realm(uuid) { return realm }
        try await load()
        return realm(uuid)
    }

    /// The realm whose URL has that host, otherwise the first: most origins have only one, and may be called
    /// by another name.
    package func realm(at host: String?) -> OriginRealm? {
        let realms = realms
        return host.flatMap { host in realms.first { $0.host == host.lowercased() } } ?? realms.first
    }

    /// Reads the realms. To be called before anything is served, and once a minute.
    ///
    /// - Throws: `.damagedRecord`, `.overloaded`.
    package func load() async throws(OriginError) {
        let found = try await readRealms()
        known.withLock { $0 = found }
    }

    private func readRealms() async throws(OriginError) -> [OriginRealm] {
        let records: [Record]
        do throws(StoreError) {
            records = try await registry.page(
                .space(Space(space.instance, "realm")), after: 0, limit: Self.realmLimit)
        } catch { throw OriginError(error) }
        let realms = records.compactMap { OriginRealm(body: $0.body) }
        guard realms.count == records.count else { throw OriginError(.damagedRecord) }
        return realms.sorted { $0.id < $1.id }
    }

    /// - Parameter url: what its clients know it by.
    /// - Throws: `.badName`, `.nameTaken`, `.tooManyRealms`.
    package func addRealm(_ name: String, url: String) async throws(OriginError) -> OriginRealm {
        guard Self.isName(name) else { throw OriginError(.badName) }
        return try await number { (counters) throws(OriginError) in
            let realms = try await self.readRealms()
            guard realms.count < Self.realmLimit else { throw OriginError(.tooManyRealms) }
            guard !realms.contains(where: { $0.name == name }) else { throw OriginError(.nameTaken) }
            counters.realms += 1
            let realm = OriginRealm(
                id: counters.realms,
                uuid: UUIDText(version4From: self.world.random(), self.world.random()).text,
                name: name, url: url, createdAt: self.world.now(), requiresEncryption: false,
                ownerSecret: Secret(Hex.encode(self.world.randomBytes(32)).utf8))
            return (realm, [self.put(realm, if: .absent)])
        }
    }

    /// - Throws: `.unknownRealm`.
    package func set(
        _ name: String, _ change: @Sendable (inout OriginRealm) -> Void
    ) async throws(OriginError) -> OriginRealm {
        guard var realm = try await readRealms().first(where: { $0.name == name }) else {
            throw OriginError(.unknownRealm)
        }
        change(&realm)
        try await commit([put(realm, if: .any)])
        try await load()
        return realm
    }

    /// Removes a realm that has no users.
    ///
    /// - Throws: `.unknownRealm`, `.realmInUse`.
    package func removeRealm(_ name: String) async throws(OriginError) {
        guard let realm = try await readRealms().first(where: { $0.name == name }) else {
            throw OriginError(.unknownRealm)
        }
        var after: UInt64? = 0
        while let next = after {
            let page = try await users(after: next)
            if page.users.contains(where: { $0.realm == realm.uuid }) { throw OriginError(.realmInUse) }
            after = page.next
        }
        try await commit([
            .delete(space.realm(realm.uuid), if: .any), .delete(space.stale(realm.uuid), if: .any)
        ])
        try await load()
    }

    private func put(_ realm: OriginRealm, if condition: Condition) -> Change {
        .put(
            Record(key: space.realm(realm.uuid), touchedAt: world.now(), body: realm.body), if: condition)
    }

    // MARK: Users

    /// - Throws: `.damagedRecord`, `.overloaded`.
    package func user(_ name: String) async throws(OriginError) -> OriginUser? {
        try await userRecord(name)?.user
    }

    private func userRecord(
        _ name: String
    ) async throws(OriginError) -> (user: OriginUser, revision: UInt64)? {
        let found: [Record?]
        do throws(StoreError) { found = try await registry.find([space.user(name)]) } catch {
            throw OriginError(error)
        }
        guard let record = found.first ?? nil else { return nil }
        guard let user = OriginUser(body: record.body) else { throw OriginError(.damagedRecord) }
        return (user, record.revision)
    }

    /// Users in the order in which they were changed last.
    ///
    /// - Returns: a page, and what the next begins after; `nil` behind the last.
    package func users(
        after revision: UInt64, limit: Int = 1_000
    ) async throws(OriginError) -> (users: [OriginUser], next: UInt64?) {
        let records: [Record]
        do throws(StoreError) {
            records = try await registry.page(.space(space.users), after: revision, limit: limit)
        } catch { throw OriginError(error) }
        return (
            records.compactMap { OriginUser(body: $0.body) },
            records.count < limit ? nil : records.last?.revision
        )
    }

    /// Walks over all of them.
    package func userCount() async throws(OriginError) -> Int {
        var (count, after) = (0, UInt64?.some(0))
        // Ends: revisions rise, and the records are finite.
        while let next = after {
            let page = try await users(after: next)
            count += page.users.count
            after = page.next
        }
        return count
    }

    /// - Parameter hasAppPassword: with one that opens the other door, at once.
    /// - Returns: the user, and the key and the password, which are not stored anywhere.
    /// - Throws: `.badName`, `.nameTaken`, `.unknownRealm`.
    package func addUser(
        _ name: String, realm: String?, hasAppPassword: Bool = false
    ) async throws(OriginError) -> (user: OriginUser, key: String, appPassword: String?) {
        guard Self.isName(name) else { throw OriginError(.badName) }
        let realms = try await readRealms()
        guard let realm = realm.map({ name in realms.first { $0.name == name } }) ?? realms.first else {
            throw OriginError(.unknownRealm)
        }
        let (key, credential) = invent(.apiKey)
        let password = hasAppPassword ? invent(.appPassword) : nil
        let user = try await number { (counters) throws(OriginError) in
            if try await self.user(name) != nil { throw OriginError(.nameTaken) }
            counters.users += 1
            let user = OriginUser(
                name: name, id: counters.users, realm: realm.uuid, createdAt: self.world.now(),
                credentials: [credential] + [password?.1].compactMap(\.self))
            return (user, [self.put(user, if: .absent)])
        }
        return (user, key, password?.key)
    }

    /// A new API key in place of the old one, or one more app password.
    ///
    /// - Throws: `.unknownUser`, `.tooManyKeys`.
    package func renewKey(
        of name: String, _ kind: OriginUser.Credential.Kind
    ) async throws(OriginError) -> String {
        guard let record = try await userRecord(name) else { throw OriginError(.unknownUser) }
        var user = record.user
        let (key, credential) = invent(kind)
        if kind == .apiKey { user.credentials.removeAll { $0.kind == .apiKey } }
        guard user.credentials.count(where: { $0.kind == .appPassword }) < OriginUser.appPasswords else {
            throw OriginError(.tooManyKeys)
        }
        user.credentials.append(credential)
        try await commit([put(user, if: .revision(record.revision))])
        return key
    }

    /// Ends one credential.
    ///
    /// - Throws: `.unknownUser`.
    package func revoke(_ id: Int64, of name: String) async throws(OriginError) {
        guard let record = try await userRecord(name) else { throw OriginError(.unknownUser) }
        var user = record.user
        user.credentials.removeAll { $0.id == id }
        try await commit([put(user, if: .revision(record.revision))])
    }

    /// Removes a user with all their records and everything that is owed for them.
    ///
    /// - Throws: `.unknownUser`.
    package func removeUser(_ name: String) async throws(OriginError) {
        guard try await userRecord(name) != nil else { throw OriginError(.unknownUser) }
        do throws(StoreError) {
            while try await registry.forget(owner: space.user(name), limit: 1_000) > 0 {}
        } catch { throw OriginError(error) }
        try await commit([.delete(space.user(name), if: .any)])
    }

    private func put(_ user: OriginUser, if condition: Condition) -> Change {
        .put(Record(key: space.user(user.name), touchedAt: world.now(), body: user.body), if: condition)
    }

    private func invent(_ kind: OriginUser.Credential.Kind) -> (key: String, OriginUser.Credential) {
        let key = Hex.encode(world.randomBytes(16))
        return (
            key,
            OriginUser.Credential(
                kind: kind, id: 1 + world.random(below: 1 << 53 - 2),
                digest: Secret(SHA256.hash(Array(key.utf8))))
        )
    }

    /// - Returns: `nil` for anybody who is not a user with that key.
    package func authenticate(
        _ credentials: BasicCredentials, _ kind: OriginUser.Credential.Kind
    ) async throws(OriginError) -> OriginUser? {
        guard Self.isName(credentials.user), let user = try await user(credentials.user) else { return nil }
        return user.credentials.contains { $0.kind == kind && $0.digest == credentials.digest } ? user : nil
    }

    /// The same with any of a user's credentials.
    ///
    /// - Returns: also which it was.
    package func authenticate(
        user name: String, password: Secret
    ) async throws(OriginError) -> (user: OriginUser, with: OriginUser.Credential)? {
        guard Self.isName(name), let user = try await user(name) else { return nil }
        let digest = Secret(SHA256.hash(password))
        return user.credentials.first { $0.digest == digest }.map { (user, $0) }
    }

    // MARK: Numbers

    private struct Counters {
        var realms: Int64 = 0
        var users: Int64 = 0
    }

    /// Makes something that has a number of its own, in one commit with the number.
    private func number<Made: Sendable>(
        _ make: (inout Counters) async throws(OriginError) -> (Made, [Change])
    ) async throws(OriginError) -> Made {
        // If another process takes a number in between, the next one is used.
        for _ in 0..<8 {
            let record: Record?
            do throws(StoreError) { record = try await registry.find([space.realms]).first ?? nil } catch {
                throw OriginError(error)
            }
            var counters = Counters()
            if let record {
                let read: Counters? = record.body.reveal { bytes in
                    var reader = StoredReader(bytes)
                    guard let realms = reader.optionalWord() ?? nil, let users = reader.optionalWord() ?? nil
                    else { return nil }
                    return Counters(realms: realms, users: users)
                }
                guard let read, read.realms < .max, read.users < .max else {
                    throw OriginError(.damagedRecord)
                }
                counters = read
            }
            let (made, changes) = try await make(&counters)
            let body = Secret(stored: 2 * StoredSize.word) { writer in
                writer.put(Int64?.some(counters.realms))
                writer.put(Int64?.some(counters.users))
            }
            let next = Record(key: space.realms, touchedAt: world.now(), body: body)
            let applied: Applied
            do throws(StoreError) {
                applied = try await registry.apply(
                    [.put(next, if: record.map { .revision($0.revision) } ?? .absent)] + changes)
            } catch { throw OriginError(error) }
            switch applied {
            case .committed:
                try await load()
                return made
            case .refused(index: 0): continue
            case .refused: throw OriginError(.nameTaken)
            }
        }
        throw OriginError(.overloaded)
    }

    private func commit(_ changes: [Change]) async throws(OriginError) {
        let applied: Applied
        do throws(StoreError) { applied = try await registry.apply(changes) } catch {
            throw OriginError(error)
        }
        guard applied == .committed else { throw OriginError(.overloaded) }
    }
}

extension OriginRealm {
    /// Host and perhaps port of the URL, in lower case.
    package var host: String {
        let rest = url.firstRange(of: "://").map { url[$0.upperBound...] } ?? url[...]
        return rest.prefix { $0 != "/" }.lowercased()
    }
}
