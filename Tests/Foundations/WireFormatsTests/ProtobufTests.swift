import PushModel
import Testing
import WireFormats

@Suite("Protobuf's wire format")
struct ProtobufTests {
    /// All fields of a message; the reader's error where it has one.
    private func read(_ bytes: [UInt8], fieldLimit: Int = 100) -> Result<[String], FormatError> {
        withBytes(bytes) { raw in
            do throws(FormatError) {
                var reader = ProtobufReader(raw, fieldLimit: fieldLimit)
                var fields: [String] = []
                while let field = try reader.next() {
                    switch field.value {
                    case .varint(let value): fields.append("\(field.number)=\(value)")
                    case .fixed32(let value): fields.append("\(field.number)=w\(value)")
                    case .fixed64(let value): fields.append("\(field.number)=l\(value)")
                    case .bytes(let value): fields.append("\(field.number)=" + Hex.encode(Array(value)))
                    case .group: fields.append("\(field.number)=group")
                    }
                }
                return .success(fields)
            } catch {
                return .failure(error)
            }
        }
    }

    @Test("the examples of the encoding's description are read")
    func examples() {
        #expect(read([0x08, 0x96, 0x01]) == .success(["1=150"]))
        let text: [UInt8] = [0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6E, 0x67]
        #expect(read(text) == .success(["2=74657374696e67"]))
        #expect(read([]) == .success([]))
    }

    @Test("each wire type is read, and groups are passed over with what is in them")
    func wireTypes() {
        #expect(read([0x0D, 1, 0, 0, 0]) == .success(["1=w1"]))
        #expect(read([0x09, 2, 0, 0, 0, 0, 0, 0, 0]) == .success(["1=l2"]))
        #expect(read([0x0B, 0x10, 0x05, 0x13, 0x14, 0x0C, 0x18, 0x07]) == .success(["1=group", "3=7"]))
    }

    @Test("numbers have 64 bits and at most ten bytes")
    func edges() {
        let most = [UInt8](repeating: 0xFF, count: 9)
        #expect(read([0x08] + most + [0x01]) == .success(["1=18446744073709551615"]))
        #expect(read([0x08] + most + [0x02]) == .failure(FormatError(.malformedProtobuf)))
        #expect(read([0x08] + most + [0xFF, 0x01]) == .failure(FormatError(.malformedProtobuf)))
        // A spelling longer than need be.
        #expect(read([0x08, 0x80, 0x00]) == .success(["1=0"]))
    }

    @Test(
        "a malformed message is refused",
        arguments: [
            [0x00, 0x01], [0x0E], [0x0F], [0x0C], [0x0B], [0x0B, 0x14], [0x08], [0x0A, 0x02, 0x01],
            [0x0A, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01], [0x0D, 1, 2, 3], [0x09, 1],
            // Field 2^29.
            [0x80, 0x80, 0x80, 0x80, 0x10, 0x00]
        ] as [[UInt8]])
    func malformed(bytes: [UInt8]) {
        #expect(read(bytes) == .failure(FormatError(.malformedProtobuf)))
    }

    @Test("more fields than allowed are refused, those inside groups among them")
    func fieldLimit() {
        #expect(read([0x08, 1, 0x08, 2], fieldLimit: 2) == .success(["1=1", "1=2"]))
        #expect(read([0x08, 1, 0x08, 2], fieldLimit: 1) == .failure(FormatError(.tooLarge)))
        #expect(read([0x0B, 0x08, 1, 0x0C], fieldLimit: 2) == .failure(FormatError(.tooLarge)))
    }

    @Test("groups nested too deeply are refused")
    func depth() {
        let open = [UInt8](repeating: 0x0B, count: ProtobufReader.groupDepth + 1)
        #expect(read(open) == .failure(FormatError(.tooDeep)))
    }

    @Test(
        "texts are UTF-8",
        arguments: [
            ([0xC3, 0xA9], true), ([0xE2, 0x82, 0xAC], true), ([0xF0, 0x9F, 0x94, 0x94], true), ([], true),
            ([0xC0, 0x80], false), ([0xED, 0xA0, 0x80], false), ([0xF4, 0x90, 0x80, 0x80], false),
            ([0xE2, 0x82], false),
            ([0x80], false), ([0xF0, 0x80, 0x80, 0x80], false), ([0xFF], false), ([0xE2, 0x28, 0xA1], false)
        ] as [([UInt8], Bool)])
    func text(bytes: [UInt8], isText: Bool) {
        #expect(withBytes(bytes) { ProtobufReader.isUTF8($0) } == isText)
    }

    @Test("what is written is read, and defaults are left out")
    func writes() {
        var writer = ProtobufWriter()
        writer.varint(1, 0)
        writer.flag(2, false)
        writer.bytes(3, [])
        #expect(writer.bytes.isEmpty)
        writer.varint(1, .max)
        writer.flag(2, true)
        writer.bytes(3, [0xAB])
        writer.element(4, [])
        writer.signed(10, -2)
        let written = writer.takeSecret().reveal { Array($0) }
        #expect(read(written) == .success(["1=18446744073709551615", "2=1", "3=ab", "4=", "10=3"]))
        #expect(writer.bytes.isEmpty)
    }
}
