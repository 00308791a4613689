import Primitives
import PushModel
import Secp256k1Keys
import StatusPush
import Testing
import WireFormats

@Suite("Keccak and keys with both coordinates")
struct HashTests {
    @Test("Keccak-256 of nothing and of \"abc\" are as Ethereum has them")
    func keccak() {
        #expect(
            Hex.encode(Keccak.hash256([]))
                == "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470")
        #expect(
            Hex.encode(Keccak.hash256(Array("abc".utf8)))
                == "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45")
    }

    @Test("SHAKE-256 of nothing begins as NIST published it")
    func shake() {
        #expect(
            Hex.encode(SHAKE256.hash64([])).hasPrefix(
                "46b9dd2b0ba88d13233b3feb743eeb243fcd52ea62b81b82b50c27646ed5762f"))
    }

    @Test(
        "parts hash as their joined bytes, however they are cut",
        arguments: [0, 1, 7, 8, 135, 136, 137, 272, 400])
    func parts(cut: Int) {
        let bytes = (0..<400).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        let joined = bytes[..<cut].withUnsafeBytes { first in
            bytes[cut...].withUnsafeBytes { Keccak.hash256(joining: [first, $0]) }
        }
        #expect(joined == Keccak.hash256(bytes))
    }

    @Test("a signature names its signer, and one with a broken part nobody or another")
    func recovery() throws {
        let pair = try Secp256k1KeyPair(secret: Secret([UInt8](repeating: 7, count: 32)))
        let digest = Keccak.hash256([1, 2, 3])
        let signature = pair.signRecoverable(digest)
        #expect(PublicPoint.recovered(from: signature, of: digest) == pair.point)
        #expect(PublicPoint.recovered(from: signature, of: Keccak.hash256([4])) != pair.point)
        for v in UInt8(4)...255 {
            #expect(PublicPoint.recovered(from: signature[..<64] + [v], of: digest) == nil)
        }
        #expect(PublicPoint.recovered(from: Array(signature.dropLast()), of: digest) == nil)
        #expect(PublicPoint.recovered(from: [UInt8](repeating: 0, count: 65), of: digest) == nil)
        #expect(PublicPoint.recovered(from: signature, of: []) == nil)
    }

    @Test("a point has no other first byte than 2, 3 and 4")
    func points() throws {
        let pair = try Secp256k1KeyPair(secret: Secret([UInt8](repeating: 9, count: 32)))
        let long = pair.point.uncompressed
        #expect(PublicPoint(long) == pair.point)
        for first in UInt8(0)...255 where first != 4 { #expect(PublicPoint([first] + long[1...]) == nil) }
        for count in 0..<65 where count != 33 { #expect(PublicPoint(long[..<count]) == nil) }
    }
}

extension PublicPoint {
    fileprivate static func recovered(from signature: ArraySlice<UInt8>, of digest: [UInt8]) -> PublicPoint? {
        recovered(from: Array(signature), of: digest)
    }
}
