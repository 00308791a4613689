/// A file that the configuration names, and where it does.
struct ConfiguredFile: Sendable, Hashable {
    var content: FileContent
    /// Absolute.
    var file: String
    /// `listeners.public.tls.key`.
    var path: String
    var source: ConfigurationFault.Source
}
