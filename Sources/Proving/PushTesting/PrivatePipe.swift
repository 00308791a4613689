#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
package import Foundation

/// A pipe that only the program that gets it inherits.
///
/// `Process` closes for a program the descriptors that are open when it checks; a pipe that is made between
/// that check and the start is inherited. Whoever reads such a pipe to its end then waits for the end of a
/// program that another test has started.
package struct PrivatePipe {
    package let reading: FileHandle
    package let writing: FileHandle

    /// - Throws: `POSIXError` if no descriptors are left.
    package init() throws {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw POSIXError(.EMFILE) }
        // Swift has no `pipe2`: the time between these two lines remains.
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        reading = FileHandle(fileDescriptor: ends[0], closeOnDealloc: true)
        writing = FileHandle(fileDescriptor: ends[1], closeOnDealloc: true)
    }
}
