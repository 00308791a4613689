#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
package import Foundation

/// A pipe that no program inherits but the one that it is given to.
///
/// `Process` closes for a program what stands open when it looks, and a pipe that is made between that look
/// and the start goes along. Anyone who reads such a pipe to its end then waits for the end of a program that
/// another test has started.
package struct PrivatePipe {
    package let reading: FileHandle
    package let writing: FileHandle

    /// - Throws: `POSIXError` when there are no descriptors.
    package init() throws {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw POSIXError(.EMFILE) }
        // Swift knows no `pipe2`: what is left is the time between these two lines.
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        reading = FileHandle(fileDescriptor: ends[0], closeOnDealloc: true)
        writing = FileHandle(fileDescriptor: ends[1], closeOnDealloc: true)
    }
}
