import Primitives
import PushModel
import PushTesting
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

    @Test("a signature has the form of one exactly where a key is recovered from it")
    func form() throws {
        let digest = Keccak.hash256([1])
        // The group's order (SEC 2, §2.4.1), and what stands beside it.
        let order = try Hex.decode(
            "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141".utf8)
        let parts = [
            [UInt8](repeating: 0, count: 32), [UInt8](repeating: 0, count: 31) + [1],
            Array(order.dropLast()) + [0x40], order, [UInt8](repeating: 255, count: 32)
        ]
        var signatures = parts.flatMap { r in parts.map { r + $0 } }
        var random = SeededRandom(seed: 16)
        for _ in 0..<400 {
            signatures.append((0..<64).map { _ in UInt8.random(in: .min ... .max, using: &random) })
        }
        var recoverable = 0
        for signature in signatures {
            for v in UInt8(0)...4 {
                let whole = signature + [v]
                let isForm = whole.withUnsafeBytes { PublicPoint.mayRecover(from: $0) }
                #expect(isForm == (PublicPoint.recovered(from: whole, of: digest) != nil), "\(whole)")
                recoverable += isForm ? 1 : 0
            }
            #expect(!signature.withUnsafeBytes { PublicPoint.mayRecover(from: $0) }, "no v")
        }
        #expect(recoverable > 200)
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
