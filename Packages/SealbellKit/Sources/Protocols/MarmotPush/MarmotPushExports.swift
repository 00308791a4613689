// Its public types are those that an app passes in and gets back.
@_exported public import struct Primitives.CryptoError
@_exported public import PushModel
@_exported public import SealbellKit
@_exported public import Secp256k1Keys
