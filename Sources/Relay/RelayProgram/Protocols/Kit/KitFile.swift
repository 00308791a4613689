import PushModel
import WireFormats

/// A party that the command line plays: a phone, or a phone and a sender. What it needs is kept in a file of
/// its own between two commands, because some of it is secret.
protocol KitParty {
    /// A longer file is none of the party's.
    static var limitBytes: Int { get }
    /// What the file holds, as a sentence names it.
    static var noun: String { get }

    /// Where it is kept.
    var file: HeldFile { get }
    /// What is kept; ``init(_:_:)`` reads it.
    var row: KitObject { get }
    /// - Returns: `nil`, or throws, for what ``row`` did not write.
    init?(_ row: KitObject, _ file: HeldFile) throws
}

extension KitParty {
    /// The party of a file, which no other command has until this value is gone.
    ///
    /// - Throws: `CommandFailure` that names the file, and nothing of what it holds.
    init(file path: String) throws(CommandFailure) {
        let file = HeldFile(path)
        self = try KitFile.read(path, Self.noun) { () throws(FileFault) in
            try file.read(limitBytes: Self.limitBytes)
        } make: {
            try Self($0, file)
        }
    }

    static func isThere(_ path: String) -> Bool { KitFile.isThere(path, limitBytes: limitBytes) }

    /// Writes the file, which its owner alone may read.
    ///
    /// - Throws: `CommandFailure` that names the file.
    func write() throws(CommandFailure) {
        do throws(FileFault) { try file.write(row.text) } catch {
            throw CommandFailure(.failed, "\(file.path): \(error.sentence)")
        }
    }
}

/// A party with one device.
protocol KitOwner: KitParty {
    /// What the device keeps; `nil`: a new one.
    var kept: Secret? { get set }
}

extension KitOwner {
    /// Writes the file with what the device keeps now.
    ///
    /// - Throws: `CommandFailure` that names the file.
    func keep(_ device: Secret) throws(CommandFailure) {
        var party = self
        party.kept = device
        try party.write()
    }
}

/// Files of texts, some of them secret.
enum KitFile {
    /// - Parameter bytes: what the file holds.
    /// - Parameter make: what that is; `nil`, or an error: it is none of it.
    /// - Throws: `CommandFailure` that names the file, and nothing of what it holds.
    static func read<Found>(
        _ path: String, _ noun: String, bytes: () throws(FileFault) -> Secret,
        make: (KitObject) throws -> Found?
    ) throws(CommandFailure) -> Found {
        let text: Secret
        do throws(FileFault) { text = try bytes() } catch {
            throw CommandFailure(error == .taken ? .unavailable : .failed, "\(path): \(error.sentence)")
        }
        // The reason may be the file's own text.
        guard let row = try? KitObject(text), let made = try? make(row) else {
            throw CommandFailure(.failed, "\(path): It holds no \(noun) of this command's.")
        }
        return made
    }

    /// Whether there is a file, whatever it holds and whether or not it can be read.
    static func isThere(_ path: String, limitBytes: Int) -> Bool {
        do throws(FileFault) {
            _ = try readSecret(path, limitBytes: limitBytes)
            return true
        } catch {
            return error != .missing
        }
    }
}

/// Texts by name, as a file keeps them: a JSON object. What is `nil` is not written.
struct KitObject: ExpressibleByDictionaryLiteral {
    private var members: [(name: String, value: Secret)]

    init(dictionaryLiteral elements: (String, (any KitText)?)...) {
        members = elements.compactMap { (name, value) in value?.kept.map { (name, $0) } }
    }

    /// - Throws: for what is no object of texts.
    init(_ bytes: Secret) throws(FormatError) {
        members = []
        try bytes.reveal { (bytes) throws(FormatError) in
            var reader = JSONReader(bytes, depthLimit: 2)
            try read(&reader)
            try reader.end()
        }
    }

    private mutating func read(_ reader: inout JSONReader) throws(FormatError) {
        try reader.beginObject()
        while let name = try reader.nextMember() {
            members.append((name.string(), try reader.readString().secret()))
        }
    }

    /// Of a name that is there twice, the last.
    subscript(name: String) -> Secret? { members.last { $0.name == name }?.value }

    func text(_ name: String) -> String? { self[name]?.word }

    /// A word of an enumeration.
    func word<Word: RawRepresentable<String>>(_ name: String) -> Word? {
        text(name).flatMap { Word(rawValue: $0) }
    }

    /// A member that is a list of rows itself; `nil` where there is none.
    ///
    /// - Parameter atMost: a longer list is none of the party's.
    func rows(_ name: String, atMost limit: Int) throws(FormatError) -> [KitObject]? {
        guard let text = self[name] else { return nil }
        return try text.reveal { (bytes) throws(FormatError) in
            var rows: [KitObject] = []
            var reader = JSONReader(bytes, depthLimit: 2)
            try reader.beginArray()
            while try reader.nextElement() {
                guard rows.count < limit else { throw FormatError(.wrongType) }
                var row: KitObject = [:]
                try row.read(&reader)
                rows.append(row)
            }
            try reader.end()
            return rows
        }
    }

    /// As JSON.
    var text: Secret {
        var json = JSONWriter(reserving: 256 + 2 * bytes)
        write(into: &json)
        return json.takeSecret()
    }

    private var bytes: Int { members.reduce(0) { $0 + $1.name.utf8.count + $1.value.count + 8 } }

    private func write(into json: inout JSONWriter) {
        json.beginObject()
        for (name, value) in members {
            json.key(name)
            value.reveal { json.string(utf8: $0) }
        }
        json.endObject()
    }

    /// A list of rows as JSON.
    static func text(_ rows: [KitObject]) -> Secret {
        var json = JSONWriter(reserving: 256 + 2 * rows.reduce(0) { $0 + $1.bytes })
        json.beginArray()
        for row in rows { row.write(into: &json) }
        json.endArray()
        return json.takeSecret()
    }
}

/// What a ``KitObject`` keeps.
protocol KitText { var kept: Secret? { get } }

extension String: KitText { var kept: Secret? { Secret(utf8) } }
extension Secret: KitText { var kept: Secret? { self } }
extension Optional: KitText where Wrapped: KitText { var kept: Secret? { self?.kept } }

extension World {
    /// A token that no push service has given out.
    func inventToken(isApple: Bool) -> Secret {
        Secret((isApple ? inventAppleToken() : inventGoogleAddress("played")).utf8)
    }
}
