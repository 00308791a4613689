import PushModel
import Testing
import WireFormats

@Suite("Bencode")
struct BencodeTests {
    private func code(_ text: String, _ rule: BencodeReader.Rule = .lenient) -> FormatError.Code? {
        code(Array(text.utf8), rule)
    }

    private func code(_ bytes: [UInt8], _ rule: BencodeReader.Rule) -> FormatError.Code? {
        withBytes(bytes) { raw in
            var reader = BencodeReader(raw, rule)
            do throws(FormatError) {
                try reader.skipValue()
                try reader.end()
                return nil
            } catch { return error.code }
        }
    }

    @Test(
        "Either rule reads the one spelling of a value",
        arguments: [
            "i0e", "i-1e", "i9223372036854775807e", "i-9223372036854775808e", "i18446744073709551615e", "0:",
            "3:a:b", "le", "de", "l0:i5elee", "d0:0:1:ai1e2:aale1:bdee"
        ])
    func oneSpelling(text: String) {
        #expect(code(text, .strict) == nil)
        #expect(code(text, .lenient) == nil)
    }

    @Test(
        "The lenient rule reads a second spelling too",
        arguments: ["i007e", "i-0e", "i-007e", "i00e", "05:hello", "000:", "d1:bi1e1:ai2ee", "d1:ai1e1:ai2ee"]
    )
    func secondSpelling(text: String) {
        #expect(code(text, .lenient) == nil)
        #expect(code(text, .strict) == .malformedBencode)
    }

    @Test(
        "The strict rule reads integers of any size",
        arguments: ["18446744073709551616", "-9223372036854775809"])
    func large(number: String) {
        #expect(code("i\(number)e", .strict) == nil)
        #expect(code("i\(number)e", .lenient) == .malformedBencode)
    }

    @Test(
        "Neither rule reads what is malformed",
        arguments: [
            "", "e", "x", "i", "i1", "ie", "i-e", "i--1e", "i+1e", "i 1e", "i1.5e", "i1e1", "1", "1:", "2:a",
            ":a", "-1:a", "1a", "5 :hello", "l", "li1e", "d", "d1:a", "d1:ae", "di1e1:ae", "dle1:ae",
            "d1:ai1e",
            "lee", "i1ei1e", "1:ab", "l1:ae\n", "99999999999999999999999999:a", "9223372036854775807:a"
        ])
    func malformed(text: String) {
        #expect(code(text, .strict) == .malformedBencode)
        #expect(code(text, .lenient) == .malformedBencode)
    }

    @Test("Cut at every length, a value is refused")
    func truncation() {
        let text = Array("d1:al3:abci-17ede2:bbi0ee1:c10:0123456789e".utf8)
        for length in 0..<text.count {
            #expect(code(Array(text[..<length]), .lenient) == .malformedBencode, "length \(length)")
            #expect(code(Array(text[..<length]), .strict) == .malformedBencode, "length \(length)")
        }
        #expect(code(text, .strict) == nil)
    }

    @Test("A million brackets meet the bound of depth, and eight nest")
    func depth() {
        let nested = { (count: Int) in
            String(repeating: "l", count: count) + String(repeating: "e", count: count)
        }
        let dictionaries = String(repeating: "d1:a", count: 1_000_000)
        #expect(code(nested(8)) == nil)
        #expect(code(nested(9)) == .tooDeep)
        #expect(code(String(repeating: "l", count: 1_000_000)) == .tooDeep)
        #expect(code(dictionaries, .strict) == .tooDeep)
        #expect(code(dictionaries, .lenient) == .tooDeep)
    }

    @Test("A million leading zeros are read once, and a million digits are refused")
    func manyDigits() {
        let zeros = String(repeating: "0", count: 1_000_000)
        #expect(code(zeros + "1:a") == nil)
        #expect(code("i\(zeros)1e") == nil)
        #expect(code("i1\(zeros)e") == .malformedBencode)
        #expect(code("1\(zeros):a") == .malformedBencode)
    }

