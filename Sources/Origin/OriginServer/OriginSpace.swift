package import PushModel

/// The rooms of an origin's records. All names and bodies are sealed by the store; engines see keyed digests
/// and times.
package struct OriginSpace: Sendable {
    package let instance: ConfiguredName

    package init(_ instance: ConfiguredName) { self.instance = instance }

    /// The one record under which all realms are found.
    var realms: RecordKey { RecordKey(Space(instance, "realms"), Secret([])) }

    func realm(_ uuid: String) -> RecordKey { RecordKey(Space(instance, "realm"), Secret(uuid.utf8)) }

    /// A user, under which everything of theirs is found.
    func user(_ name: String) -> RecordKey { RecordKey(Space(instance, "user"), Secret(name.utf8)) }

    /// What one door keeps of a user.
    func state(_ door: StaticString, of user: String) -> RecordKey {
        RecordKey(Space(instance, door), Secret(user.utf8))
    }

    /// An owed registration: its calls end with this record (docs/decisions/0081-what-is-ended-is-over.md).
    func call(_ item: UInt64, of user: String) -> RecordKey {
        RecordKey(calls, Self.numbered(item, of: user))
    }

    /// A notification that a user's devices read again at the server.
    func note(_ id: Int64, of user: String) -> RecordKey {
        RecordKey(Space(instance, "cloud-note"), Self.numbered(UInt64(bitPattern: id), of: user))
    }

    private static func numbered(_ number: UInt64, of user: String) -> Secret {
        var name = Array(user.utf8) + [0]
        withUnsafeBytes(of: number.bigEndian) { name.append(contentsOf: $0) }
        return Secret(name)
    }

    /// The time at which a realm's list of dead phones is asked for next.
    func stale(_ realm: String) -> RecordKey {
        RecordKey(Space(instance, "stale"), Secret(realm.utf8))
    }

    var calls: Space { Space(instance, "call") }
    var users: Space { Space(instance, "user") }

    func notification(_ id: String) -> RecordKey {
        RecordKey(Space(instance, "notification"), Secret(id.utf8))
    }
}
