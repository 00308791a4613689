/// Something allowed that an operator would want to hear about.
struct ConfigurationWarning: Sendable, Hashable {
    enum Code: String, Sendable, Hashable, CaseIterable {
        case storageKeysInsideState, noAdminListener, unknownEnvironment, plainTextOffLoopback, appUnused
        case openSignUp, noDefaultBundle, originWithoutRelay
    }

    var code: Code
    /// Configuration path, or the name of an environment variable.
    var path: String
    var sentence: String

    /// As of an error: the code stands behind the sentence.
    var coded: String { "\(sentence) [\(code.rawValue)]" }
}
