import MarmotPush
import PushModel
import Secp256k1Keys
import Testing
import WireFormats

/// Recognition of the four formats, and what each takes as content (docs/conformance/marmot.md).
@Suite("Marmot triggers")
struct TriggerTests {
    private func event(_ tags: [[String]], _ content: Secret, kind: Int = 446) throws -> NostrEvent {
        .rumor(
            kind: kind, createdAt: 1, tags: tags, content: content,
            author: try MarmotSupport.pair(3).publicKey)
    }

    private func code(
        _ tags: [[String]], _ content: Secret, formats: Set<TokenFormat> = Set(TokenFormat.allCases)
    ) throws -> MarmotError.Code? {
        let event = try event(tags, content)
        return MarmotSupport.code { () throws(MarmotError) in
            _ = try TriggerContent(reading: event, formats: formats)
        }
    }

    /// `count` tokens of the format's size, none like another.
    private func chunks(_ format: TokenFormat, _ count: Int) -> [Secret] {
        (0..<count).map { number in
            Secret([UInt8](repeating: UInt8(number), count: format.tokenBytes ?? 60 + number))
        }
    }

    private func base64(_ count: Int) -> Secret { Secret(Base64.encode([UInt8](repeating: 3, count: count))) }

    @Test("What is written in a format is read in that format", arguments: TokenFormat.allCases)
    func roundTrip(format: TokenFormat) throws {
        for count in [1, 2, 3, format.mostTokens] {
            let written = try TriggerContent(format, chunks(format, count))
            let read = try TriggerContent(reading: event(format.triggerTags, written.serialized()))
            #expect(read.format == format && read.count == count && read.unusable == 0)
            #expect(read.digest == written.digest)
            #expect(zip(read.chunks, written.chunks).allSatisfy { $0 == $1 })
        }
    }

    @Test("A content that is cut at any length is refused", arguments: TokenFormat.allCases)
    func truncated(format: TokenFormat) throws {
        let text = try TriggerContent(format, chunks(format, 2)).serialized()
        for count in 0..<text.count {
            // What is left of 1084-byte chunks may be whole chunks of 280, which no tag tells apart.
            if format == .mip05Long, count % 4 == 0, (count / 4 * 3).isMultiple(of: 280) { continue }
            let cut = text.reveal { Secret($0.prefix(count)) }
            #expect(try code(format.triggerTags, cut) != nil, "\(count)")
        }
    }

