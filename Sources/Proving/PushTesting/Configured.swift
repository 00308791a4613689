package import PushModel

/// A name that a test states literally.
package func configured(_ text: String) -> ConfiguredName {
    guard let name = ConfiguredName(text) else { preconditionFailure("a test's name is malformed") }
    return name
}
