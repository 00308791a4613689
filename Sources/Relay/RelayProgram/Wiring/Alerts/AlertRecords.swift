import AdminIngress
import PushModel
import Synchronization
import WireFormats

/// The alerts that this process has told, in the store: a record for each, of a space of the core, sealed
/// like every other. The next process that looks takes over those of processes that have ended (decision
/// 0086).
///
/// An alert that the store takes no writes cannot be stored there. It is kept in a file of the state
/// directory.
final class AlertRecords: AlertPersistence {
    static let space = Space(core: "alert")
    /// An alert that is not repeated for this long is of a kind that no relay knows any more. Reminders
    /// rewrite an alert at least once a day.
    private static let life = Duration.seconds(30 * 86_400)
    /// Records of one reading; of a thousand at most, as many as an alert port remembers.
    private static let page = 256
    private static let mostPages = 4

    private let registry: any Registry
    /// Who this process is, and who else lives; `nil` for a store that dies with its process.
    private let notes: (any StoreSettings)?
    private let fault: StoreFaultFile?
    private let world: World

    /// - Parameter state: the directory for what the store cannot take; `nil`: nothing is written there.
    init(_ registry: any Registry, _ notes: (any StoreSettings)?, state: String?, _ world: World) {
        self.registry = registry
        self.notes = notes
        fault = state.map { StoreFaultFile(state: $0) }
        self.world = world
    }

    private var owner: OwnerID { notes?.owner ?? .nobody }

    // MARK: Taking over

    func inherit() async -> [StandingAlert] {
        let ofTheStore = fault?.takeOver().map { [$0] } ?? []
        // A store that does not answer is asked again at the next look.
        return ofTheStore + ((try? await orphans()) ?? [])
    }

    private func orphans() async throws(StoreError) -> [StandingAlert] {
        guard let notes else { return [] }
        var found: [Written] = []
        var after: UInt64 = 0
        for _ in 0..<Self.mostPages {
            let page = try await registry.page(.space(Self.space), after: after, limit: Self.page)
            found += page.compactMap { Written($0) }.filter { $0.owner != owner }
            guard page.count == Self.page, let last = page.last else { break }
            after = last.revision
        }
        guard !found.isEmpty else { return [] }
        let living = Set(try await notes.livingOwners())
        var taken: [StandingAlert] = []
        for written in found where !living.contains(written.owner) {
            let ours = record(of: written.standing)
            // Another relay that looked in the same moment has it, then.
            let changes: [Change] = [
                .delete(written.key, if: .revision(written.revision)), .put(ours, if: .any)
            ]
            if try await registry.apply(changes) == .committed { taken.append(written.standing) }
        }
        return taken
    }

    // MARK: Writing

    func keep(_ standing: [StandingAlert], dropping: [Alert.Subject]) async -> Bool {
        if let alert = standing.first(where: { $0.subject.kind == .storeFailing }) { fault?.write(alert) }
        if dropping.contains(where: { $0.kind == .storeFailing }) { fault?.write(nil) }
        let changes =
            standing.filter { $0.subject.kind != .storeFailing }.map { Change.put(record(of: $0), if: .any) }
            + dropping.filter { $0.kind != .storeFailing }.map { .delete(key(of: $0), if: .any) }
        guard !changes.isEmpty else { return true }
        do throws(StoreError) { return try await registry.apply(changes) == .committed } catch {
            return false
        }
    }

    private func key(of subject: Alert.Subject) -> RecordKey {
        let name = owner.value.bytes + Array(subject.kind.rawValue.utf8) + [0] + Array(subject.name.utf8)
        return RecordKey(Self.space, Secret(name))
    }

    private func record(of standing: StandingAlert) -> Record {
        let now = world.now()
        return Record(
            key: key(of: standing.subject), touchedAt: now, expiresAt: now + Self.life,
            body: Secret(standing.json(of: owner)))
    }
}

/// A record as it was read.
private struct Written {
    let key: RecordKey
    let revision: UInt64
    let owner: OwnerID
    let standing: StandingAlert

    /// `nil` for what is none of ours: another version has written it, and its life ends it.
    init?(_ record: Record) {
        let read = record.body.reveal { StandingAlert.read($0) }
        guard let read else { return nil }
        (key, revision) = (record.key, record.revision)
        (owner, standing) = (read.owner, read.standing)
    }
}

extension StandingAlert {
    private static let limitBytes = 16 << 10

    /// `{"owner","alert","subject","sentence","cause","grade","told"}`, the last in milliseconds of Unix
    /// time.
    func json(of owner: OwnerID) -> [UInt8] {
        var json = JSONWriter()
        json.beginObject()
        json.member("owner", Hex.encode(owner.value.bytes))
        json.member("alert", subject.kind.rawValue)
        json.member("subject", subject.name)
        json.member("sentence", sentence)
        if let cause {
            json.member("cause", cause)
        }
        json.member("grade", grade)
        json.member("told", toldAt.milliseconds)
        json.endObject()
        return json.bytes
    }

    static func read(_ bytes: UnsafeRawBufferPointer) -> (owner: OwnerID, standing: StandingAlert)? {
        // Whatever does not read is none of ours.
        guard let json = try? JSONValue.parse(bytes, limitBytes: limitBytes), let owner = owner(json),
            let kind = (json["alert"]?.string).flatMap(Alert.Kind.init(rawValue:)),
            let name = json["subject"]?.string, let sentence = json["sentence"]?.string,
            let told = json["told"]?.int64, let grade = json["grade"]?.int64
        else { return nil }
        return (
            owner,
            StandingAlert(
                Alert.Subject(kind: kind, name: name), sentence: sentence, cause: json["cause"]?.string,
                grade: Int(clamping: grade), toldAt: UnixTime(milliseconds: told))
        )
    }

    private static func owner(_ json: JSONValue) -> OwnerID? {
        // As above.
        guard let text = json["owner"]?.string, let bytes = try? Hex.decode(Array(text.utf8)) else {
            return nil
        }
        return Digest16(bytes).map { OwnerID($0) }
    }
}

/// Whether the store takes writes, for the next process: a file of fixed size, made before it is needed and
/// written in its place, because a disk that is full still takes that.
final class StoreFaultFile: Sendable {
    static let name = "store-fault"
    private static let bytes = 1_024

    private let path: String
    private let isTaken = Mutex(false)

    init(state: String) { path = joinPath(state, Self.name) }

    /// What the process before has left, once; and makes room for this one's word.
    func takeOver() -> StandingAlert? {
        let isFirst = isTaken.withLock { taken in
            defer { taken = true }
            return !taken
        }
        guard isFirst else { return nil }
        // A file that is not there, or does not read, says nothing.
        let found = (try? readFile(path, limitBytes: Self.bytes)).flatMap { bytes in
            bytes.withUnsafeBytes { StandingAlert.read($0) }
        }
        if found == nil { make() }
        return found?.standing
    }

    private func make() {
        // Without it this one alert is not known to the next process.
        try? writeFile(path, Self.padded([]), replacing: true)
    }

    /// - Parameter standing: `nil`: the store takes writes again.
    func write(_ standing: StandingAlert?) {
        let text = Self.padded(standing?.json(of: .nobody) ?? [])
        guard text.count == Self.bytes else { return }
        // As above.
        try? overwriteFile(path, text)
    }

    /// White space is nothing to a reader of JSON.
    private static func padded(_ text: [UInt8]) -> [UInt8] {
        text + Array(repeating: 0x20, count: max(0, bytes - text.count))
    }
}
