package import PushModel
import WireFormats

/// What is known of pushes that a gateway did not take.
package struct GorushFailures: Sendable {
    /// Places of all that failed.
    package private(set) var failed: Set<Int> = []
    /// What it was told of some of their tokens.
    package private(set) var words: [Int: GorushAnswer.Word] = [:]

    package init() {}

    /// All of a call failed, and nothing is known of why.
    package init(all pushes: ArraySlice<GatewayHandover.Push>) { failed = Set(pushes.indices) }

    package mutating func add(_ other: GorushFailures) {
        failed.formUnion(other.failed)
        words.merge(other.words) { first, _ in first }
    }

    fileprivate mutating func add(_ places: [Int], _ word: GorushAnswer.Word?) {
        failed.formUnion(places)
        guard let word else { return }
        for place in places where words[place] != .dead { words[place] = word }
    }
}

/// What gorush answers: `logs`, where each entry is a failure, and `counts`. What it drops, as all for a
/// platform that is switched off there, it tells by a lower count alone. Each token counts one, and since
/// June 2024 a topic one more, an iPhone's too: so a call has pushes of one platform alone, of which all are
/// dropped or none, and one of two numbers says that none was.
package struct GorushAnswer {
    /// What a push service said of a token, where that is about the token and nothing else
    /// (docs/conformance/status.md).
    package enum Word: Sendable, Hashable {
        case dead
        /// Apple does not know it in this environment: dead, unless gorush is set to the wrong one.
        case bad
    }

    private struct Entry {
        var id: Int?
        var token: Secret?
        var apple: Word?
        var google: Word?
    }

    /// Letters of a token that have to be seen where gorush hides some: it leaves 44 of Apple's 64.
    private static let seenLetters = 32

    private var entries: [Entry] = []
    /// Tokens and topics that it took.
    private var count: Int64?

    /// `nil` for what is no answer of gorush's.
    package init?(_ body: Secret) {
        // The reason may be the answer's own text.
        guard let (entries, count) = body.reveal({ try? Self.read($0) }) else { return nil }
        (self.entries, self.count) = (entries, count)
    }

    private static func read(
        _ body: UnsafeRawBufferPointer
    ) throws(FormatError) -> (entries: [Entry], count: Int64?)? {
        var entries: [Entry] = []
        var count: Int64?
        var isAnswer = false
        var reader = JSONReader(body)
        try reader.beginObject()
        while let name = try reader.nextMember() {
            if name.equals("logs"), try reader.peek() == .array {
                isAnswer = true
                try reader.beginArray()
                while try reader.nextElement() { entries.append(try entry(&reader)) }
            } else if name.equals("counts"), try reader.peek() == .number {
                // Enough for an answer, where gorush writes `logs` as null.
                isAnswer = true
                count = try reader.readNumber().int64
            } else {
                try reader.skipValue()
            }
        }
        try reader.end()
        return isAnswer ? (entries, count) : nil
    }

    private static func entry(_ reader: inout JSONReader) throws(FormatError) -> Entry {
        var entry = Entry()
        try reader.beginObject()
        while let name = try reader.nextMember() {
            let isText = try reader.peek() == .string
            if isText, name.equals("notif_id") {
                entry.id = Int(try reader.readString().string())
            } else if isText, name.equals("token") {
                entry.token = try reader.readString().secret()
            } else if isText, name.equals("error") {
                let error = try reader.readString()
                if error.equals("Unregistered") || error.equals("ExpiredToken") { entry.apple = .dead }
                if error.equals("BadDeviceToken") { entry.apple = .bad }
                // Of a token that was valid once, today's Google says what it says of a project too.
                if error.equals("The registration token is not a valid FCM registration token")
                    || error.equals("unregistered device") || error.equals("invalid registration token")
                {
                    entry.google = .dead
                }
            } else {
                try reader.skipValue()
            }
        }
        return entry
    }

    /// Which of a call's pushes failed. An entry that fits none of them stands for any: then nothing is known
    /// of all. So it is where too few were counted.
    package func failures(of pushes: ArraySlice<GatewayHandover.Push>) -> GorushFailures {
        let tokens = pushes.count
        if let count, count != tokens, count != tokens + pushes.count(where: \.hasTopic) {
            return GorushFailures(all: pushes)
        }
        var failures = GorushFailures()
        for entry in entries {
            if let id = entry.id, pushes.indices.contains(id) {
                let push = pushes[id]
                // Another token than that of the number: whose word it is nobody knows.
                let isOurs = entry.token.map { Self.names($0, push.token) } ?? false
                failures.add([id], isOurs ? Self.word(entry, push) : nil)
                continue
            }
            let places = pushes.indices.filter { place in
                entry.token.map { Self.names($0, pushes[place].token) } ?? false
            }
            guard let first = places.first else { return GorushFailures(all: pushes) }
            // Letters that are hidden may be what two tokens differ in.
            let isOne = places.allSatisfy { pushes[$0].token == pushes[first].token }
            failures.add(places, isOne ? Self.word(entry, pushes[first]) : nil)
        }
        return failures
    }

    private static func word(_ entry: Entry, _ push: GatewayHandover.Push) -> Word? {
        push.isApple ? entry.apple : entry.google
    }

    /// Whether a token of `logs` is that one: gorush puts asterisks in the place of its first and last ten
    /// letters, unless it is told to hide none.
    private static func names(_ logged: Secret, _ token: Secret) -> Bool {
        if logged == token { return true }
        guard logged.count == token.count else { return false }
        return logged.reveal { logged in
            token.reveal { token in
                var seen = 0
                for (one, other) in zip(logged, token) {
                    if one == other { seen += 1 } else if one != UInt8(ascii: "*") { return false }
                }
                return seen >= seenLetters
            }
        }
    }
}

/// Whether Apple's word for a token that it does not know is believed: a gorush that is set to the wrong
/// environment hears it of every token.
package struct BadTokenTrust: Sendable {
    /// As many in a row as halt a lane of ours.
    private static let most = 20
    private var left = 0

    package init() {}

    /// Apple has taken a push: gorush asks where our tokens are known.
    package mutating func accepted() { left = Self.most }

    /// Another one was not known.
    package mutating func isBelieved() -> Bool {
        guard left > 0 else { return false }
        left -= 1
        return true
    }

    /// Places of pushes whose token is dead, so that the registration ends as with a lane.
    package mutating func dead(
        _ failures: GorushFailures, among pushes: [GatewayHandover.Push]
    ) -> Set<Int> {
        let isProof = pushes.indices.contains { pushes[$0].isApple && !failures.failed.contains($0) }
        if isProof { accepted() }
        var dead: Set<Int> = []
        for (place, word) in failures.words.sorted(by: { $0.key < $1.key })
        where word == .dead || isBelieved() {
            dead.insert(place)
        }
        return dead
    }
}
