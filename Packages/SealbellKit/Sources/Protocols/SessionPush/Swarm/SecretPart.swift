import PushModel

/// Bytes of a secret that stay where they stand, and hold on to all of it: what a message brings along is not
/// copied out of it.
package struct SecretPart: Sendable {
    private let whole: Secret
    private let place: Range<Int>

    init(of whole: Secret, _ place: Range<Int>) {
        precondition(place.upperBound <= whole.count, "a part of it")
        self.whole = whole
        self.place = place
    }

    package var count: Int { place.count }

    /// Lends the bytes for the length of `body`.
    package func reveal<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try whole.reveal { (bytes) throws(Failure) in
            try body(UnsafeRawBufferPointer(rebasing: bytes[place]))
        }
    }

    /// Compares without an early exit.
    package static func == (left: SecretPart, right: SecretPart) -> Bool {
        left.reveal { l in right.reveal { r in constantTimeEqual(l, r) } }
    }
}
