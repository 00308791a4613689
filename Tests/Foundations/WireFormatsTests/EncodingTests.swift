import PushModel
import Testing
import WireFormats

@Suite("Base64, hex, forms, UUIDs, dates")
struct EncodingTests {
    @Test(
        "RFC 4648's own examples",
        arguments: [
            ("", "", ""), ("f", "Zg==", "Zg"), ("fo", "Zm8=", "Zm8"), ("foo", "Zm9v", "Zm9v"),
            ("foob", "Zm9vYg==", "Zm9vYg"), ("fooba", "Zm9vYmE=", "Zm9vYmE"),
            ("foobar", "Zm9vYmFy", "Zm9vYmFy")
        ])
    func base64(plain: String, standard: String, url: String) throws {
        #expect(Base64.text(Array(plain.utf8)) == standard)
        #expect(Base64.text(Array(plain.utf8), .url) == url)
        #expect(try Base64.decode(standard) == Array(plain.utf8))
        #expect(try Base64.decode(url, .url) == Array(plain.utf8))
    }

    @Test("Each alphabet has its own last two digits")
    func alphabets() throws {
        #expect(Base64.text([0xFB, 0xFF]) == "+/8=")
        #expect(Base64.text([0xFB, 0xFF], .url) == "-_8")
        #expect(throws: FormatError(.malformedBase64)) { try Base64.decode("-_8=") }
        #expect(throws: FormatError(.malformedBase64)) { try Base64.decode("+/8", .url) }
    }

    @Test(
        "A second spelling is refused",
        arguments: [
            "Zg", "Zg=", "Zg===", "Zh==", "Zm9=", "Zm8", "Z", "=", "==", "====", "Zg==Zg==", "Zm 8=",
            "Zm8=\n", "Z===",
            "Zm9v=", "ZżZ=", "@@@@", "Zm=v"
        ])
    func spellings(text: String) {
        #expect(throws: FormatError(.malformedBase64)) { try Base64.decode(text) }
    }

