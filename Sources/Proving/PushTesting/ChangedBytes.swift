extension [UInt8] {
    /// The same bytes with one of them changed, for each place in turn.
    ///
    /// - Parameter bits: those that are turned over; not zero.
    package func withEachChanged(_ bits: UInt8 = 1) -> some Sequence<[UInt8]> {
        indices.lazy.map { place in
            var changed = self
            changed[place] ^= bits
            return changed
        }
    }
}
