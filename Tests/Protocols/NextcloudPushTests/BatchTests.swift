@testable import NextcloudPush
import PushModel
import Testing
import WireFormats

/// How the bodies of notifications calls are read.
@Suite("Nextcloud batches", .timeLimit(.minutes(30)))
struct BatchTests {
    @Test(
        "A form without any entry is refused: no server sends one", arguments: ["", "a=b", "notifications=1"])
    func none(_ body: String) async throws {
        let rig = try await NextcloudRelayRig.make()
        let answer = await rig.ask("POST", "/notifications", body: Array(body.utf8))
        #expect(answer.status == 400 && answer.unknown == nil && answer.failed == nil)
    }

    private func batch(_ body: String, isJSON: Bool = false) throws -> NotificationBatch {
        try batch(Array(body.utf8), isJSON: isJSON)
    }

    private func batch(_ body: [UInt8], isJSON: Bool = false) throws -> NotificationBatch {
        try withBytes(body) { (bytes) throws(NextcloudError) in
            try NotificationBatch(parsing: bytes, isJSON: isJSON)
        }
    }

    private func encoded(_ text: String) -> String {
        let form = Form([("x", Array(text.utf8))]).encoded()
        return String(decoding: form.dropFirst(2), as: UTF8.self)
    }

    /// An entry whose identifier is so many times that byte.
    private func entry(_ byte: UInt8, more: String = "") -> String {
        let id = Base64.text([UInt8](repeating: byte, count: 64))
        let hash = String(repeating: "0", count: 128)
        let block = Base64.text([UInt8](repeating: byte, count: 256))
        return #"{"deviceIdentifier":"\#(id)","pushTokenHash":"\#(hash)","subject":"\#(block)","#
            + #""signature":"\#(block)"\#(more)}"#
    }

    private func ids(_ batch: NotificationBatch) -> [UInt8] {
        batch.entries.map { $0.identifier.withBytes { $0[0] } }
    }

    @Test("Entries are found with brackets encoded or not, numbers in any order, words, and none")
    func names() throws {
        let body = [
            "notifications%5B7%5D=" + encoded(entry(1)), "format=json",
            "notifications[0]=" + encoded(entry(2)),
            "notifications%5b%5d=" + encoded(entry(3)), "%6Eotifications[a]=" + encoded(entry(4)),
            "notification[1]=" + encoded(entry(5)), "notifications=" + encoded(entry(6)),
            "notifications[9=" + encoded(entry(7)), "&&", "x"
        ]
        let read = try batch(body.joined(separator: "&"))
        #expect(ids(read) == [1, 2, 3, 4] && read.malformed == 0)
    }

    @Test("Of two with one index the last counts, in the place of the first; an index may be its own array")
    func doubles() throws {
        let body = [
            "notifications[1]=" + encoded(entry(1)), "notifications[2]=" + encoded(entry(2)),
            "notifications%5B1%5D=" + encoded(entry(3)), "notifications[01]=" + encoded(entry(4)),
            "notifications[]=" + encoded(entry(5)), "notifications[3]=" + encoded(entry(6)),
            "notifications[8][x]=" + encoded(entry(7))
        ]
        let read = try batch(body.joined(separator: "&"))
        #expect(ids(read) == [3, 2, 4, 6] && read.malformed == 1)
    }

