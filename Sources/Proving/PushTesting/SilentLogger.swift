package import Logging

/// A service group needs a logger; tests do not.
package let silentLogger = Logger(label: "silent") { _ in SwiftLogNoOpLogHandler() }
