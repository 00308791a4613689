import Foundation
import PushTesting
import Testing

#if os(Linux)
/// The memory of another process as a core image would hold it: all that it can read and could have written.
struct MemoryImage {
    /// A stretch without a page of zeros.
    struct Piece {
        let region: String
        let address: UInt
        let bytes: [UInt8]
    }

    struct Hit: CustomStringConvertible {
        let canary: String
        let form: Int
        let region: String
        let around: String

        var description: String { "\(canary), form \(form), in \(region): \(around)" }
    }

    private static let pageBytes = 4_096

    let pieces: [Piece]

    /// Stops the process for as long as it reads.
    init(of pid: Int32) throws {
        kill(pid, SIGSTOP)
        defer { kill(pid, SIGCONT) }
        let maps = try String(contentsOfFile: "/proc/\(pid)/maps", encoding: .utf8)
        let file = open("/proc/\(pid)/mem", O_RDONLY | O_CLOEXEC)
        try #require(file >= 0, "the memory of \(pid) may not be read")
        defer { close(file) }
        var pieces: [Piece] = []
        for line in maps.split(separator: "\n") {
            let words = line.split(separator: " ", omittingEmptySubsequences: true)
            let ends = words[0].split(separator: "-").compactMap { UInt($0, radix: 16) }
            let name = words.count > 5 ? String(words[5]) : "anonymous"
            let isOurs = words[1].contains("w") || !name.hasPrefix("/")
            guard ends.count == 2, words[1].hasPrefix("r"), isOurs, !name.hasPrefix("[v") else { continue }
            pieces += Self.read(file, ends[0]..<ends[1], name)
        }
        self.pieces = pieces
    }

    private static func read(_ file: Int32, _ range: Range<UInt>, _ name: String) -> [Piece] {
        var pieces: [Piece] = []
        var bytes: [UInt8] = []
        var start = range.lowerBound
        func end() {
            if !bytes.isEmpty { pieces.append(Piece(region: name, address: start, bytes: bytes)) }
            bytes = []
        }
        let step = 256 * pageBytes
        var buffer = [UInt8](repeating: 0, count: step)
        let zeros = [UInt8](repeating: 0, count: pageBytes)
        var at = range.lowerBound
        while at < range.upperBound {
            let count = pread(file, &buffer, min(step, Int(range.upperBound - at)), Int(at))
            // Pages that cannot be had, as those behind the end of a mapped file.
            guard count > 0 else { break }
            for offset in stride(from: 0, to: count, by: pageBytes) {
                let length = min(pageBytes, count - offset)
                let isZero = buffer.withUnsafeBytes { memcmp($0.baseAddress! + offset, zeros, length) == 0 }
                if isZero {
                    end()
                } else {
                    if bytes.isEmpty { start = at + UInt(offset) }
                    bytes += buffer[offset..<offset + length]
                }
            }
            at += UInt(count)
        }
        end()
        return pieces
    }

    var count: Int { pieces.reduce(0) { $0 + $1.bytes.count } }

    func hits(_ canaries: [Canary]) -> [Hit] {
        var hits: [Hit] = []
        for piece in pieces {
            piece.bytes.withUnsafeBytes { bytes in
                for canary in canaries {
                    for (index, form) in canary.forms.enumerated() {
                        guard let place = Canary.place(of: form, in: bytes) else { continue }
                        hits.append(
                            Hit(
                                canary: canary.name, form: index,
                                region: "\(piece.region)+\(String(piece.address + UInt(place), radix: 16))",
                                around: Self.text(bytes[max(0, place - 48)..<min(bytes.count, place + 64)])))
                    }
                }
            }
        }
        return hits
    }

    func holds(_ canary: Canary) -> Bool {
        pieces.contains { piece in
            piece.bytes.withUnsafeBytes { bytes in
                canary.forms.contains { Canary.finds($0, in: bytes) }
            }
        }
    }

    /// Looks again and again until a process holds none of them, or has been looked at so often. What is there
    /// then is for ``hits(_:)`` to tell.
    ///
    /// The one that was found last is looked for first: while it is there, a look costs little.
    static func wait(until pid: Int32, holdsNoneOf canaries: [Canary], looks: Int) async {
        var order = canaries
        // What is left after so many looks is told by its name.
        try? await asked(for: "a memory without what was said", looks: looks) {
            let image = try MemoryImage(of: pid)
            guard let place = order.firstIndex(where: image.holds) else { return true }
            order.swapAt(0, place)
            return false
        }
    }

    private static func text(_ bytes: Slice<UnsafeRawBufferPointer>) -> String {
        String(decoding: bytes.map { 0x20..<0x7F ~= $0 ? $0 : 0x2E }, as: UTF8.self)
    }
}
#endif
