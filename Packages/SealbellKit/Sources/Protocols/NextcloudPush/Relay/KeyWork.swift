import PushModel
package import RSAKeys

/// What the relay has a library do with users' keys. Here because it takes most of the time of a call: how
/// much of it is done must tell nobody what is registered, and a test counts it (decision 0104).
package struct KeyWork: Sendable {
    /// Reads a DER; `nil` for what is no key.
    package var read: @Sendable ([UInt8]) -> RSAPublicKey?
    /// Signature, then message: ``RSAPublicKey/isValid(_:over:)``.
    package var verifies: @Sendable (RSAPublicKey, UnsafeRawBufferPointer, UnsafeRawBufferPointer) -> Bool
    /// Whether who sent a form has signed its identifier.
    package var isSigned: @Sendable (OwnershipForm) -> Bool

    package init(
        read: @escaping @Sendable ([UInt8]) -> RSAPublicKey?,
        verifies: @escaping @Sendable (RSAPublicKey, UnsafeRawBufferPointer, UnsafeRawBufferPointer) -> Bool,
        isSigned: @escaping @Sendable (OwnershipForm) -> Bool
    ) {
        self.read = read
        self.verifies = verifies
        self.isSigned = isSigned
    }

    package static let real = KeyWork(
        // A malformed key verifies nothing, whatever is wrong with it.
        read: { try? RSAPublicKey(der: $0) },
        verifies: { $0.isValid($1, over: $2) },
        isSigned: { $0.isSigned })
}
