// What is public there is what an app hands in and gets back.
@_exported public import EdwardsKeys
@_exported public import PushModel
@_exported public import SealbellKit
