import PushModel
import WireFormats

/// The file of a party that the command line plays: a JSON object of texts, some of them secret.
enum PlayedFile {
    /// - Parameters:
    ///   - limitBytes: a longer file is none of the party's.
    ///   - make: the party out of the file's members, by name; `nil`, or an error: they are none of it.
    ///   - party: what the file holds, as a sentence names it.
    /// - Throws: `CommandFailure` that names the file, and nothing of what it holds.
    static func read<Party>(
        _ file: String, limitBytes: Int, _ party: String, make: ([String: Secret]) throws -> Party?
    ) throws(CommandFailure) -> Party {
        let bytes: Secret
        do throws(FileFault) { bytes = try readSecret(file, limitBytes: limitBytes) } catch {
            throw CommandFailure(.failed, "\(file): \(error.sentence)")
        }
        // The reason may be the file's own text.
        guard let members = try? members(bytes), let made = try? make(members) else {
            throw CommandFailure(.failed, "\(file): It holds no \(party) of this command's.")
        }
        return made
    }

    /// Whether there is a file, whatever it holds and whether or not it can be read.
    static func isThere(_ file: String, limitBytes: Int) -> Bool {
        do throws(FileFault) {
            _ = try readSecret(file, limitBytes: limitBytes)
            return true
        } catch {
            return error != .missing
        }
    }

    /// A token that no push service has given out.
    static func inventToken(isApple: Bool, _ world: World) -> Secret {
        Secret((isApple ? world.inventAppleToken() : world.inventGoogleAddress("played")).utf8)
    }

    private static func members(_ bytes: Secret) throws(FormatError) -> [String: Secret] {
        try bytes.reveal { (bytes) throws(FormatError) in
            var reader = JSONReader(bytes, depthLimit: 2)
            let members = try members(&reader)
            try reader.end()
            return members
        }
    }

    private static func members(_ reader: inout JSONReader) throws(FormatError) -> [String: Secret] {
        var members: [String: Secret] = [:]
        try reader.beginObject()
        while let name = try reader.nextMember() {
            members[name.string()] = try reader.readString().secret()
        }
        return members
    }

    /// A member that is a list of objects of texts.
    ///
    /// - Parameter atMost: a longer list is none of the party's.
    static func rows(_ text: Secret, atMost limit: Int) throws(FormatError) -> [[String: Secret]] {
        try text.reveal { (bytes) throws(FormatError) in
            var rows: [[String: Secret]] = []
            var reader = JSONReader(bytes, depthLimit: 2)
            try reader.beginArray()
            while try reader.nextElement() {
                guard rows.count < limit else { throw FormatError(.wrongType) }
                rows.append(try members(&reader))
            }
            try reader.end()
            return rows
        }
    }

    /// An object of texts.
    static func write(_ members: [(name: String, value: Secret?)], into json: inout JSONWriter) {
        json.beginObject()
        for (name, value) in members {
            guard let value else { continue }
            json.key(name)
            value.reveal { json.string(utf8: $0) }
        }
        json.endObject()
    }
}
