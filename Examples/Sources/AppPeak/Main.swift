import AppSupport
import Foundation
import SealbellKit

/// How much memory opening a push needs: in a process of its own, as in a notification service extension, of
/// a phone that has much on it.
///
///     AppPeak fill PROTOCOL FOLDER    makes what the phone has kept, of what the examples have left there
///     AppPeak open PROTOCOL FOLDER    makes its devices and opens a push; ends with an error above 8 MiB
@main
struct AppPeak {
    /// iOS ends a notification service extension at 24 MB, of which the app's own code wants most.
    private static let limitKiB = 8 << 10

    static func main() throws {
        let words = Array(CommandLine.arguments.dropFirst())
        guard words.count == 3, let scene = Scene(rawValue: words[1]) else {
            throw Failure("fill or open, a protocol, and a folder")
        }
        let folder = URL(fileURLWithPath: words[2])
        switch words[0] {
        case "fill":
            let phone = try scene.fill(from: folder)
            try phone.write(words[1], in: folder)
            print("\(words[1]): \(scene.what), \(phone.kept.count) bytes are kept")
        case "open": try measure(scene, in: folder)
        default: throw Failure("fill or open")
        }
    }

    private static func measure(_ scene: Scene, in folder: URL) throws {
        let open = try scene.opening(try LeftPhone(scene.rawValue, in: folder))
        // Looking at it takes some memory, too: the first time does not count.
        _ = try memoryKiB("VmHWM")
        let before = try memoryKiB("VmRSS")
        try open()
        let needed = try memoryKiB("VmHWM") - before
        print("\(scene.rawValue): \(scene.what), opening a push needs \(needed) KiB")
        guard needed > 0, needed <= limitKiB else { throw Failure("it is to need \(limitKiB) KiB at most") }
    }

    /// What this process has in memory, as Linux tells it: `VmRSS` now, `VmHWM` at most since it began.
    private static func memoryKiB(_ name: String) throws -> Int {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let line = status.split(separator: "\n").first { $0.hasPrefix(name + ":") }
        guard let number = line?.split(whereSeparator: { " \t".contains($0) }).dropFirst().first,
            let memory = Int(number)
        else { throw Failure("/proc/self/status has no \(name)") }
        return memory
    }
}

/// What should have been so and was not; ends the program with a status other than 0.
struct Failure: Error {
    let text: String
    init(_ text: String) { self.text = text }
}
