/// One instance of a relay under trial.
struct StagedInstance: Sendable {
    /// In the configuration.
    var name: String
    /// 32 bytes; empty where the protocol has none.
    var publicKey: [UInt8]
    /// The key file's name, in the trial's directory, and its text; `nil`: there is none.
    var keyFile: (name: String, text: String)?
    /// Whether origins ask it over HTTP, so that the public listener serves it.
    var isServed: Bool
    /// What the configuration says below its name, each line without indentation.
    var lines: @Sendable (RelayPlan) -> [String]
}
