import Foundation
import PushTesting
import Testing
import WebClient
import WireFormats

@testable import RelayProgram

/// A value that must be seen nowhere, in every form in which it could be.
struct Canary: Sendable {
    let name: String
    /// Bytes to look for.
    let forms: [[UInt8]]

    /// - Parameter bytes: at least six, so that none is found by chance.
    init(_ name: String, _ bytes: [UInt8]) {
        precondition(bytes.count >= 6, "a canary is long enough to be known")
        self.name = name
        var forms = [bytes]
        // At each of the three places that its first byte can have in base64, without the characters that
        // its neighbours change.
        for shift in 0..<3 {
            let text = Array(
                Base64.text([UInt8](repeating: 0, count: shift) + bytes).utf8.prefix { $0 != 0x3D })
            let first = shift == 0 ? 0 : shift + 1
            let last = (shift + bytes.count).isMultiple(of: 3) ? text.count : text.count - 1
            forms.append(Array(text[first..<last]))
            forms.append(forms[forms.count - 1].map { $0 == 0x2B ? 0x2D : $0 == 0x2F ? 0x5F : $0 })
        }
        let hex = Hex.encode(bytes)
        forms.append(Array(hex.utf8))
        forms.append(Array(hex.uppercased().utf8))
        self.forms = forms
    }

    init(_ name: String, _ text: String) { self.init(name, Array(text.utf8)) }

    /// A text of hex digits, perhaps with hyphens; its bytes are looked for too, and the 64-bit numbers that
    /// they make as a processor holds them.
    static func hex(_ name: String, _ text: String) throws -> [Canary] {
        let digits = text.filter { $0 != "-" }
        let bytes = try Hex.decode(Array(digits.utf8))
        return [
            Canary(name, text), Canary(name + " without hyphens", digits), Canary(name + " as bytes", bytes),
            Canary(name + " as numbers", numbers(bytes))
        ]
    }

    /// Eight bytes at a time, turned round.
    static func numbers(_ bytes: [UInt8]) -> [UInt8] {
        stride(from: 0, to: bytes.count, by: 8).flatMap { bytes[$0..<min($0 + 8, bytes.count)].reversed() }
    }

    func isIn(_ haystack: Data) -> Bool {
        haystack.withUnsafeBytes { haystack in forms.contains { Self.finds($0, in: haystack) } }
    }

    static func finds(_ form: [UInt8], in haystack: UnsafeRawBufferPointer) -> Bool {
        place(of: form, in: haystack) != nil
    }

    /// The C library's own search, which its header hides from Swift.
    private static let search = unsafeBitCast(
        dlsym(nil, "memmem"),
        to: (@convention(c) (UnsafeRawPointer, Int, UnsafeRawPointer, Int) -> UnsafeRawPointer?).self)

    static func place(of form: [UInt8], in haystack: UnsafeRawBufferPointer) -> Int? {
        guard let base = haystack.baseAddress else { return nil }
        return search(base, haystack.count, form, form.count).map { $0 - base }
    }
}

/// A text or a file in which canaries are looked for, and where it was found.
typealias Said = (place: String, bytes: Data)

/// Every file below a folder, by its name there.
func files(below root: String) -> [Said] {
    let names = FileManager.default.enumerator(atPath: root)?.compactMap { $0 as? String } ?? []
    return names.compactMap { name in
        FileManager.default.contents(atPath: "\(root)/\(name)").map { (name, $0) }
    }
}

extension [Canary] {
    /// None of them stands in what was said.
    func expectNone(in said: [Said], at place: SourceLocation = #_sourceLocation) {
        for canary in self {
            for (source, bytes) in said where canary.isIn(bytes) {
                Issue.record("\(canary.name) is in \(source)", sourceLocation: place)
            }
        }
    }
}

extension RunningRelay {
    /// The relay's log, pages of its admin listener, and every file of its folder.
    func said(pages: [String] = ["/metrics", "/status", "/", "/health/ready", "/health/live"]) async throws
        -> [Said]
    {
        var said: [Said] = [("log", Data(stage.log.all.joined(separator: "\n").utf8))]
        for page in pages { said.append((page, Data(try await admin(page).body))) }
        return said + files(below: stage.folder.path)
    }

    /// Writes what a relay as a process writes for commands.
    func writeRunFile() throws {
        try RunFile(urls: urls, ca: nil, publicKeys: relay.publicKeys, apps: [:]).write(state: stage.state)
    }
}
