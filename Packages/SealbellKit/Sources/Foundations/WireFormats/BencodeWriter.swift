package import PushModel

/// Writes bencode in its one strict spelling. Keys must come in the order of their bytes.
package struct BencodeWriter {
    /// The text so far.
    package private(set) var bytes: [UInt8] = []
    /// The key before, of each open list (none) and dictionary.
    private var keysBefore: [Range<Int>?] = []

    package init(reserving capacity: Int = 256) { bytes.reserveCapacity(capacity) }

    package mutating func beginList() { open(0x6C) }
    package mutating func endList() { close() }
    package mutating func beginDictionary() { open(0x64) }
    package mutating func endDictionary() { close() }

    /// A key; the value must follow. Readers that walk forward only would not find one out of order, so that
    /// is a bug of ours.
    package mutating func key(_ name: StaticString) {
        key(UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
    }

    package mutating func key(_ name: UnsafeRawBufferPointer) {
        if let before = keysBefore[keysBefore.count - 1] {
            precondition(bytes[before].lexicographicallyPrecedes(name), "keys must rise")
        }
        string(name)
        keysBefore[keysBefore.count - 1] = bytes.count - name.count..<bytes.count
    }

    package mutating func int(_ value: Int64) {
        bytes.append(0x69)
        if value < 0 { bytes.append(0x2D) }
        digits(value.magnitude)
        bytes.append(0x65)
    }

    package mutating func int(_ value: UInt64) {
        bytes.append(0x69)
        digits(value)
        bytes.append(0x65)
    }

    package mutating func string(_ value: UnsafeRawBufferPointer) {
        digits(UInt64(value.count))
        bytes.append(0x3A)
        bytes.append(contentsOf: value)
    }

    package mutating func string(_ value: [UInt8]) { withBytes(value) { string($0) } }

    /// A value that is bencode already.
    package mutating func raw(_ value: UnsafeRawBufferPointer) { bytes.append(contentsOf: value) }

    /// Hands the text over as a secret and wipes this buffer.
    ///
    /// Reserve enough at the start: a buffer that grew has left unwiped memory behind.
    package mutating func takeSecret() -> Secret {
        let secret = bytes.withUnsafeBytes { Secret(copying: $0) }
        bytes.withUnsafeMutableBytes { wipe($0) }
        bytes.removeAll(keepingCapacity: true)
        keysBefore.removeAll(keepingCapacity: true)
        return secret
    }

    // MARK: parts

    private mutating func open(_ letter: UInt8) {
        bytes.append(letter)
        keysBefore.append(nil)
    }

    private mutating func close() {
        bytes.append(0x65)
        keysBefore.removeLast()
    }

    private mutating func digits(_ value: UInt64) {
        if value >= 10 { digits(value / 10) }
        bytes.append(0x30 + UInt8(value % 10))
    }
}
