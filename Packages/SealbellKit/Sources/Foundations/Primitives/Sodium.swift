import Clibsodium

/// libsodium, made ready once for the process.
enum Sodium {
    /// `sodium_init` picks the fastest implementations; it is safe to call from any thread and more than
    /// once.
    private static let isReady: Bool = sodium_init() >= 0

    /// Stands in front of each use. libsodium fails here only on a system without any source of randomness.
    @inline(__always)
    static func prepare() {
        precondition(isReady, "libsodium found no source of randomness")
    }
}

extension UnsafeRawBufferPointer {
    /// The C libraries take `unsigned char *`. An empty buffer may have no address; it is never read, so any
    /// other than null will do.
    @inline(__always)
    package var octets: UnsafePointer<UInt8> {
        baseAddress?.assumingMemoryBound(to: UInt8.self) ?? UnsafePointer(bitPattern: 64)!
    }
}

extension UnsafeMutableRawBufferPointer {
    @inline(__always)
    package var octets: UnsafeMutablePointer<UInt8> {
        baseAddress?.assumingMemoryBound(to: UInt8.self) ?? UnsafeMutablePointer(bitPattern: 64)!
    }
}