    @Test("A JSON body has its entries as texts or as objects, and ignores what it does not know")
    func json() throws {
        let text = String(decoding: JSONValue.string(entry(2)).serialized(), as: UTF8.self)
        let read = try batch(
            #"{"x":[1],"notifications":[\#(entry(1)),\#(text),null,[],"no",7]}"#, isJSON: true)
        #expect(ids(read) == [1, 2] && read.malformed == 4)
        #expect(try batch(#"{"notifications":7}"#, isJSON: true).entries.isEmpty)
        #expect(try batch("{}", isJSON: true).entries.isEmpty)
        for bad in ["", "[]", "{", #"{"notifications":[}"#, "nul"] {
            #expect(throws: NextcloudError(.malformedJSON)) { try batch(bad, isJSON: true) }
        }
    }

    @Test("Type and priority are read; any escapes inside are; of doubles the last counts")
    func fields() throws {
        let read = try batch(
            [
                entry(1, more: #","priority":"high","type":"voip""#),
                entry(2, more: #","type":"background","type":"vo\u0069p""#), entry(3, more: #","type":null"#),
                entry(4, more: #","more":{"a":[1,2]}"#)
            ].map { "notifications[]=" + encoded($0) }.joined(separator: "&"))
        #expect(ids(read) == [1, 2, 4] && read.malformed == 1)
        #expect(read.entries.map(\.kind) == [.voip, .voip, .alert])
        #expect(read.entries.map(\.isHigh) == [true, false, false])
        let (subject, signature) = read.texts(at: try #require(read.entries[0].place))
        let block = Base64.encode([UInt8](repeating: 1, count: 256))
        #expect(read.texts.reveal { Array($0[subject]) == block && Array($0[signature]) == block })
        // Every letter of a block as an escape.
        let odd = entry(5).replacing(
            String(decoding: Base64.encode([UInt8](repeating: 5, count: 256)), as: UTF8.self),
            with: Base64.encode([UInt8](repeating: 5, count: 256)).map { #"\u00"# + Hex.encode([$0]) }
                .joined())
        #expect(try batch("notifications[0]=" + encoded(odd)).entries.first?.place != nil)
    }

    @Test("Sixteen mebibytes of entries are read, each once; more entries than may be are refused whole")
    func large() throws {
        var body: [UInt8] = []
        let one = Array(encoded(entry(9)).utf8)
        var count = 0
        while body.count + one.count + 32 < NextcloudLimits.notifyBodyBytes {
            body += Array("notifications%5B\(count)%5D=".utf8) + one + [0x26]
            count += 1
        }
        #expect(count > 13_000)
        let read = try batch(body)
        #expect(read.entries.count == count && read.malformed == 0)
        let many = String(repeating: "notifications[]=&", count: NextcloudLimits.entriesPerCall + 1)
        #expect(throws: NextcloudError(.tooManyEntries)) { try batch(many) }
        let list = Array(repeating: "0", count: NextcloudLimits.entriesPerCall + 1).joined(separator: ",")
        #expect(throws: NextcloudError(.tooManyEntries)) {
            try batch(#"{"notifications":[\#(list)]}"#, isJSON: true)
        }
        let same = String(repeating: "notifications[1]=&", count: 200_000)
        #expect(try batch(same).malformed == 1)
    }

    @Test("Many tiny entries take no more memory than the body has, and a real one among them is read")
    func tiny() throws {
        let zeros = String(repeating: "0,", count: NextcloudLimits.bytesOnLoop / 2 - 1_000)
        let none = #"{"notifications":[\#(zeros)0]}"#
        #expect(try batch(none, isJSON: true).texts.count == 0)
        let list = #"{"notifications":[\#(zeros)\#(entry(1)),0]}"#
        for (body, isJSON) in [
            (list, true),
            (
                String(repeating: "notifications[]=&", count: 1_000) + "notifications[]=" + encoded(entry(1)),
                false
            )
        ] {
            let read = try batch(body, isJSON: isJSON)
            #expect(read.texts.count == 2 * NextcloudLimits.blockCharacters)
            #expect(ids(read) == [1] && read.entries.first?.place == 0)
        }
        // It names a device, and has no texts that could be passed on.
        let id = Base64.text([UInt8](repeating: 3, count: 64))
        let short = #"{"deviceIdentifier":"\#(id)","pushTokenHash":"","subject":"","signature":""}"#
        let read = try batch(#"{"notifications":[\#(short),\#(short)]}"#, isJSON: true)
        #expect(ids(read) == [3, 3] && read.entries.allSatisfy { $0.place == nil } && read.texts.count == 0)
    }

    @Test("A body that is cut anywhere is read without harm, and nothing but whole entries is in it")
    func cut() throws {
        let body = Array(
            ("notifications[0]=" + encoded(entry(1)) + "&notifications[1]=" + encoded(entry(2))).utf8)
        let name = "notifications[]".utf8.count
        #expect(throws: NextcloudError(.missingParameter)) { try batch(Array(body.prefix(name - 1))) }
        for count in stride(from: name + 1, to: body.count, by: 7) {
            let read = try batch(Array(body.prefix(count)))
            #expect(read.entries.count + read.malformed <= 2 && read.entries.count <= 1)
        }
        #expect(try batch(body).entries.count == 2)
    }
}
