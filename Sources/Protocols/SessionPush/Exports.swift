// What is public there is what an app hands in and gets back: secrets, moments, keys, what an error says.
@_exported public import EdwardsKeys
@_exported public import PushModel
