#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#endif

/// ln x, from the C library.
func naturalLogarithm(_ x: Double) -> Double { log(x) }
