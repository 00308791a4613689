package import Logging

/// A service group wants a logger; tests do not.
package let silentLogger = Logger(label: "silent") { _ in SwiftLogNoOpLogHandler() }
