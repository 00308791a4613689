// Its public types are those that an app passes in and gets back: tokens, keys, reasons.
@_exported public import MarmotPush
