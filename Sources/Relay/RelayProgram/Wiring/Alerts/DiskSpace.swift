#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// What is free where a relay writes.
enum DiskSpace {
    /// Bytes below which an operator hears of it: an hour's outage of a busy relay, and what its log of
    /// writes may need.
    static let low: Int64 = 256 << 20
    /// Bytes from which on that is over.
    static let enough: Int64 = 320 << 20

    /// Bytes that this user may still write there; `nil`: the system does not tell.
    static func free(at path: String) -> Int64? {
        var facts = statvfs()
        guard statvfs(path, &facts) == 0 else { return nil }
        let (bytes, overflow) = UInt64(facts.f_bavail).multipliedReportingOverflow(by: UInt64(facts.f_frsize))
        return overflow ? .max : Int64(clamping: bytes)
    }

    /// Folders of the store and of the state; a database server's disk is its own.
    static func places(of configuration: RelayConfiguration) -> [String] {
        guard case .sqlite(let path) = configuration.store.engine else { return [] }
        return [folder(of: path), configuration.state]
    }
}
