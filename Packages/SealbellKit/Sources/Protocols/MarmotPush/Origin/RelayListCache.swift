package import PushModel
package import Secp256k1Keys
import WireFormats

/// What is remembered of servers' relay lists and of relays' documents. A value without I/O; times are handed
/// in.
package struct RelayListCache: Sendable {
    package struct Entry: Sendable {
        /// The newest that was ever found. It stays when later look-ups find nothing: relays lose events.
        var list: RelayList?
        /// No relay is asked again before this time.
        var freshUntil: UnixTime
        var askedAt: UnixTime
    }

    private struct Document: Sendable {
        let information: RelayInformation?
        let since: UnixTime
        let until: UnixTime
        /// Of all that were noted: a millisecond brings many.
        let number: Int
    }

    package private(set) var entries: [XOnlyKey: Entry] = [:]
    private var documents: [String: Document] = [:]
    private var noted = 0

    // MARK: lists

    package func list(of server: XOnlyKey) -> RelayList? { entries[server]?.list }

    /// Whether relays are to be asked for a server's list.
    ///
    /// - Parameter isDoubted: the known list has led nowhere.
    package func isDue(_ server: XOnlyKey, isDoubted: Bool, at now: UnixTime) -> Bool {
        guard let entry = entries[server] else { return true }
        // A clock that was set back makes nothing last longer.
        guard entry.askedAt <= now else { return true }
        return now
            >= (isDoubted
                ? min(entry.freshUntil, entry.askedAt + MarmotLimits.doubtLife)
                : entry.freshUntil)
    }

    /// Notes what a look-up has found. A list that is older than the known one changes nothing: a relay may
    /// withhold a new list, but cannot restore an old one.
    package mutating func note(_ found: RelayList?, isAnswered: Bool, of server: XOnlyKey, at now: UnixTime) {
        let known = entries[server]?.list
        // Nobody who wants to be found has such a long list, and each is held in memory.
        let found = found.flatMap {
            $0.event.serialized().count <= MarmotLimits.keptListBytes ? $0 : nil
        }
        var list = known
        if let found, known.map({ found.replaces($0) }) ?? true { list = found }
        let life: Duration =
            if found != nil { MarmotLimits.listLife } else if isAnswered {
                MarmotLimits.absentLife
            } else { MarmotLimits.doubtLife }
        entries[server] = Entry(list: list, freshUntil: now + life, askedAt: now)
        // Servers without a list are dropped first, because anybody can invent servers.
        while entries.count > MarmotLimits.rememberedServers {
            let oldest = entries.min {
                ($0.value.list != nil ? 1 : 0, $0.value.askedAt) < (
                    $1.value.list != nil ? 1 : 0, $1.value.askedAt
                )
            }
            if let oldest { entries[oldest.key] = nil }
        }
    }

    // MARK: documents

    /// - Returns: `nil`: the relay is to be asked.
    package func document(of relay: String, at now: UnixTime) -> RelayInformation?? {
        // A clock that was set back makes nothing last longer.
        guard let document = documents[relay], document.until > now, document.since <= now else {
            return nil
        }
        return .some(document.information)
    }

    package mutating func note(_ information: RelayInformation?, ofRelay relay: String, at now: UnixTime) {
        let life =
            information == nil ? MarmotLimits.noDocumentLife : MarmotLimits.documentLife
        noted &+= 1
        documents[relay] = Document(information: information, since: now, until: now + life, number: noted)
        while documents.count > MarmotLimits.rememberedDocuments {
            let oldest = documents.min {
                ($0.value.until, $0.value.number) < ($1.value.until, $1.value.number)
            }
            if let oldest { documents[oldest.key] = nil }
        }
    }

    // MARK: at rest

    /// The lists as JSON, for whatever an app keeps its state in. They are public.
    package func encoded() -> Secret {
        let kept = entries.values.filter { $0.list != nil }
        var writer = JSONWriter(reserving: 64 + kept.count * MarmotLimits.keptListBytes)
        writer.beginObject()
        writer.member("version", 1)
        writer.beginArray("lists")
        for entry in kept {
            guard let text = entry.list?.event.serialized() else { continue }
            writer.beginArray()
            writer.int(entry.askedAt.milliseconds)
            writer.int(entry.freshUntil.milliseconds)
            text.reveal { writer.string(utf8: $0) }
            writer.endArray()
        }
        writer.endArray()
        writer.endObject()
        return writer.takeSecret()
    }

    package init() {}

    /// Reads what ``encoded()`` wrote. What is damaged is left out: a list is signed, and is looked up again
    /// where it is missing.
    package init(keeping kept: Secret) {
        let value = kept.reveal { try? JSONValue.parse($0, limitBytes: MarmotLimits.keptListsBytes) }
        guard let rows = value?["lists"]?.array, value?["version"]?.int64 == 1 else { return }
        for row in rows.prefix(MarmotLimits.rememberedServers) {
            guard let asked = row[0]?.int64, let until = row[1]?.int64, let text = row[2]?.string,
                // What does not parse, or is not signed, is left out.
                let event = try? NostrEvent.parse(Secret(text.utf8)), let list = try? RelayList(event)
            else { continue }
            let askedAt = UnixTime(milliseconds: asked)
            entries[event.pubkey] = Entry(
                list: list,
                freshUntil: min(UnixTime(milliseconds: until), askedAt + MarmotLimits.listLife),
                askedAt: askedAt)
        }
    }
}
