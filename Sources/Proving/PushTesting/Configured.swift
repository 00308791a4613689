package import PushModel

/// A name that a test writes down.
package func configured(_ text: String) -> ConfiguredName {
    guard let name = ConfiguredName(text) else { preconditionFailure("a test's name is malformed") }
    return name
}
