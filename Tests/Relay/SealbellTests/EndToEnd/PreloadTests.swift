import Foundation
import PushModel
import PushTesting
import Testing

@testable import RelayProgram

/// Whole distributions preload another allocator into every program. Blocks of such a heap are not ours to
/// measure or to free.
@Suite(
    "A heap of another allocator", .timeLimit(.minutes(30)),
    .enabled(if: !Allocators.installed.isEmpty, "scripts/setup test installs one that can be preloaded"))
struct PreloadTests {

    @Test("Every command runs on it", arguments: Allocators.installed)
    func command(_ allocator: String) async throws {
        let folder = try TemporaryFolder()
        let program = try Program(["--version"], in: folder.path, before: "export LD_PRELOAD=\(allocator);")
        await program.silence()
        #expect(await program.status() == 0 && program.text.contains(Release.version), "\(program.text)")
    }

    @Test("A relay serves on it, and says once that what it gives back is not wiped")
    func relay() async throws {
        let folder = try TemporaryFolder()
        let text = RelayStage.text.replacing("level: debug", with: "level: info")
        try writeFile(folder.path + "/sealbell.yaml", Array(text.utf8), replacing: true)
        let program = try Program(
            ["serve", "--sandbox", "--config", "sealbell.yaml", "--state", "state"], in: folder.path,
            before: "export LD_PRELOAD=\(try #require(Allocators.installed.first));")
        #expect(await program.says(#""event":"started""#))
        await program.stop()
        await program.silence()
        let told = program.text.split(separator: "\n").filter { $0.contains("freed memory is not wiped") }
        #expect(told.count == 1 && told.first?.contains(#""level":"warning""#) == true, "\(program.text)")
    }
}

private enum Allocators {
    /// Of those that distributions preload, those that are installed.
    static let installed: [String] = {
        let names = [
            "libjemalloc.so.2", "libmimalloc.so.2", "libtcmalloc_minimal.so.4", "libc_malloc_debug.so.0"
        ]
        let folders = [
            "/usr/lib/x86_64-linux-gnu/", "/usr/lib/aarch64-linux-gnu/", "/usr/lib64/", "/usr/lib/"
        ]
        return names.compactMap { name in
            folders.map { $0 + name }.first { FileManager.default.fileExists(atPath: $0) }
        }
    }()
}
