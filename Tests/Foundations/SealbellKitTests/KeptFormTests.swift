import PushModel
import SealbellKit
import Testing
import WireFormats

@Suite("What a device keeps", .timeLimit(.minutes(30)))
struct KeptFormTests {
    private let rows = [["login", "https://chat.example.org", "7"], ["key", "a\"b\n\u{1}ä", ""], []]
        .map { $0.map { Secret($0.utf8) } }

    private func texts(_ rows: [[Secret]]) -> [[String]] { rows.map { $0.map(\.word) } }

    @Test("Rows are read as they were written")
    func same() throws {
        let kept = KeptForm.write("toy", rows)
        #expect(texts(try KeptForm.read("toy", kept, atMost: kept.count)) == texts(rows))
        #expect(try KeptForm.read("toy", KeptForm.write("toy", []), atMost: 1_000).isEmpty)
    }

    @Test("Cut off at any length, it is not read")
    func cut() {
        let kept = KeptForm.write("toy", rows).reveal { Array($0) }
        for length in 0..<kept.count {
            #expect(throws: DeviceError(.malformedKept), "\(length)") {
                try KeptForm.read("toy", Secret(kept[..<length]), atMost: 1_000)
            }
        }
    }

    @Test("With any byte falsified, it is not read")
    func falsified() {
        let kept = KeptForm.write("toy", rows).reveal { Array($0) }
        for place in kept.indices {
            for mask in [0x01, 0x20, 0x80, 0xFF] as [UInt8] {
                var other = kept
                other[place] ^= mask
                #expect(throws: DeviceError(.malformedKept), "\(place), \(mask)") {
                    try KeptForm.read("toy", Secret(other), atMost: 1_000)
                }
            }
        }
    }

    @Test("Another title, more bytes than allowed, another spelling or something behind it are refused")
    func others() {
        let kept = KeptForm.write("toy", rows)
        let text = kept.word
        #expect(throws: DeviceError(.malformedKept)) { try KeptForm.read("tool", kept, atMost: 1_000) }
        #expect(throws: DeviceError(.malformedKept)) {
            try KeptForm.read("toy", kept, atMost: kept.count - 1)
        }
        for other in [
            text + " ", text + "[]", text.replacing(",", with: ", "),
            text.replacing("toy", with: "\\u0074oy"),
            "[]", "[[]]", "null", ""
        ] {
            #expect(throws: DeviceError(.malformedKept), "\(other)") {
                try KeptForm.read("toy", Secret(other.utf8), atMost: 10_000)
            }
        }
    }

    @Test("Cells of times and flags are read as they were written")
    func cells() {
        let moment = UnixTime(milliseconds: -5)
        #expect(Secret(cell: moment).moment == .some(.some(moment)))
        #expect(Secret(cell: nil as UnixTime?).moment == .some(nil))
        #expect(Secret(cell: "x").moment == nil)
        #expect(Secret(cell: true).flag == true && Secret(cell: false).flag == false)
        #expect(Secret(cell: "maybe").flag == nil)
    }
}
