/// The values that columns of a stored row can have. A value outside was not written by us, and its row
/// cannot be read (decision 0085).
package enum RowBounds {
    /// Unix milliseconds.
    package static let times: ClosedRange<Int64> = 0 ... .max
    /// Epochs, revisions and row numbers: a number that rises by one each time never comes near the end.
    package static let counts: ClosedRange<Int64> = 0...(1 << 53)
    /// The highest number from which the next may be counted: a higher one would leave too few.
    package static let counted: ClosedRange<Int64> = 0...(1 << 52)
    /// With what they told (``Attempts``).
    package static let attempts: ClosedRange<Int64> = 0...Int64(Attempts.mostStored)
    /// Bytes of a sealed column or of a named value: as many as the largest call brings.
    package static let sealedBytes = 4 << 20
    /// Bytes of a lane's text or a space's: configured names of at most 64 bytes, and a few words.
    package static let textBytes = 512
    /// How long a record stays set aside at most: an operator is told of it every day, and devices register
    /// again far more often.
    package static let recordAside = Duration.seconds(30 * 86_400)
    /// The same for a push whose custody was changed: the longest custody (docs/push-services.md).
    package static let pushAside = Duration.seconds(14 * 86_400)
}

/// A record as it was read, by what tells whether it still stands so.
package struct SeenRecord: Sendable, Hashable {
    package var key: Digest16
    package var revision: Int64

    package init(key: Digest16, revision: Int64) {
        self.key = key
        self.revision = revision
    }
}
