import PushModel
import Testing
import WireFormats

@Suite("JSON")
struct JSONTests {
    private func parse(_ text: String) throws(FormatError) -> JSONValue {
        try JSONValue.parse(Array(text.utf8))
    }

    private func code(_ text: String) -> FormatError.Code? {
        do throws(FormatError) {
            _ = try parse(text)
            return nil
        } catch { return error.code }
    }

    @Test(
        "Well-formed texts are read",
        arguments: [
            "null", "true", " false ", "0", "-0", "1e5", "-1.25E-3", "[]", "{}", "\"\"",
            "[1,[2,{\"a\":[]}],null]",
            "\"\\u00e9\\ud83d\\udd14\\/\\b\\f\\n\\r\\t\\\\\\\"\"", "{\"a\":1,\"a\":2}", "\t\n\r [ 1 , 2 ] \n",
            "\"\u{7F}\u{80}ż🔔\""
        ])
    func wellFormed(text: String) { #expect(code(text) == nil) }

    @Test(
        "Malformed texts are refused",
        arguments: [
            "", " ", "nul", "truex", "+1", "01", "1.", ".5", "1e", "-", "0x1", "NaN", "Infinity", "'a'", "\"",
            "\"\\",
            "\"\\x\"", "\"\\u12\"", "\"\\ud800\"", "\"\\ud800\\u0041\"", "\"\\udc00\"", "\"\u{1}\"", "\"\n\"",
            "[", "[1",
            "[1,", "[1,]", "[,1]", "[1 2]", "{", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":1,", "{\"a\":1,}",
            "{a:1}",
            "{\"a\" 1}", "{1:1}", "]", "}", "[}", "{]", "1 2", "{}{}", "\u{FEFF}1", "[1]]", "\u{0}"
        ])
    func malformed(text: String) { #expect(code(text) == .malformedJSON) }

    @Test(
        "What is not UTF-8 is refused",
        arguments: [
            [0x80], [0xC0, 0x80], [0xC1, 0xBF], [0xE0, 0x80, 0x80], [0xE0, 0x9F, 0xBF], [0xED, 0xA0, 0x80],
            [0xF0, 0x80, 0x80, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80], [0xE2, 0x82],
            [0xC3],
            [0xF0, 0x9F, 0x94], [0xFF], [0xE2, 0x28, 0xA1]
        ] as [[UInt8]])
    func notUTF8(bytes: [UInt8]) {
        #expect(throws: FormatError.self) { try JSONValue.parse([0x22] + bytes + [0x22]) }
        #expect(!withBytes(bytes) { UTF8Check.holds($0) })
    }

    @Test("Cut at every length, a text is refused")
    func truncation() {
        let text = Array(#"{"a":[1,-2.5e3,"x\u00e9\ud83d\udd14",true,false,null,{"b":{}}],"c":"ż"}"#.utf8)
        for length in 0..<text.count {
            #expect(throws: FormatError.self, "length \(length)") {
                try JSONValue.parse(Array(text[..<length]))
            }
        }
        #expect(throws: Never.self) { try JSONValue.parse(text) }
    }

    @Test("Depth and size have bounds, exactly")
    func bounds() throws {
        let deep = { (n: Int) in
            Array((String(repeating: "[", count: n) + String(repeating: "]", count: n)).utf8)
        }
        #expect(throws: Never.self) { try JSONValue.parse(deep(32)) }
        #expect(throws: FormatError(.tooDeep)) { try JSONValue.parse(deep(33)) }
        #expect(throws: FormatError(.tooDeep)) { try JSONValue.parse(deep(100_000)) }
        #expect(throws: Never.self) { try JSONValue.parse(Array("1234".utf8), limitBytes: 4) }
        #expect(throws: FormatError(.tooLarge)) { try JSONValue.parse(Array("12345".utf8), limitBytes: 4) }
    }

    @Test("Of doubles the last counts, in the first one's place")
    func doubles() throws {
        let value = try parse(#"{"a":1,"b":2,"a":3}"#)
        #expect(value["a"]?.int64 == 3)
        #expect(value.object?.names == ["a", "b"])
    }

    @Test("Integers are integers as written")
    func integers() throws {
        #expect(try parse("9223372036854775807").int64 == .max)
        #expect(try parse("-9223372036854775808").int64 == .min)
        #expect(try parse("9223372036854775808").int64 == nil)
        #expect(try parse("1.0").int64 == nil)
        #expect(try parse("1e2").int64 == nil)
        #expect(try parse("1e2").double == 100)
        #expect(try parse("4294967295").uint32 == .max)
        #expect(try parse("4294967296").uint32 == nil)
        #expect(try parse("-1").uint32 == nil)
    }

    @Test("The pull reader's numbers agree with the tree's")
    func slices() throws {
        for text in [
            "0", "-0", "7", "-9223372036854775808", "9223372036854775807", "9223372036854775808", "1.5", "1e1"
        ] {
            let expected = try parse(text).int64
            let read = try withBytes(Array(text.utf8)) { (bytes) throws(FormatError) -> Int64? in
                var reader = JSONReader(bytes)
                return try reader.readNumber().int64
            }
            #expect(read == expected, "\(text)")
        }
    }

    @Test("The pull reader hands out names, borrowed strings and whole values as written")
    func pulling() throws {
        let text = Array(#"{"a":"x\u0041","aps":{"k" : [1, 2]},"n":12,"z":null}"#.utf8)
        try withBytes(text) { bytes in
            var reader = JSONReader(bytes)
            var seen: [String] = []
            try reader.beginObject()
            while let name = try reader.nextMember() {
                seen.append(name.string())
                if name.equals("a") {
                    let value = try reader.readString()
                    #expect(value.hasEscapes && value.equals("xA"))
                } else if name.equals("n") {
                    #expect(try reader.readNumber().uint32 == 12)
                } else if name.equals("z") {
                    #expect(try reader.readNull())
                } else {
                    #expect(String(decoding: try reader.skipValue(), as: UTF8.self) == #"{"k" : [1, 2]}"#)
                }
            }
            try reader.end()
            #expect(seen == ["a", "aps", "n", "z"])
        }
    }

    @Test("A value of another form than is asked for is passed over whole, and refused where it is malformed")
    func orSkip() throws {
        for value in [#""s""#, "12", #"{"k":[{"l":1}]}"#, "[[],{}]", "true", "null"] {
            let text = Array(#"{"a":\#(value),"b":\#(value),"c":\#(value),"d":1}"#.utf8)
            try withBytes(text) { bytes in
                var reader = JSONReader(bytes)
                try reader.beginObject()
                _ = try reader.nextMember()
                #expect(try reader.stringOrSkip()?.string() == (value == #""s""# ? "s" : nil))
                #expect(try reader.nextMember()?.equals("b") == true)
                #expect(try reader.numberOrSkip()?.int64 == (value == "12" ? 12 : nil))
                #expect(try reader.nextMember()?.equals("c") == true)
                let isObject = try reader.beginObjectOrSkip()
                #expect(isObject == (value.first == "{"))
                while isObject, try reader.nextMember() != nil { try reader.skipValue() }
                #expect(try reader.nextMember()?.equals("d") == true)
                try reader.skipValue()
                #expect(try reader.nextMember() == nil)
                try reader.end()
            }
        }
        for bad in ["", "tru", "[1", "{1}", "\u{1}", String(repeating: "[", count: 40)] {
            withBytes(Array(bad.utf8)) { bytes in
                #expect(throws: FormatError.self) {
                    var reader = JSONReader(bytes)
                    _ = try reader.stringOrSkip()
                }
                #expect(throws: FormatError.self) {
                    var reader = JSONReader(bytes)
                    _ = try reader.numberOrSkip()
                }
            }
        }
    }

    @Test("A value of another type is told from a malformed one")
    func wrongType() {
        withBytes(Array("[1]".utf8)) { bytes in
            var reader = JSONReader(bytes)
            #expect(throws: FormatError(.wrongType)) { try reader.beginObject() }
        }
    }

    @Test("Texts are written as Python's json.dumps writes them without ASCII escaping")
    func writing() throws {
        // Expected: json.dumps({"a":[1,-5,True,None,"…"]}, ensure_ascii=False, separators=(",",":"))
        var writer = JSONWriter()
        writer.beginObject()
        writer.key("a")
        writer.beginArray()
        writer.int(1)
        writer.int(-5)
        writer.bool(true)
        writer.null()
        writer.string("q\" b\\ /\n\r\t\u{8}\u{c}\u{1}\u{1f}\u{7f}ż🔔\u{2028}")
        writer.endArray()
        writer.key("b")
        writer.beginObject()
        writer.endObject()
        writer.key("min")
        writer.int(.min)
        writer.endObject()
        let expected =
            "{\"a\":[1,-5,true,null,\"q\\\" b\\\\ /\\n\\r\\t\\b\\f\\u0001\\u001f\u{7f}ż🔔\u{2028}\"],"
            + "\"b\":{},\"min\":-9223372036854775808}"
        #expect(String(decoding: writer.bytes, as: UTF8.self) == expected)
        #expect(try JSONValue.parse(writer.bytes).serialized() == writer.bytes)
    }

    @Test("A member is its name and its value, or null where there is none")
    func members() {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("text", "q\"")
        writer.member("number", Int64.min)
        writer.member("count", 5)
        writer.member("truth", false)
        writer.member("secret", utf8: Secret("ż\n".utf8))
        writer.member("digits", escaped: Secret("0aF=".utf8))
        writer.optional("some", "a" as String?)
        writer.optional("one", 1 as Int64?)
        writer.optional("none", nil as String?)
        writer.optional("nothing", nil as Int64?)
        writer.beginObject("inside")
        writer.beginArray("list")
        writer.int(1)
        writer.endArray()
        writer.member("last", 2)
        writer.endObject()
        writer.endObject()
        let text =
            #"{"text":"q\"","number":-9223372036854775808,"count":5,"truth":false,"secret":"ż\n","#
            + #""digits":"0aF=","some":"a","one":1,"none":null,"nothing":null,"inside":{"list":[1],"last":2}}"#
        #expect(String(decoding: writer.bytes, as: UTF8.self) == text)
    }

    @Test("Taking the text as a secret empties the writer")
    func secret() {
        var writer = JSONWriter()
        writer.string("a")
        #expect(writer.takeSecret().reveal { Array($0) } == Array("\"a\"".utf8))
        #expect(writer.bytes.isEmpty)
        writer.int(1)
        #expect(writer.bytes == Array("1".utf8))
    }
}
