import Foundation

/// A folder that goes when its holder does.
final class TemporaryFolder: Sendable {
    let path: String

    init() throws {
        path = FileManager.default.temporaryDirectory.path + "/sealbell-test-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    // A folder that cannot be removed is left for the system's own cleaning.
    deinit { try? FileManager.default.removeItem(atPath: path) }
}