    @Test("Every length comes back, and is refused when cut within a group")
    func lengths() throws {
        for length in 0...70 {
            let bytes = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ length) }
            let text = Base64.encode(bytes)
            #expect(try Base64.decode(text) == bytes)
            #expect(try Base64.decode(Base64.encode(bytes, .url), .url) == bytes)
            for cut in 0..<text.count where !cut.isMultiple(of: 4) {
                #expect(throws: FormatError.self) { try Base64.decode(Array(text[..<cut])) }
            }
        }
    }

    @Test("Bytes at the end of their text's own room are spelled over it, whatever their number")
    func inPlace() {
        for length in 0...70 {
            let bytes = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ length) }
            let text = Base64.encode(bytes)
            var room = [UInt8](repeating: 0, count: text.count - length) + bytes
            room.withUnsafeMutableBytes { Base64.spell(last: length, in: $0) }
            #expect(room == text)
        }
    }

    @Test("A run of plain text ends at whatever a JSON string looks at, wherever it stands")
    func plainRuns() {
        let plain = [UInt8](repeating: 0x61, count: 24)
        for at in plain.indices {
            for byte in UInt8.min...UInt8.max {
                var text = plain
                text[at] = byte
                let isPlain = (0x20..<0x80).contains(byte) && byte != 0x22 && byte != 0x5C
                let runs = text.withUnsafeBytes { raw in (0...3).map { PlainText.run(raw, from: $0) } }
                for (start, run) in runs.enumerated() {
                    #expect(run == (isPlain || at < start ? plain.count : at) - start, "\(byte) at \(at)")
                }
            }
        }
    }

    @Test("Of two bytes that end a run of plain text the first does, whatever both are")
    func plainRunsOfTwo() {
        let ends: [UInt8] = [0x00, 0x1F, 0x22, 0x5C, 0x80, 0xFF]
        for (first, second) in ends.flatMap({ first in ends.map { (first, $0) } }) {
            for plain in [UInt8(0x20), 0x21, 0x23, 0x5B, 0x5D, 0x7F] {
                for at in 0..<20 {
                    for later in (at + 1)..<22 {
                        var text = [UInt8](repeating: plain, count: 24)
                        (text[at], text[later]) = (first, second)
                        #expect(text.withUnsafeBytes { PlainText.run($0, from: 0) } == at)
                    }
                }
            }
        }
    }

    @Test("Bytes equal a text where each of them does")
    func equalBytes() {
        let text: StaticString = "encrypted_content_of_25_b"
        let bytes = text.withUTF8Buffer { [UInt8]($0) }
        #expect(withBytes(bytes) { WireFormats.bytes($0, equal: text) })
        #expect(!withBytes(bytes + [0x62]) { WireFormats.bytes($0, equal: text) })
        #expect(!withBytes(Array(bytes.dropLast())) { WireFormats.bytes($0, equal: text) })
        #expect(!withBytes([]) { WireFormats.bytes($0, equal: text) })
        #expect(withBytes([]) { WireFormats.bytes($0, equal: "") })
        for place in bytes.indices {
            var other = bytes
            other[place] ^= 0x20
            #expect(!withBytes(other) { WireFormats.bytes($0, equal: text) })
        }
    }

    @Test("A wrong digit is found at each place of a long text")
    func wrongDigits() {
        let text = Base64.encode([UInt8](repeating: 7, count: 23))
        for at in text.indices where text[at] != 0x3D {
            for wrong in [UInt8(0x2D), 0x00, 0xFF, 0x20] {
                var bad = text
                bad[at] = wrong
                #expect(throws: FormatError(.malformedBase64)) { try Base64.decode(bad) }
            }
        }
    }

    @Test("Hex in raw memory is read as in any collection")
    func rawHex() throws {
        for text in ["", "00aBFf", "0", "0g", "g0", "0x12", "a\u{0}"] {
            let bytes = Array(text.utf8)
            let (raw, any) = (try? withBytes(bytes) { try Hex.decode($0) }, try? Hex.decode(text.utf8))
            #expect(raw == any, "\(text)")
        }
    }

    @Test("Hex reads both cases and refuses halves and strangers")
    func hex() throws {
        #expect(Hex.encode([0x00, 0xAB, 0xFF]) == "00abff")
        #expect(try Hex.decode("00aBFf".utf8) == [0x00, 0xAB, 0xFF])
        for bad in ["0", "0g", "0x12", " 1", "é"] {
            #expect(throws: FormatError(.malformedHex)) { try Hex.decode(bad.utf8) }
        }
    }

    @Test("A form comes back from its encoding, plus and slash included")
    func form() throws {
        let fields: [(name: String, value: [UInt8])] = [
            ("token_id", Array("a+/=".utf8)), ("empty", []), ("text", Array("two words & a % ż".utf8))
        ]
        let body = Form(fields).encoded()
        #expect(
            String(decoding: body, as: UTF8.self).hasPrefix(
                "token_id=a%2B%2F%3D&empty=&text=two+words+%26+a+%25+"))
        let read = try Form.parse(body)
        #expect(read.fields.map(\.name) == fields.map(\.name))
        #expect(read.fields.map(\.value) == fields.map(\.value))
    }

    @Test("Of doubles the last field counts; empty pieces are none; a name may stand alone")
    func formShapes() throws {
        let form = try Form.parse(Array("&a=1&&b&a=2&c=x=y&".utf8))
        #expect(form.fields.count == 4)
        #expect(form.text("a") == "2")
        #expect(form.text("b") == "")
        #expect(form.text("c") == "x=y")
        #expect(form.text("d") == nil)
    }

    @Test("Broken escapes, foreign bytes and too many fields are refused")
    func badForms() {
        for bad in ["a=%", "a=%1", "a=%zz", "%4=1"] {
            #expect(throws: FormatError(.malformedForm)) { try Form.parse(Array(bad.utf8)) }
        }
        #expect(throws: FormatError(.invalidUTF8)) { try Form.parse(Array("a=%ff".utf8)) }
        let many = Array(String(repeating: "a=1&", count: 65).utf8)
        #expect(throws: FormatError(.tooLarge)) { try Form.parse(many) }
        #expect(throws: Never.self) { try Form.parse(many, fieldLimit: 65) }
    }

    @Test("A UUID has one spelling")
    func uuid() throws {
        let text = "0ec3eedd-6233-4c5e-a000-b9942be3494e"
        let uuid = try #require(UUIDText(text))
        #expect(uuid.text == text)
        #expect(uuid.isVersion4)
        #expect(UUIDText(bytes: uuid.bytes) == uuid)
        #expect(UUIDText("00000000-0000-0000-0000-000000000000")?.isVersion4 == false)
        for length in 0..<text.utf8.count { #expect(UUIDText(String(text.prefix(length))) == nil) }
        for bad in [
            text.uppercased(), "{\(text)}", "0ec3eedd62334c5ea000b9942be3494e", text + "0",
            "0ec3eedd-6233-4c5e-a000-b9942be3494g", "0ec3eedd06233-4c5e-a000-b9942be3494e"
        ] { #expect(UUIDText(bad) == nil) }
        #expect(UUIDText(version4From: .max, .max).isVersion4)
        #expect(UUIDText(version4From: 0, 0).isVersion4)
    }

    @Test("A UUID is also read with digits of either case where that is asked for, and in no other writing")
    func uuidOfAnyCase() throws {
        func read(_ text: String) -> UUIDText? { withBytes(Array(text.utf8)) { UUIDText(anyCase: $0) } }
        let text = "0ec3eedd-6233-4c5e-a000-b9942be3494e"
        let uuid = try #require(UUIDText(text))
        #expect(read(text) == uuid)
        #expect(read(text.uppercased()) == uuid)
        #expect(read("0EC3eedd-6233-4c5E-a000-b9942be3494e") == uuid)
        for bad in [
            "{\(text)}", "urn:uuid:\(text)", "0ec3eedd62334c5ea000b9942be3494e", text + "0",
            "0ec3eedd-6233-4c5e-a000-b9942be3494g", "", String(repeating: "-", count: 36)
        ] { #expect(read(bad) == nil) }
        let hyphens = [8, 13, 18, 23]
        for place in 0..<36 {
            for byte in UInt8.min...UInt8.max {
                var bytes = Array(text.utf8)
                bytes[place] = byte
                let read = withBytes(bytes) { UUIDText(anyCase: $0) }
                let isRight = hyphens.contains(place) ? byte == 0x2D : Hex.value(ofDigit: byte) != nil
                #expect(read?.text == (isRight ? String(decoding: bytes, as: UTF8.self).lowercased() : nil))
            }
        }
    }

    @Test("Retry-After is seconds or a date, never negative, at most a day")
    func retryAfter() {
        let now = UnixTime(seconds: 784_111_777)  // 1994-11-06T08:49:37Z, RFC 9110's example
        #expect(RetryAfter.parse("120", now: now) == .seconds(120))
        #expect(RetryAfter.parse("0", now: now) == .zero)
        #expect(RetryAfter.parse("99999999999999999999", now: now) == RetryAfter.limit)
        #expect(RetryAfter.parse("Sun, 06 Nov 1994 08:49:37 GMT", now: now) == .zero)
        #expect(RetryAfter.parse("Sun, 06 Nov 1994 08:50:07 GMT", now: now) == .seconds(30))
        #expect(RetryAfter.parse("Sun, 06 Nov 1994 08:00:00 GMT", now: now) == .zero)
        #expect(RetryAfter.parse("\t 7 ", now: now) == .seconds(7))
        for bad in [
            "", " ", "-1", "+1", "1.5", "1e3", "1 2", "soon", "Sun, 31 Feb 2024 00:00:00 GMT",
            "Sun, 06 Nov 1994 25:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 06 Nov 1994 08:49:37",
            "Xyz, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-1994 08:49:37 GMT",
            "Sun, 06-Nov-94 08:49:37 GMT", "Sun Nov 6 08:49:37 1994", "Sun Nov  6 08:49:37 1994 GMT"
        ] { #expect(RetryAfter.parse(bad, now: now) == nil, "\(bad)") }
    }

    @Test("A date is read in each of the three forms that RFC 9110 asks recipients to read")
    func dates() {
        let now = UnixTime(seconds: 784_111_777)
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"
        ] { #expect(HTTPDate.parse(text, now: now) == now, "\(text)") }
        #expect(
            HTTPDate.parse("Thu, 29 Feb 2024 00:00:00 GMT", now: now) == UnixTime(seconds: 1_709_164_800))
        #expect(HTTPDate.parse("Wed Nov 16 08:49:37 1994", now: now) == now + .seconds(864_000))
        #expect(RetryAfter.parse("Sunday, 06-Nov-94 08:50:07 GMT", now: now) == .seconds(30))
        // A year of two digits lies at most 50 years ahead: seen from 2027, 28 is the next and 94 the past.
        let later = UnixTime(seconds: 1_800_000_000)  // 2027-01-15T08:00:00Z
        #expect(HTTPDate.parse("Sunday, 06-Nov-94 08:49:37 GMT", now: later) == now)
        #expect(
            HTTPDate.parse("Saturday, 15-Jan-28 08:00:00 GMT", now: later)
                == later + .seconds(365 * 86_400))
    }
}
