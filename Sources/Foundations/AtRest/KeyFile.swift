package import PushModel

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#endif

/// The file that holds the keys of a store, 0600, apart from the state it opens.
///
///     lookup 64 hex digits
///     seal 2 64 hex digits
///     seal 1 64 hex digits
package enum KeyFile {
    /// More than a thousand keys do not fit; we never write a larger file.
    private static let limitBytes = 128 * 1024

    /// - Throws: `.unreadable`, `.malformed`.
    package static func read(_ path: String) throws(KeyFileError) -> AtRestKeys {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw KeyFileError(.unreadable) }
        defer { close(file) }
        var text = [UInt8](repeating: 0, count: limitBytes)
        defer { text.withUnsafeMutableBytes { wipe($0) } }
        var count = 0
        // Ends: each round reads at least a byte, or leaves.
        while count < limitBytes {
            let got = text.withUnsafeMutableBytes {
                #if canImport(Darwin)
                Darwin.read(file, $0.baseAddress! + count, limitBytes - count)
                #else
                Glibc.read(file, $0.baseAddress! + count, limitBytes - count)
                #endif
            }
            guard got >= 0 else { throw KeyFileError(.unreadable) }
            if got == 0 { break }
            count += got
        }
        guard count < limitBytes else { throw KeyFileError(.malformed) }
        return try parse(text[..<count])
    }

    /// Makes fresh keys and writes them to a new file, synced, before they are used for anything.
    ///
    /// - Throws: `.exists`, `.unwritable`.
    package static func create(_ path: String, _ world: World) throws(KeyFileError) -> AtRestKeys {
        let keys = AtRestKeys.generate(world)
        try write(keys, to: path)
        return keys
    }

    /// Writes to a new file, 0600, and syncs it and its directory.
    ///
    /// - Throws: `.exists`, `.unwritable`.
    package static func write(_ keys: AtRestKeys, to path: String) throws(KeyFileError) {
        let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw KeyFileError(errno == EEXIST ? .exists : .unwritable) }
        var text = format(keys)
        defer { text.withUnsafeMutableBytes { wipe($0) } }
        let written = text.withUnsafeBytes {
            #if canImport(Darwin)
            Darwin.write(file, $0.baseAddress!, $0.count)
            #else
            Glibc.write(file, $0.baseAddress!, $0.count)
            #endif
        }
        let isSafe = written == text.count && fsync(file) == 0
        guard close(file) == 0, isSafe else {
            unlink(path)
            throw KeyFileError(.unwritable)
        }
        let slash = path.lastIndex(of: "/")
        let directory = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        let folder = open(directory, O_RDONLY | O_CLOEXEC)
        guard folder >= 0 else { throw KeyFileError(.unwritable) }
        defer { close(folder) }
        guard fsync(folder) == 0 else { throw KeyFileError(.unwritable) }
    }

    /// Reads the text form. Works on bytes: no key ever becomes a `String`.
    package static func parse(_ text: ArraySlice<UInt8>) throws(KeyFileError) -> AtRestKeys {
        var lookup: Secret?
        var seal: [AtRestKeys.SealKey] = []
        for line in text.split(separator: UInt8(ascii: "\n")) {
            let words = line.split { $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }
            guard let kind = words.first, kind.first != UInt8(ascii: "#") else { continue }
            if kind.elementsEqual("lookup".utf8), words.count == 2, lookup == nil {
                lookup = try hex(words[1])
            } else if kind.elementsEqual("seal".utf8), words.count == 3, let number = decimal(words[1]) {
                seal.append(AtRestKeys.SealKey(number: number, key: try hex(words[2])))
            } else {
                throw KeyFileError(.malformed)
            }
        }
        guard let lookup, let keys = AtRestKeys(lookup: lookup, seal: seal) else {
            throw KeyFileError(.malformed)
        }
        return keys
    }

    private static func decimal(_ digits: ArraySlice<UInt8>) -> UInt32? {
        guard (1...4).contains(digits.count), digits.allSatisfy({ (0x30...0x39).contains($0) }) else {
            return nil
        }
        return digits.reduce(0) { $0 * 10 + UInt32($1 - 0x30) }
    }

    private static func hex(_ digits: ArraySlice<UInt8>) throws(KeyFileError) -> Secret {
        guard digits.count == 2 * AtRestKeys.keyBytes else { throw KeyFileError(.malformed) }
        return try Secret(count: AtRestKeys.keyBytes) { out throws(KeyFileError) in
            for index in 0..<out.count {
                guard let high = nibble(digits[digits.startIndex + 2 * index]),
                    let low = nibble(digits[digits.startIndex + 2 * index + 1])
                else { throw KeyFileError(.malformed) }
                out[index] = high << 4 | low
            }
        }
    }

    private static func nibble(_ digit: UInt8) -> UInt8? {
        switch digit {
        case 0x30...0x39: digit - 0x30
        case 0x61...0x66: digit - 0x61 + 10
        case 0x41...0x46: digit - 0x41 + 10
        default: nil
        }
    }

    private static func format(_ keys: AtRestKeys) -> [UInt8] {
        let digits = Array("0123456789abcdef".utf8)
        var text = Array(
            """
            # Storage keys of Sealbell. Whoever has this file and the state directory reads every token.
            # Back it up once, where the backups of the state directory do not go.\n
            """.utf8)
        text.reserveCapacity(256 + 96 * keys.seal.count)
        func append(_ word: String, _ key: Secret) {
            text += Array(word.utf8)
            key.reveal { for byte in $0 { text += [digits[Int(byte >> 4)], digits[Int(byte & 15)]] } }
            text.append(UInt8(ascii: "\n"))
        }
        append("lookup ", keys.lookup)
        for key in keys.seal { append("seal \(key.number) ", key.key) }
        return text
    }
}
