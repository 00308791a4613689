// What an app hands in and gets back beside this module's own types: secrets, moments, what an error says.
@_exported public import PushModel
