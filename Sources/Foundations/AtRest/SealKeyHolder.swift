import Primitives
import PushModel

/// What a relay tells the others on its store about its seal keys, under `holder/OWNER`.
struct SealKeyHolder: Hashable {
    /// The newest key of its file, and a digest of that key: two files may have two keys of one number.
    var newest: UInt32
    var print: Digest16
    /// The key that it seals with; 0 while it starts.
    var sealing: UInt32

    static let bytes = 24

    init(_ sealer: Sealer, isStarting: Bool) {
        let newest = sealer.keys.seal[0]
        self.newest = newest.number
        print = Self.fingerprint(of: newest)
        sealing = isStarting ? 0 : sealer.sealing
    }

    /// `nil` when the bytes are none of ours.
    init?(_ value: [UInt8]) {
        guard value.count == Self.bytes, let print = Digest16(value[8..<24]) else { return nil }
        func number(_ range: Range<Int>) -> UInt32 { value[range].reduce(0) { $0 << 8 | UInt32($1) } }
        newest = number(0..<4)
        sealing = number(4..<8)
        self.print = print
    }

    var value: [UInt8] {
        var value: [UInt8] = []
        for number in [newest, sealing] { withUnsafeBytes(of: number.bigEndian) { value += $0 } }
        return value + print.bytes
    }

    /// Whether it opens what is sealed with the key.
    func holds(_ key: AtRestKeys.SealKey) -> Bool {
        newest > key.number || (newest == key.number && print == Self.fingerprint(of: key))
    }

    /// Says nothing about the key to anyone who does not have it: BLAKE2b is one-way, and the key is random.
    private static func fingerprint(of key: AtRestKeys.SealKey) -> Digest16 {
        KeyedHash.digest16(key: key.key) { hash in
            hash.update("sealbell/held/")
            hash.update(count: Int(key.number))
        }
    }

    static func name(_ owner: OwnerID) -> String {
        let digits = Array("0123456789abcdef".utf8)
        let hex = owner.value.bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
        return StoreSetting.holder + String(decoding: hex, as: UTF8.self)
    }
}
