// What is public there is what an app hands in and gets back: secrets, moments, keys, what an error says.
@_exported public import PushModel
@_exported public import Secp256k1Keys
