import MarmotPush
import PushModel
import Secp256k1Keys
import Testing
import WireFormats

/// Events of NIP-01: exact bytes out, nothing doubtful in.
@Suite("Nostr events")
struct EventTests {
    private static let id = String(repeating: "0a", count: 32)
    /// The X of the point that belongs to 3 (BIP-340, test vector 0).
    private static let key = "f9308a019258c31049344f85f89d5229b531c845836f99b08601f113bce036f9"
    private static let signature = String(repeating: "0b", count: 64)

    /// The members of a well-formed event as JSON, by name, in order.
    private static let members: [(name: String, value: String)] = [
        ("id", "\"\(id)\""), ("pubkey", "\"\(key)\""), ("created_at", "5"), ("kind", "446"),
        ("tags", "[[\"p\",\"x\"]]"), ("content", "\"c\""), ("sig", "\"\(signature)\"")
    ]

    private static func json(_ members: [(name: String, value: String)]) -> String {
        "{" + members.map { "\"\($0.name)\":\($0.value)" }.joined(separator: ",") + "}"
    }

    private func code(_ json: String, _ completeness: NostrEvent.Completeness = .signed) -> MarmotError.Code?
    {
        MarmotSupport.code { () throws(MarmotError) in
            _ = try NostrEvent.parse(MarmotSupport.text(json), completeness)
        }
    }

    @Test("A well-formed event is read, in any order of its members and with unknown ones between")
    func wellFormed() throws {
        let event = try NostrEvent.parse(MarmotSupport.text(Self.json(Self.members)))
        #expect(Hex.encode(event.id) == Self.id && event.pubkey.hex == Self.key)
        #expect(event.createdAt == 5 && event.kind == 446 && event.tags == [["p", "x"]])
        #expect(event.content == Secret("c".utf8))
        #expect(event.signature.map(Hex.encode) == Self.signature)
        #expect(!event.hasRightID && !event.isSigned)
        var strange = Array(Self.members.reversed())
        strange.insert((name: "x", value: "{\"a\":[1,null]}"), at: 0)
        strange.append((name: "y", value: "true"))
        #expect(code(Self.json(strange)) == nil)
        #expect(code(" \n" + Self.json(Self.members) + "\t ") == nil)
    }

    @Test("A member that is missing or doubled makes it no event")
    func missing() {
        for (index, member) in Self.members.enumerated() {
            var without = Self.members
            without.remove(at: index)
            #expect(code(Self.json(without)) == .malformedEvent, "\(member.name) missing")
            #expect(code(Self.json(Self.members + [member])) == .malformedEvent, "\(member.name) doubled")
            let mayLack = member.name == "id" || member.name == "sig"
            #expect((code(Self.json(without), .rumor) == nil) == mayLack, "\(member.name) of a rumor")
            // The same name, escaped.
            let first = Hex.encode([member.name.utf8.first ?? 0])
            let escaped = "\\u00" + first + String(member.name.dropFirst())
            let doubled = Self.members + [(name: escaped, value: member.value)]
            #expect(code(Self.json(doubled)) == .malformedEvent)
        }
    }

    /// Values that a member must not have.
    private static let wrong: [(name: String, value: String)] = [
        ("id", "\"\(id.uppercased())\""), ("id", "\"\(id.dropLast())\""), ("id", "\"\(id)00\""),
        ("id", "\"\(id.dropLast(2))\\u0030a\""), ("id", "5"), ("id", "null"), ("id", "\"\""),
        ("pubkey", "\"\(key.uppercased())\""), ("pubkey", "\"02\(key)\""),
        ("pubkey", "\"\(String(repeating: "f", count: 64))\""),
        ("pubkey", "\"\(String(repeating: "0", count: 64))\""),
        ("created_at", "5.0"), ("created_at", "5e0"), ("created_at", "\"5\""), ("created_at", "-1"),
        ("created_at", "9223372036854775808"), ("created_at", "null"), ("created_at", "05"),
        ("kind", "65536"), ("kind", "-1"), ("kind", "1.5"), ("kind", "\"1\""), ("kind", "true"),
        ("tags", "{}"), ("tags", "[\"p\"]"), ("tags", "[[1]]"), ("tags", "[[[\"p\"]]]"), ("tags", "[[null]]"),
        ("tags", "\"[]\""), ("tags", "[[\"p\"],]"), ("tags", "null"),
        ("content", "1"), ("content", "null"), ("content", "\"\\ud800\""), ("content", "\"\\x\""),
        ("content", "\"a\nb\""), ("content", "\"\u{0}\""),
        ("sig", "\"\(signature.uppercased())\""), ("sig", "\"\(signature.dropLast(2))\""), ("sig", "[]"),
        ("x", "[[[[[[[[[1]]]]]]]]]")
    ]

    @Test("A member of another form makes it no event", arguments: EventTests.wrong.indices)
    func malformed(row: Int) {
        let (name, value) = Self.wrong[row]
        let members = Self.members.filter { $0.name != name } + [(name: name, value: value)]
        #expect(code(Self.json(members)) == .malformedEvent, "\(name) \(value)")
    }

