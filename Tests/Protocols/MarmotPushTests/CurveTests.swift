import Primitives
import PushModel
import Secp256k1Keys
import Testing
import WireFormats

/// The curve and the ciphers beside it, by the vectors of their own texts.
@Suite("Primitives for Nostr")
struct CurveTests {
    private func hex(_ text: String) throws -> [UInt8] { try Hex.decode(text.utf8) }
    private func text(_ secret: Secret) -> String { secret.reveal { Hex.encode($0) } }

    @Test("BIP-340's first vector is signed to the byte")
    func schnorr() throws {
        let pair = try Secp256k1KeyPair(secret: Secret([UInt8](repeating: 0, count: 31) + [3]))
        let zeros = [UInt8](repeating: 0, count: 32)
        let signature = pair.sign(zeros, auxiliary: zeros)
        #expect(pair.publicKey.hex == "f9308a019258c31049344f85f89d5229b531c845836f99b08601f113bce036f9")
        #expect(
            Hex.encode(signature)
                == "e907831f80848d1069a5371b402410364bdf1c5f8307b0084c55f1ce2dca8215"
                + "25f66a4a85ea8b71e482a74f382d2ce5ebeee8fdb2172f477df4900d310536c0")
        #expect(pair.publicKey.verifies(signature, of: zeros))
        #expect(!pair.publicKey.verifies(signature.dropLast(), of: zeros))
        #expect(!pair.publicKey.verifies(signature + [0], of: zeros))
        #expect(!pair.publicKey.verifies(signature, of: zeros + [0]) && !pair.publicKey.verifies([], of: []))
    }

    @Test("A public key has one spelling, and only points are keys")
    func keys() throws {
        let hex = "f9308a019258c31049344f85f89d5229b531c845836f99b08601f113bce036f9"
        let key = try #require(XOnlyKey(hex: hex))
        #expect(key.hex == hex && XOnlyKey(key.bytes) == key)
        #expect(Set([key, try #require(XOnlyKey(hex: hex[...]))]).count == 1)
        for text in [
            "", hex.uppercased(), String(hex.dropLast()), String(hex.dropLast(2)), hex + "0", hex + "00"
        ] {
            #expect(XOnlyKey(hex: text) == nil, "\(text)")
        }
        #expect(XOnlyKey(key.bytes.dropLast()) == nil && XOnlyKey(key.bytes + [0]) == nil)
        // 5 is the smallest positive number that is no X of a point: 5³ + 7 is no square modulo p.
        #expect(XOnlyKey([UInt8](repeating: 0, count: 31) + [5]) == nil)
    }

    @Test("A scalar of another length, of zero, or of the order and beyond is no key")
    func scalars() throws {
        let order = try hex("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141")
        let below = order.dropLast() + [0x40]
        let none: [[UInt8]] = [
            [], [UInt8](repeating: 0, count: 32), order, [UInt8](repeating: 255, count: 32), [1]
        ]
        for scalar in none {
            #expect(throws: CryptoError(.malformedKey)) { try Secp256k1KeyPair(secret: Secret(scalar)) }
        }
        // n − 1 is −1: its point has the X of 1's, the generator's.
        let last = try Secp256k1KeyPair(secret: Secret(below))
        let one = try Secp256k1KeyPair(secret: Secret([UInt8](repeating: 0, count: 31) + [1]))
        #expect(last.publicKey == one.publicKey)
        #expect(last.sharedX(with: one.publicKey) == Secret(one.publicKey.bytes))
        #expect("\(one.secret)" == "‹secret›")
    }

    @Test("HKDF as in RFC 5869, test cases 1 and 3, and over many blocks")
    func hkdf() throws {
        let input = Secret([UInt8](repeating: 0x0B, count: 22))
        let prk = HKDF256.extract(salt: try hex("000102030405060708090a0b0c"), input: input)
        #expect(text(prk) == "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5")
        let okm =
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"
        let info = try hex("f0f1f2f3f4f5f6f7f8f9")
        #expect(text(HKDF256.expand(prk, info: info, count: 42)) == okm)
        let bare = HKDF256.expand(HKDF256.extract(salt: [], input: input), info: [], count: 42)
        #expect(
            text(bare)
                == "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8")
        let long = HKDF256.expand(prk, info: info, count: 8_160)
        #expect(long.count == 8_160 && text(long).hasPrefix(okm))
    }

    @Test("Long inputs, which take another way, have the digests that Python's hashlib and hmac give")
    func longInputs() {
        for (count, digest) in [
            (255, "b0f3323e7a3cad8ae6778340cc2a17ae0cb31c818df3767cda7c3dd423725e90"),
            (256, "02d7160d77e18c6447be80c2e355c7ed4388545271702c50253b0914c65ce5fe"),
            (1_000, "41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3")
        ] {
            let bytes = [UInt8](repeating: 0x61, count: count)
            #expect(Hex.encode(SHA256.hash(bytes)) == digest)
            bytes.withUnsafeBytes { raw in
                for cut in [0, 1, 63, 64, 65, count] {
                    let parts = [raw[..<cut], raw[cut...]].map { UnsafeRawBufferPointer(rebasing: $0) }
                    #expect(Hex.encode(SHA256.hash(joining: parts)) == digest)
                }
            }
        }
        for (key, count, code) in [
            (20, 255, "7733e11ea41712e9eb32952cd9a923b45d093d908c83e48dede09ceb25d2ebbd"),
            (20, 256, "41dc653d80279fe38bf04d77623430b5daf58f1441f6238a3bed25458de010d4"),
            (20, 1_000, "bb766dc080c7e1323265f047f29bebdb87d7f96824ffe9be95c0f80ae049c3dc"),
            (131, 255, "434a7f71226b64e910c8738e95f837184dd508e45581463a393add95f0157cd5"),
            (131, 256, "3c7244a05fe8d6a2ba4b2ff453c7190dc1aac58af40fbdebc58d68d5d2014a14"),
            (131, 1_000, "3fc0e4426083a25a0cfd5eaed41ebfad622a4e44767e5bc7167f6c92356c6007")
        ] {
            let secret = Secret([UInt8](repeating: key == 20 ? 0x0B : 0xAA, count: key))
            let made = [UInt8](repeating: 0x61, count: count).withUnsafeBytes {
                HMAC256.code(key: secret, $0)
            }
            #expect(text(made) == code)
        }
    }

    @Test("HMAC as in RFC 4231, test cases 2 and 6")
    func hmac() throws {
        let short = Array("what do ya want for nothing?".utf8)
        let code = short.withUnsafeBytes { HMAC256.code(key: Secret("Jefe".utf8), $0) }
        #expect(text(code) == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
        let long = Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8)
        let other = long.withUnsafeBytes {
            HMAC256.code(key: Secret([UInt8](repeating: 0xAA, count: 131)), $0)
        }
        #expect(text(other) == "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54")
    }

    @Test("ChaCha20 as in RFC 8439, A.1 vector 1, and its own inverse")
    func stream() throws {
        let key = Secret([UInt8](repeating: 0, count: 32))
        let nonce = [UInt8](repeating: 0, count: 12)
        let out = try ChaCha20.apply(Secret([UInt8](repeating: 0, count: 32)), key: key, nonce: nonce)
        #expect(text(out) == "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7")
        #expect(try ChaCha20.apply(out, key: key, nonce: nonce) == Secret([UInt8](repeating: 0, count: 32)))
        #expect(throws: CryptoError(.malformedKey)) {
            try ChaCha20.apply(out, key: Secret([1]), nonce: nonce)
        }
        #expect(throws: CryptoError(.malformedKey)) { try ChaCha20.apply(out, key: key, nonce: [1]) }
    }

    @Test("ChaCha20-Poly1305 opens what it sealed, untouched and whole, and nothing else")
    func aead() throws {
        let key = Secret([UInt8](repeating: 1, count: 32))
        let nonce = [UInt8](repeating: 2, count: 12)
        for plain in [Secret([]), Secret([UInt8](0..<100))] {
            let sealed = try ChaCha20Poly1305.seal(plain, key: key, nonce: nonce)
            #expect(sealed.count == plain.count + ChaCha20Poly1305.overheadBytes)
            #expect(try ChaCha20Poly1305.open(sealed, key: key, nonce: nonce) == plain)
            for count in 0..<sealed.count {
                let cut = sealed.reveal { Secret($0.prefix(count)) }
                #expect(throws: CryptoError(.doesNotOpen)) {
                    try ChaCha20Poly1305.open(cut, key: key, nonce: nonce)
                }
            }
            for index in 0..<sealed.count {
                var changed = sealed.reveal { Array($0) }
                changed[index] ^= 0x80
                #expect(throws: CryptoError(.doesNotOpen)) {
                    try ChaCha20Poly1305.open(Secret(changed), key: key, nonce: nonce)
                }
            }
            #expect(throws: CryptoError(.malformedKey)) {
                try ChaCha20Poly1305.open(sealed, key: Secret([]), nonce: nonce)
            }
        }
    }
}
