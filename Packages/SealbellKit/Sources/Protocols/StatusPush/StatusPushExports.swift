// What is public there is what an app hands in and gets back.
@_exported public import PushModel
@_exported public import SealbellKit
@_exported public import Secp256k1Keys
