package import Foundation

/// The folder of the package that these tests were built from: the nearest one above `file` with a manifest.
package func repositoryRoot(of file: String = #filePath) -> URL {
    var folder = URL(filePath: file)
    // Ends: the root of the file system has no parent of another path.
    while folder.path != "/", !FileManager.default.fileExists(atPath: folder.path + "/Package.swift") {
        folder.deleteLastPathComponent()
    }
    return folder
}
