import Logging

/// A service group wants a logger; tests of the listener do not.
let silentLogger = Logger(label: "silent") { _ in SwiftLogNoOpLogHandler() }
