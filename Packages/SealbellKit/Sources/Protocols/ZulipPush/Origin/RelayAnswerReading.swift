import PushModel
import WireFormats

/// The members of a relay's answer that an origin looks at. Whoever answers may be anybody, so of the text
/// nothing else is kept: a tree of all values would take twenty times its room.
///
/// Of doubled members the last counts. A member of another type than it should have is not there; an answer
/// that is not one JSON object has none.
struct RelayAnswerReading {
    var result: String?
    private var sentCode: String?
    private var seedCode: String?
    /// Whole numbers of 64 bits with a sign.
    var deviceID: Int64?
    var apple: Int64?
    var android: Int64?
    var canPush: Bool?
    /// `nil` for a list with anything else than ids, or with more than a call has.
    var deadTokenIDs: [TokenID]?
    /// The same; without numbers below 1, which nobody has.
    var deadDeviceIDs: [Int64]?
    /// Of the stale list, as it stands; `nil` also where it has more than a page.
    var deviceIDs: [Int64]?
    /// Of the stale list: `.some(nil)` for JSON's null.
    var nextAfter: Int64??
    /// Of pushes, by device; of the first as many as a call has.
    var references: [String: PushID] = [:]
    private var isObject = false

    init(_ body: Secret) {
        var read = RelayAnswerReading()
        body.reveal { bytes in
            guard bytes.count <= ZulipOriginLimits.answerBytes else { return }
            var reader = JSONReader(bytes, depthLimit: ZulipLimits.jsonDepth)
            // Whatever cannot be read is the same to all callers: no answer of this protocol.
            do throws(FormatError) { try read.read(&reader) } catch { read = RelayAnswerReading() }
        }
        self = read
    }

    private init() {}

    /// `result` may be missing, but must not say otherwise.
    var isSuccess: Bool { isObject && (result ?? "success") == "success" }

    /// In upper case, as Zulip spells codes: `code`, else `error_code`.
    var code: String? { (sentCode ?? seedCode)?.uppercased() }

    private mutating func read(_ reader: inout JSONReader) throws(FormatError) {
        try reader.beginObject()
        while let name = try reader.nextMember() {
            if name.equals("result") {
                result = try Self.word(&reader) ?? ""
            } else if name.equals("code") {
                sentCode = try Self.word(&reader)
            } else if name.equals("error_code") {
                seedCode = try Self.word(&reader)
            } else if name.equals("device_id") {
                deviceID = try Self.integer(&reader)
            } else if name.equals("apple_successfully_sent_count") {
                apple = try Self.integer(&reader)
            } else if name.equals("android_successfully_sent_count") {
                android = try Self.integer(&reader)
            } else if name.equals("realm_push_status") {
                canPush = try Self.pushStatus(&reader)
            } else if name.equals("next_after") {
                nextAfter = try Self.cursor(&reader)
            } else {
                try readIDs(name, &reader)
            }
        }
        try reader.end()
        isObject = true
    }

    private mutating func readIDs(_ name: JSONStringSlice, _ reader: inout JSONReader) throws(FormatError) {
        if name.equals("delete_token_ids") {
            deadTokenIDs = try Self.list(&reader, ZulipLimits.requestsPerCall) {
                (reader) throws(FormatError) in
                try Self.word(&reader).flatMap { TokenID($0) }
            }.map { Self.once($0) }
        } else if name.equals("delete_device_ids") {
            deadDeviceIDs = try Self.list(&reader, ZulipLimits.requestsPerCall) {
                (reader) throws(FormatError) in
                try Self.integer(&reader)
            }.map { Self.once($0.filter { $0 > 0 }) }
        } else if name.equals("device_ids") {
            deviceIDs = try Self.list(&reader, ZulipLimits.staleIDsPerPage) {
                (reader) throws(FormatError) in
                try Self.integer(&reader)
            }
        } else if name.equals("references") {
            references = try Self.references(&reader)
        } else {
            try reader.skipValue()
        }
    }

    private static func references(_ reader: inout JSONReader) throws(FormatError) -> [String: PushID] {
        guard try reader.peek() == .object else {
            try reader.skipValue()
            return [:]
        }
        var found: [String: PushID] = [:]
        try reader.beginObject()
        while let name = try reader.nextMember() {
            let device = name.raw.count <= 32 ? name.string() : nil
            guard let device, let id = try word(&reader).flatMap({ PushID(text: $0) }),
                found.count < ZulipLimits.requestsPerCall
            else {
                if device == nil { try reader.skipValue() }
                continue
            }
            found[device] = id
        }
        return found
    }

    /// A list of which every element is what it should be, and that has no more than `limit`; else `nil`.
    private static func list<Element>(
        _ reader: inout JSONReader, _ limit: Int,
        _ element: (inout JSONReader) throws(FormatError) -> Element?
    ) throws(FormatError) -> [Element]? {
        guard try reader.peek() == .array else {
            try reader.skipValue()
            return nil
        }
        var found: [Element]? = []
        try reader.beginArray()
        while try reader.nextElement() {
            guard let next = try element(&reader), found?.count ?? limit < limit else {
                found = nil
                continue
            }
            found?.append(next)
        }
        return found
    }

    private static func once<Element: Hashable>(_ elements: [Element]) -> [Element] {
        var seen: Set<Element> = []
        return elements.filter { seen.insert($0).inserted }
    }

    /// A short text; `nil` for anything else.
    private static func word(_ reader: inout JSONReader) throws(FormatError) -> String? {
        guard try reader.peek() == .string else {
            try reader.skipValue()
            return nil
        }
        let text = try reader.readString()
        return text.raw.count <= 128 ? text.string() : nil
    }

    /// Read as an integer, never through a double; `nil` for a fraction, an exponent and what does not fit.
    private static func integer(_ reader: inout JSONReader) throws(FormatError) -> Int64? {
        guard try reader.peek() == .number else {
            try reader.skipValue()
            return nil
        }
        return try reader.readNumber().int64
    }

    private static func cursor(_ reader: inout JSONReader) throws(FormatError) -> Int64?? {
        if try reader.readNull() { return .some(nil) }
        return try integer(&reader).map { .some($0) } ?? .none
    }

    private static func pushStatus(_ reader: inout JSONReader) throws(FormatError) -> Bool? {
        guard try reader.peek() == .object else {
            try reader.skipValue()
            return nil
        }
        var canPush: Bool?
        try reader.beginObject()
        while let name = try reader.nextMember() {
            if name.equals("can_push"), try reader.peek() == .bool {
                canPush = try reader.readBool()
            } else {
                try reader.skipValue()
            }
        }
        return canPush
    }
}
