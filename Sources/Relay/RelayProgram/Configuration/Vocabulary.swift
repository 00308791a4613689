/// The protocols and push services that a configuration may name, and how their keys are read.
///
/// Values, so that reading a configuration depends on nothing that is made from one.
struct Vocabulary: Sendable {
    struct InstanceKind: Sendable {
        /// The value of `instances.NAME.protocol`.
        let word: String
        /// The keys of an instance, `protocol` and `apps` among them.
        let keys: [String]
        /// The key beside which `apps` may be left out; `nil`: none.
        let keyInsteadOfApps: String?
        /// Whether listeners serve it.
        let isServed: Bool
        /// What is missing in a configuration that has only these other instances, as a warning; `nil`:
        /// nothing.
        var lack: @Sendable (any InstanceSettings, [InstanceConfiguration]) -> String? = { _, _ in nil }
        /// Reads those keys but the two. Faults are noted in the reader's context.
        let read: @Sendable (InstanceReader) -> (any InstanceSettings)?
    }

    struct ServiceKind: Sendable {
        /// The key of `apps.NAME.<word>`.
        let word: String
        let keys: [String]
        /// Reads those keys. Faults are noted in the cursor's context.
        let read: @Sendable (MappingCursor) -> (any ServiceSettings)?
    }

    let protocols: [InstanceKind]
    /// Those that stand in a section of their own, by its word.
    let sections: [InstanceKind]
    /// In the order in which an app's are looked at.
    let services: [ServiceKind]
    /// Words of protocols that a later release speaks.
    let plannedProtocols: [String]
    /// Keys of push services that a later release speaks.
    let plannedServices: [String]
    /// What `serve --sandbox` serves when no file is named, as YAML. The credentials are made at start, in
    /// `sandbox/` of the state directory, and fit the simulators alone.
    let sandbox: String

    /// The protocols as a sentence lists them: `a, b and c`.
    var spoken: String { protocols.map(\.word).listed("and") }

    /// What to say of an app that has no push service.
    var neededService: String {
        let words = services.map(\.word)
        let more = words.count == 2 ? "both" : "several of them"
        return "An app has \(words.joined(separator: ", ")), or \(more)."
    }
}