    @Test("Integers have their value at either end of 64 bits, and none beyond")
    func integers() throws {
        for (text, int64, uint64) in [
            ("9223372036854775807", Int64.max, 1 << 63 - 1), ("9223372036854775808", nil, 1 << 63),
            ("18446744073709551615", nil, UInt64.max), ("18446744073709551616", nil, nil),
            ("-9223372036854775808", Int64.min, nil), ("-9223372036854775809", nil, nil),
            ("-18446744073709551615", nil, nil), ("0", 0, 0), ("-1", -1, nil)
        ] as [(String, Int64?, UInt64?)] {
            let read = try integer("i\(text)e")
            #expect(read.int64 == int64, "\(text)")
            #expect(read.uint64 == uint64, "\(text)")
        }
    }

    private func integer(_ text: String) throws -> (int64: Int64?, uint64: UInt64?) {
        try withBytes(Array(text.utf8)) { raw in
            var reader = BencodeReader(raw, .strict)
            let integer = try reader.readInteger()
            return (integer.int64, integer.uint64)
        }
    }

    @Test("A value of another type is told from a malformed one")
    func types() {
        #expect(stringCode("i1e") == .wrongType)
        #expect(stringCode("le") == .wrongType)
        #expect(stringCode("x") == .malformedBencode)
        #expect(stringCode("1:a") == nil)
    }

    private func stringCode(_ text: String) -> FormatError.Code? {
        withBytes(Array(text.utf8)) { raw in
            var reader = BencodeReader(raw)
            do throws(FormatError) {
                _ = try reader.readString()
                return nil
            } catch { return error.code }
        }
    }

    @Test("A dictionary is walked forward: skipped keys cost nothing, and one out of order is not found")
    func forward() throws {
        try withBytes(Array("d1:ai1e1:cli2ee1:bi3e1:di4eeX".utf8)) { raw in
            var reader = BencodeReader(raw)
            try reader.beginDictionary()
            #expect(try reader.find("A") == false)
            #expect(try reader.find("b") == false)
            #expect(try reader.find("c") == true)
            try reader.skipValue()
            #expect(try reader.find("d") == true)
            #expect(try reader.readInteger().int64 == 4)
            #expect(try reader.find("e") == false)
            try reader.endDictionary()
            #expect(reader.position == raw.count - 1)
            #expect(throws: FormatError(.malformedBencode)) { try reader.end() }
        }
    }

    @Test("A key is told from a longer and a shorter one")
    func prefixes() throws {
        try withBytes(Array("d0:i0e1:ai1e2:aai2ee".utf8)) { raw in
            var reader = BencodeReader(raw, .strict)
            try reader.beginDictionary()
            #expect(try reader.find("a") == true)
            #expect(try reader.readInteger().int64 == 1)
            #expect(try reader.find("aaa") == false)
            try reader.endDictionary()
            try reader.end()
        }
    }

    @Test("Strict keys rise in each dictionary by itself")
    func nestedKeys() {
        #expect(code("d1:bd1:ai1ee1:ci1ee", .strict) == nil)
        #expect(code("ld1:bi1eed1:ai1eee", .strict) == nil)
        #expect(code("d1:bd1:ci1ee1:ai1ee", .strict) == .malformedBencode)
        #expect(code("d2:aai1e1:bi1e1:\u{7F}i1ee", .strict) == nil)
    }

    @Test("What is written is read back, and hands its memory over once")
    func writing() throws {
        var writer = BencodeWriter()
        writer.beginDictionary()
        writer.key("")
        writer.int(Int64.min)
        writer.key("a")
        writer.beginList()
        writer.int(UInt64.max)
        writer.string([0, 255])
        writer.beginDictionary()
        writer.key("0")
        writer.int(0 as Int64)
        writer.endDictionary()
        writer.endList()
        writer.key("b")
        withBytes(Array("le".utf8)) { writer.raw($0) }
        writer.endDictionary()
        let expected =
            Array("d0:i-9223372036854775808e1:ali18446744073709551615e2:".utf8)
            + [0, 255] + Array("d1:0i0eee1:blee".utf8)
        #expect(writer.bytes == expected)
        #expect(code(expected, .strict) == nil)
        #expect(writer.takeSecret() == Secret(expected))
        #expect(writer.bytes.isEmpty)
    }
}