    @Test(
        "More than a format may hold, none, or one of another size is refused",
        arguments: TokenFormat.allCases)
    func counts(format: TokenFormat) throws {
        let many = chunks(format, format.mostTokens + 1)
        #expect(
            MarmotSupport.code { () throws(MarmotError) in _ = try TriggerContent(format, many) }
                == .tooMuchContent)
        guard let size = format.tokenBytes else {
            let zeros = Array(repeating: "\"00\"", count: format.mostTokens + 1).joined(separator: ",")
            #expect(try code([], MarmotSupport.text("[\(zeros)]")) == .malformedTrigger)
            #expect(try code([], MarmotSupport.text("[]")) == nil)
            return
        }
        #expect(
            try code(format.triggerTags, base64((format.mostTokens + 1) * size)) == .malformedTrigger)
        #expect(try code(format.triggerTags, base64(0)) == .malformedTrigger)
        let wrongs: [[Secret]] = [[], [Secret([UInt8](repeating: 0, count: size - 1))]]
        for wrong in wrongs {
            #expect(
                MarmotSupport.code { () throws(MarmotError) in _ = try TriggerContent(format, wrong) }
                    == .malformedTrigger)
        }
    }

    @Test("Tags that name no format are refused, whatever the content")
    func tags() throws {
        let none: [[[String]]] = [
            [["v"]], [["v", "marmot-push-v1", "x"]], [["v", "marmot-push-v1"], ["v", "marmot-push-v1"]],
            [["v", "marmot-push-v1"], ["encoding", "base64"]], [["v", "Marmot-push-v1"]],
            [["v", "mip05-v1"], ["encoding", "hex"]], [["v", "mip05-v1"], ["encoding"]],
            [["v", "mip05-v1"], ["v", "marmot-push-v1"]], [["v", "mip05-v2"]], [["v", "mip05-v1"], ["v"]],
            [["encoding", "hex"]]
        ]
        for tags in none {
            for content in [base64(1084), base64(280), MarmotSupport.text("[]")] {
                #expect(try code(tags, content) == .unknownVersion, "\(tags)")
            }
        }
        let reversed = [["encoding", "base64"], ["v", "mip05-v1"]]
        #expect(try TriggerContent(reading: event(reversed, base64(1084))).format == .mip05Long)
        #expect(try TriggerContent(reading: event([["v", "mip05-v1"]], base64(560))).format == .mip05Short)
        #expect(try TriggerContent(reading: event([], base64(280))).format == .mip05Short)
        #expect(try code([], base64(1084)) == .unknownVersion)
        #expect(try code([["v", "marmot-push-v1"]], base64(280)) == .malformedTrigger)
    }

    @Test("Of the older formats only what two tags say counts, however often and beside whatever they say it")
    func liberal() throws {
        let versioned: [[[String]]] = [
            [["v", "mip05-v1"], ["x"]], [["v", "mip05-v1"], ["v", "mip05-v1"]], [["v", "mip05-v1", "x"]],
            [["v", "mip05-v1"], ["encoding", "base64"], ["encoding", "base64", "y"]],
            [[], ["v", "mip05-v1"]], [["x", "y"], ["v", "mip05-v1"]]
        ]
        for tags in versioned {
            #expect(try TriggerContent(reading: event(tags, base64(1084))).format == .mip05Long)
            #expect(try TriggerContent(reading: event(tags, base64(280))).format == .mip05Short)
        }
        for tags in [[["x", "y"]], [[]], [["encoding", "base64"]]] {
            #expect(try TriggerContent(reading: event(tags, base64(280))).format == .mip05Short)
            #expect(try TriggerContent(reading: event(tags, MarmotSupport.text("[]"))).format == .seed)
        }
    }

    @Test("White space around a content counts for nothing but in push-v1", arguments: TokenFormat.allCases)
    func whiteSpace(format: TokenFormat) throws {
        let written = try TriggerContent(format, chunks(format, 2))
        let text = written.serialized().reveal { String(decoding: $0, as: UTF8.self) }
        for spaced in ["\n\(text)", "\(text)\r\n", " \t\(text)  "] {
            let content = MarmotSupport.text(spaced)
            if format == .pushV1 {
                #expect(try code(format.triggerTags, content) == .malformedTrigger)
            } else {
                let read = try TriggerContent(reading: event(format.triggerTags, content))
                #expect(read.format == format && read.digest == written.digest)
            }
        }
        #expect(try code(format.triggerTags, MarmotSupport.text(" \n")) == .malformedTrigger)
    }

    @Test("Only the canonical base64 of the standard alphabet is read")
    func base64Spelling() throws {
        let text = try TriggerContent(.pushV1, [Secret([UInt8](repeating: 0xFB, count: 1084))]).serialized()
        let good = text.reveal { String(decoding: $0, as: UTF8.self) }
        let tags = TokenFormat.pushV1.triggerTags
        #expect(try code(tags, MarmotSupport.text(good)) == nil)
        let bad = [
            good.replacing("+", with: "-"), good.replacing("=", with: ""), good + "\n", " " + good,
            good + "====", good.replacing("=", with: "A"), String(good.dropLast(2)) + "x=",
            String(good.dropLast(3)) + "x==", "\"\(good)\""
        ]
        for text in bad { #expect(try code(tags, MarmotSupport.text(text)) == .malformedTrigger) }
    }

    @Test("An item of a list that can be no token wakes nobody and harms nobody")
    func items() throws {
        let hex = String(repeating: "0A", count: 61)
        let long = String(repeating: "00", count: 5_000)
        let list = "[\"\(hex)\",\"0\",\"zz\",1,null,{},[[\"\(hex)\"]],\"\\u0030a\",\"\(long)\",\"\"]"
        let content = try TriggerContent(reading: event([], MarmotSupport.text(list)))
        #expect(content.count == 10 && content.unusable == 8)
        #expect(content.chunks.map(\.count) == [61, 0])
        for text in ["[\"00\"", "[\"00\"]]", "[\"00\",]", "[00]", "{\"0\":1}", "\"00\"", "[\"\\x\"]"] {
            #expect(try code([], MarmotSupport.text(text)) != nil, "\(text)")
        }
    }

    @Test("A format that is switched off is refused, and another kind is no trigger")
    func refused() throws {
        for format in TokenFormat.allCases {
            let content = try TriggerContent(format, chunks(format, 1)).serialized()
            let others = Set(TokenFormat.allCases).subtracting([format])
            #expect(try code(format.triggerTags, content, formats: others) == .formatSwitchedOff)
            #expect(try code(format.triggerTags, content, formats: [format]) == nil)
        }
        let other = try event([], MarmotSupport.text("[]"), kind: 447)
        #expect(
            MarmotSupport.code { () throws(MarmotError) in _ = try TriggerContent(reading: other) }
                == .wrongKind)
    }
}
