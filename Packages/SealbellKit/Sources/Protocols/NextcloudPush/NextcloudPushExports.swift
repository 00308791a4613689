// Its public types are those that an app passes in and gets back.
@_exported public import PushModel
@_exported public import RSAKeys
@_exported public import SealbellKit