    @Test("Invalid UTF-8 and a byte order mark are refused")
    func encodings() {
        let json = Array(Self.json(Self.members).utf8)
        for bytes in [[0xEF, 0xBB, 0xBF] + json, json.map { $0 == 0x63 ? 0xFF : $0 }] {
            #expect(
                MarmotSupport.code { () throws(MarmotError) in _ = try NostrEvent.parse(Secret(bytes)) }
                    == .malformedEvent)
        }
    }

    @Test("Tags, values, unknown members and the whole are bounded, and the bound itself passes")
    func bounds() {
        func with(tags: String) -> MarmotError.Code? {
            code(Self.json(Self.members.filter { $0.name != "tags" } + [(name: "tags", value: tags)]))
        }
        func tags(_ count: Int) -> String {
            "[" + Array(repeating: "[]", count: count).joined(separator: ",") + "]"
        }
        func values(_ count: Int) -> String {
            "[[" + Array(repeating: "\"\"", count: count).joined(separator: ",") + "]]"
        }
        #expect(with(tags: tags(MarmotLimits.tags)) == nil)
        #expect(with(tags: tags(MarmotLimits.tags + 1)) == .malformedEvent)
        #expect(with(tags: tags(10_000)) == .malformedEvent)
        #expect(with(tags: values(MarmotLimits.tagValues)) == nil)
        #expect(with(tags: values(MarmotLimits.tagValues + 1)) == .malformedEvent)
        let long = String(repeating: "a", count: MarmotLimits.tagValueBytes)
        #expect(with(tags: "[[\"\(long)\"]]") == nil)
        #expect(with(tags: "[[\"\(long)a\"]]") == .malformedEvent)
        let unknown = (0...MarmotLimits.unknownMembers).map { (name: "x\($0)", value: "0") }
        #expect(code(Self.json(Self.members + unknown.dropLast())) == nil)
        #expect(code(Self.json(Self.members + unknown)) == .malformedEvent)
        let event = Self.json(Self.members)
        let space = String(repeating: " ", count: MarmotLimits.frameBytes - event.utf8.count)
        #expect(code(event + space) == nil)
        #expect(code(event + space + " ") == .tooLarge)
    }

    @Test("An event that is cut at any length is refused")
    func truncated() throws {
        let event = try MarmotSupport.signed(1, tags: [["a", "\"b\\"], []], "tab\t and \u{1F43F}")
        try event.serialized().reveal { (text: UnsafeRawBufferPointer) throws in
            for count in 0..<text.count {
                let cut = UnsafeRawBufferPointer(rebasing: text[..<count])
                for completeness in [NostrEvent.Completeness.signed, .rumor] {
                    #expect(
                        MarmotSupport.code { () throws(MarmotError) in
                            _ = try NostrEvent.parse(cut, completeness)
                        } == .malformedEvent)
                }
            }
            #expect(try NostrEvent.parse(text).isSigned)
        }
    }

    @Test("A change in any field undoes the signature")
    func changes() throws {
        let event = try MarmotSupport.signed(446, tags: [["v", "x"]], "content")
        let json = try event.serialized().reveal { try JSONValue.parse($0) }
        let other = try MarmotSupport.signed(447, tags: [], "other", by: 4)
        let foreign = try other.serialized().reveal { try JSONValue.parse($0) }
        for name in try #require(json.object?.names) where name != "created_at" {
            var changed = try #require(json.object)
            changed[name] = foreign[name]
            let read = try NostrEvent.parse(Secret(JSONValue.object(changed).serialized()))
            #expect(!read.isSigned, "\(name)")
            #expect(read.hasRightID == (name == "sig"), "\(name)")
        }
        #expect(event.isSigned)
    }

    @Test("A rumor has the id of its fields and no signature, and an id that is left out is worked out")
    func rumors() throws {
        let rumor = NostrEvent.rumor(
            kind: 446, createdAt: 1, content: Secret("x".utf8), author: try MarmotSupport.pair(5).publicKey)
        #expect(rumor.hasRightID && !rumor.isSigned && rumor.signature == nil)
        let text = rumor.serialized()
        #expect(try NostrEvent.parse(text, .rumor).id == rumor.id)
        #expect(
            MarmotSupport.code { () throws(MarmotError) in _ = try NostrEvent.parse(text) } == .malformedEvent
        )
        var json = try #require(text.reveal { try JSONValue.parse($0) }.object)
        json = JSONObject(json, without: "id")
        #expect(try NostrEvent.parse(Secret(JSONValue.object(json).serialized()), .rumor).id == rumor.id)
    }

    @Test("Every character goes through writing and reading, and control characters are escaped")
    func characters() throws {
        var all = ""
        for value in UInt32(0)..<0x250 {
            if let scalar = Unicode.Scalar(value) { all.unicodeScalars.append(scalar) }
        }
        let event = try MarmotSupport.signed(1, tags: [[all], [all, ""]], all)
        let text = event.serialized()
        let read = try NostrEvent.parse(text)
        #expect(read.content == Secret(all.utf8) && read.tags == event.tags && read.isSigned)
        #expect(text.reveal { raw in raw.allSatisfy { $0 >= 0x20 } })
        #expect(read.serialized() == text)
    }
}

extension JSONObject {
    /// The same members but one.
    init(_ other: JSONObject, without name: String) {
        self.init()
        for member in other.members where member.name != name { self[member.name] = member.value }
    }
}
