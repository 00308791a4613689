// What is public there is what an app hands in and gets back: tokens, keys, reasons.
@_exported public import MarmotPush
